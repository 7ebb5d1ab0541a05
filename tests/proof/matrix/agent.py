"""Small programs of an agent, run as processes of their own: what they do in one transaction, and what they ask.

save JSON           {"writes": [{"key", "folder", "deadline_s", "ordering_key"}, …]} in one transaction. What is refused
                    is left out; a lost connection rolls back and is tried again once, as an agent does that was told
                    nothing. Prints what was committed.
folders             prints the folders that the principal may write to
get PATH            one GET of the note service, with the token; prints the status
"""

import asyncio
import json
import os
import sys
import urllib.error
import urllib.request
from datetime import timedelta
from typing import Any, Final

from pydantic import SecretStr
from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from oncebox_destinations.note_service import NoteService
from oncebox_destinations.settings import NoteServiceSettings
from oncebox_outbox import Intent, InvalidOperation, OperationStatus, Outbox

OUTBOX: Final = Outbox(tenant="demo", principal="researcher", destination="notes")
PARTY: Final = "demo/researcher"
_TRIES: Final = 2


def run(arguments: list[str]) -> int:
    """Run one of the programs; the answer is the exit code."""
    match arguments:
        case ["save", told]:
            _save_all(json.loads(told)["writes"])
        case ["folders"]:
            print(json.dumps(asyncio.run(_folders())))
        case ["get", path]:
            print(_get(path))
        case _:
            sys.exit(__doc__)
    return 0


def save(session: Session, key: str, folder: str, **more: Any) -> None:
    """Want the one note of a key: the same arguments, whoever wants it."""
    why = Intent(run="matrix", step=key, purpose="keep a finding")
    OUTBOX.save_note(
        session, why, operation_id=key, folder=folder, title="Finding", text=f"The finding of {key}.", **more
    )


def revise(session: Session, key: str, base: OperationStatus) -> None:
    """Want a new version of the note that an operation made."""
    assert base.receipt is not None
    note = base.receipt.note
    why = Intent(run="matrix", step=key, purpose="correct a finding")
    OUTBOX.revise_note(
        session,
        why,
        operation_id=key,
        note_id=str(note["id"]),
        if_match=str(note["etag"]),
        title="Finding",
        text=f"The finding of {key}.",
    )


def _save_all(writes: list[dict[str, Any]]) -> None:
    url = make_url(os.environ["ONCEBOX_DATABASE_URL"]).set(drivername="postgresql+psycopg")
    engine = create_engine(url)
    for attempt in range(_TRIES):
        try:
            print(json.dumps({"committed": _transaction(engine, writes)}), flush=True)
            return
        except OperationalError:
            if attempt == _TRIES - 1:
                raise


def _transaction(engine: Engine, writes: list[dict[str, Any]]) -> list[str]:
    taken: list[str] = []
    with Session(engine) as session, session.begin():
        for write in writes:
            deadline_s = write.get("deadline_s")
            more = {
                "ordering_key": write.get("ordering_key"),
                "deadline": None if deadline_s is None else timedelta(seconds=deadline_s),
            }
            try:
                save(session, write["key"], write["folder"], **more)
            except InvalidOperation as error:
                print(json.dumps({"refused": write["key"], "why": str(error)}), flush=True)
            else:
                taken.append(write["key"])
    return taken


async def _folders() -> list[str]:
    token = SecretStr(os.environ["ONCEBOX_TOKEN"])
    service = NoteService(NoteServiceSettings(os.environ["ONCEBOX_NOTES_URL"], token))
    try:
        return list(await service.list_folders(on_behalf_of=PARTY))
    finally:
        await service.aclose()


def _get(path: str) -> int | str:
    """The status of the answer, or why there was none."""
    request = urllib.request.Request(
        os.environ["ONCEBOX_NOTES_URL"] + path,
        headers={"Authorization": f"Bearer {os.environ['ONCEBOX_TOKEN']}", "On-Behalf-Of": PARTY},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError as error:
        return type(error).__name__

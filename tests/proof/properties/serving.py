"""The note service as a process of its own, with what an operator can do at its database."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from oncebox_notes.settings import Settings
from tests.notes.running import RunningService
from tests.support.processes import Processes

_READY = r'^\{"event": "ready".*$'
_PREFIX = "ONCEBOX_NOTES_"


@contextmanager
def serving(
    database_url: str, processes: Processes, folder: Path, **settings: object
) -> Generator[RunningService, None, None]:
    """A service that answers, until the block ends; `settings` are its own, by their names.

    Locks are waited for shortly: a test that holds one does so on purpose.
    """
    access_log = folder / f"access-{len(processes.started)}.jsonl"
    given: dict[str, Any] = {"lock_timeout_seconds": 0.3, "pool_size": 6, "access_log": access_log} | settings
    environment = {_PREFIX + name.upper(): str(value) for name, value in given.items()}
    process = processes.start_python(
        "notes",
        *("-m", "oncebox_notes", "serve"),
        env={**environment, f"{_PREFIX}DATABASE_URL": database_url, f"{_PREFIX}PORT": "0"},
    )
    ready = json.loads(process.wait_for_log(_READY)[0])
    configured = Settings(database_url=SecretStr(database_url), port=0, **given)
    service = RunningService(ready["url"], configured, access_log)
    try:
        yield service
    finally:
        service.close()
        assert process.terminate() == 0, process.tail()

"""The examples of docs/wire/examples, and how one is played against a running service."""

import json
import re
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.notes.running import CONTRACT_HEADERS, RunningService, moment

FOLDER = Path(__file__).parents[2] / "docs" / "wire" / "examples"
NOT_REQUESTS = {"args_hash.json"}
REVOKED_TOKEN = "oncebox_0000000000000000_" + "0" * 43

VARIABLE = re.compile(
    r"(?P<uuid>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
    r"|(?P<hash>\b[0-9a-f]{64}\b)"
    r"|(?P<tag>\b[0-9]+-[0-9a-f]{16}\b)"
    r"|(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)"
)


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.json") if path.name not in NOT_REQUESTS)


def load(name: str) -> dict[str, Any]:
    example: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return example


def comparable(response: Mapping[str, Any]) -> Any:
    """The response with ids, hashes, tags and times named in the order in which they first occur."""
    seen: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        if match.lastgroup == "time":
            return "<time>"
        return seen.setdefault(match[0], f"<{match.lastgroup} {len(seen) + 1}>")

    return json.loads(VARIABLE.sub(name, json.dumps(response)))


class Player:
    """Sends the requests of examples; what was created before can be named in later ones."""

    def __init__(self, service: RunningService) -> None:
        self._service = service
        service.grant("drafts")
        service.grant("published")
        self._values = {
            "token": service.token(),
            "delegate_token": service.token("worker", tenants=["demo"]),
            "unknown_token": REVOKED_TOKEN,
            "deadline": moment(3600),
            "past": moment(-3600),
            "far": moment(30 * 86_400),
            "long_text": "x" * 262_145,
        }

    @contextmanager
    def given(self, steps: list[dict[str, Any]]) -> Generator[None, None, None]:
        """What has to have happened before the example's request."""
        with ExitStack() as stack:
            for step in steps:
                self._prepare(step, stack)
            yield

    def send(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The response, in the form in which examples hold it."""
        filled = self._fill(request)
        reply = httpx2.request(
            filled["method"],
            self._service.url + filled["path"],
            headers=filled["headers"],
            content=json.dumps(filled["body"]).encode() if filled.get("body") is not None else None,
        )
        return {
            "status": reply.status_code,
            "headers": {name: reply.headers[name] for name in CONTRACT_HEADERS if name in reply.headers},
            "body": reply.json(),
        }

    def _prepare(self, step: Mapping[str, Any], stack: ExitStack) -> None:
        match step:
            case {"request": request}:
                body = self.send(request)["body"]
                if body.get("note"):
                    # The first version made is the one that later requests name.
                    note = {"note_id": body["note"]["id"], "etag": body["note"]["etag"]}
                    self._values = note | self._values
            case {"key_held": key}:
                stack.enter_context(self._service.held_key(key))
            case {"grant_revoked": folder}:
                self._service.revoke(folder)
            case _:
                raise AssertionError(f"an unknown step: {step}")

    def _fill(self, value: Any) -> Any:
        text = json.dumps(value)
        for name, filled in self._values.items():
            text = text.replace(f"{{{name}}}", filled)
        return json.loads(text)

"""The note service as a stranger speaks to it: plain HTTP, straight past the proxy unless told otherwise."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2

ANSWERS = (httpx2.TransportError, OSError)


class Receiver:
    """Acts with a worker's token for one principal; each method is one request."""

    def __init__(self, url: str, token: str, on_behalf_of: str) -> None:
        self._url = url
        self._http = httpx2.Client(
            headers={"Authorization": f"Bearer {token}", "On-Behalf-Of": on_behalf_of}, timeout=30
        )

    def create(self, key: str, arguments: str, *, url: str | None = None) -> httpx2.Response:
        """Deliver the arguments (canonical JSON, sent as they are) under the key."""
        return self._http.post(
            f"{url or self._url}/v1/notes",
            content=arguments.encode(),
            headers={
                "Content-Type": "application/json",
                "Idempotency-Key": key,
                "Operation-Deadline": _in_one_hour(),
            },
        )

    def state(self, key: str) -> dict[str, Any] | None:
        """What it says of a key; None while it does not answer."""
        try:
            reply = self._http.get(f"{self._url}/v1/operations/{key}")
        except httpx2.TransportError:
            return None
        return json.loads(reply.content) if reply.status_code == 200 else None

    def close(self) -> None:
        self._http.close()


def canonical(document: Any) -> str:
    """The one form in which receipts are compared."""
    return json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _in_one_hour() -> str:
    return (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")

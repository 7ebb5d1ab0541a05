"""The note service as the tests use it: a real server on a real socket, its database, and a client."""

import json
import socket
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import httpx2
import psycopg
import uvicorn
from pydantic import SecretStr

from oncebox_notes import administration, statements
from oncebox_notes.app import create_app
from oncebox_notes.settings import Settings
from tests.support.polling import eventually

CONTRACT_HEADERS = (
    "content-type",
    "cache-control",
    "location",
    "content-location",
    "etag",
    "idempotent-replayed",
    "operation-state",
    "retry-after",
    "www-authenticate",
    "allow",
)


def moment(seconds: float) -> str:
    """RFC 3339, that many seconds from now."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def arguments(**changes: str) -> dict[str, str]:
    """The arguments of a create."""
    return {
        "folder": "drafts",
        "title": "Finding 7",
        "text": "Reef B recovers faster.",
        "format": "markdown",
    } | changes


def item(key: str, *, acting: str | None = None, **changes: Any) -> dict[str, Any]:
    """One create in a batch."""
    built: dict[str, Any] = {
        "operation_id": key,
        "deadline": moment(3600),
        "kind": "note.create",
        "arguments": arguments(),
    }
    if acting:
        built["on_behalf_of"] = acting
    return built | changes


class Sender:
    """A client with one token; every method is one request."""

    def __init__(self, url: str, token: str | None) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.http = httpx2.Client(base_url=url, headers=headers, timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def create(
        self,
        key: str,
        *,
        deadline: str | None = None,
        headers: Mapping[str, str] | None = None,
        **changes: str,
    ) -> httpx2.Response:
        sent = {"Idempotency-Key": key, "Operation-Deadline": deadline or moment(3600), **(headers or {})}
        return self.http.post("/v1/notes", json=arguments(**changes), headers=sent)

    def revise(
        self, note_id: str, key: str, if_match: str | None, *, text: str = "Changed."
    ) -> httpx2.Response:
        headers = {"Idempotency-Key": key, "Operation-Deadline": moment(3600)}
        if if_match is not None:
            headers["If-Match"] = if_match
        body = {"title": "Finding 7", "text": text}
        return self.http.put(f"/v1/notes/{note_id}", json=body, headers=headers)

    def batch(self, *items: Any) -> list[dict[str, Any]]:
        # Escaped, so that a test can send what is no valid text.
        body = json.dumps({"items": items}).encode("ascii")
        headers = {"Content-Type": "application/json"}
        reply = self.http.post("/v1/notes:batch", content=body, headers=headers)
        assert reply.status_code == 200, reply.text
        answered: list[dict[str, Any]] = reply.json()["items"]
        return answered

    def status(self, key: str) -> dict[str, Any]:
        reply = self.http.get(f"/v1/operations/{key}")
        assert reply.status_code == 200, reply.text
        found: dict[str, Any] = reply.json()
        return found

    def seal(self, key: str, *, deadline: str | None = None) -> httpx2.Response:
        headers = {"Operation-Deadline": deadline or moment(3600)}
        return self.http.post(f"/v1/operations/{key}:seal", headers=headers)


class RunningService:
    """One note service in a thread of this process, with its database and what an operator can do there."""

    def __init__(self, url: str, settings: Settings, access_log: Path) -> None:
        self.url = url
        self.settings = settings
        self.access_log = access_log
        self.database_url = settings.database_url.get_secret_value()
        self._senders: list[Sender] = []

    def connect(self, *, autocommit: bool = True) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.database_url, autocommit=autocommit)

    def rows(self, query: Any, *parameters: Any) -> list[tuple[Any, ...]]:
        with self.connect() as connection:
            return connection.execute(query, parameters).fetchall()

    def execute(self, query: Any, *parameters: Any) -> None:
        with self.connect() as connection:
            connection.execute(query, parameters)

    def notes(self) -> int:
        return int(self.rows("SELECT count(*) FROM note")[0][0])

    def token(
        self, principal: str = "researcher", *, tenant: str = "demo", tenants: list[str] | None = None
    ) -> str:
        with self.connect() as connection:
            return str(administration.create_token(connection, tenant, principal, tenants or [])["token"])

    def grant(self, folder: str = "drafts", principal: str = "researcher", *, tenant: str = "demo") -> None:
        with self.connect() as connection:
            administration.add_grant(connection, tenant, principal, folder)

    def revoke(self, folder: str = "drafts", principal: str = "researcher", *, tenant: str = "demo") -> None:
        with self.connect() as connection:
            administration.revoke_grant(connection, tenant, principal, folder)

    def sender(self, token: str | None) -> Sender:
        sender = Sender(self.url, token)
        self._senders.append(sender)
        return sender

    def principal(self, name: str = "researcher", *, tenant: str = "demo", folder: str = "drafts") -> Sender:
        """A client with a principal's token, and a grant for its folder."""
        self.grant(folder, name, tenant=tenant)
        return self.sender(self.token(name, tenant=tenant))

    def delegate(self, *tenants: str) -> Sender:
        return self.sender(self.token("worker", tenants=list(tenants) or ["demo"]))

    def log(self) -> list[dict[str, Any]]:
        """The lines of the access log."""
        return [json.loads(line) for line in self.access_log.read_text(encoding="utf-8").splitlines()]

    @contextmanager
    def held_key(
        self, key: str, *, tenant: str = "demo", principal: str = "researcher"
    ) -> Generator[None, None, None]:
        """A live transaction holds the key."""
        scope = {"tenants": [tenant], "principals": [principal], "keys": [key]}
        with self.connect(autocommit=False) as connection:
            connection.execute(statements.KEY_LOCK_WAIT, scope)
            yield

    def wait_for_waiting(self, count: int = 1) -> None:
        """Until that many sessions of this database wait for a lock."""
        query = (
            "SELECT count(*) FROM pg_locks WHERE NOT granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        eventually(lambda: self.rows(query)[0][0] >= count, what=f"{count} sessions wait for a lock")

    def close(self) -> None:
        for sender in self._senders:
            sender.http.close()


@contextmanager
def running(database_url: str, folder: Path, **settings: Any) -> Generator[RunningService, None, None]:
    """A note service on a port of its own until the block ends."""
    access_log = folder / "access.log"
    configured = Settings(
        database_url=SecretStr(database_url), port=0, access_log=access_log, pool_size=10, **settings
    )
    server = uvicorn.Server(
        uvicorn.Config(create_app(configured), access_log=False, log_config=None, lifespan="on")
    )
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        eventually(lambda: server.started, what="the note service accepts connections")
        service = RunningService(f"http://127.0.0.1:{listening.getsockname()[1]}", configured, access_log)
        try:
            yield service
        finally:
            service.close()
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()

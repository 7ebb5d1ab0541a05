"""Who speaks with the note service in an example: its own tenants, their principals, delegates and a stranger."""

import itertools
from collections.abc import Iterator
from typing import Any, Final

import httpx2

from oncebox_notes import administration, statements
from oncebox_notes.administration import Connection
from tests.proof.properties.note_model import Caller, Model, Refused, Scope

PRINCIPALS: Final = ("a/ann", "a/bob", "b/ann")

Way = tuple[str, str | None]
"""Whose token a request has, and for whom it says that it is, by the names of this file."""

RIGHT_WAYS: Final[tuple[Way, ...]] = (
    ("a/ann", None),
    ("a/bob", None),
    ("b/ann", None),
    ("a/ann", "a/ann"),
    ("worker", "a/ann"),
    ("worker", "b/ann"),
    ("worker of a", "a/bob"),
)
WRONG_WAYS: Final[tuple[Way, ...]] = (
    ("nobody", None),
    ("nobody", "a/ann"),
    ("worker", None),
    ("a/ann", "a/bob"),
    ("a/ann", "b/ann"),
    ("worker of a", "b/ann"),
)
_EXAMPLES: Final = itertools.count()


class Parties:
    """Two tenants of this example's own, and what an operator gives and takes. `operator` is in autocommit mode."""

    def __init__(self, http: httpx2.Client, operator: Connection, model: Model) -> None:
        number = next(_EXAMPLES)
        self.tenants = {name: f"{name}-{number}" for name in ("a", "b")}
        self.http, self.operator, self.model = http, operator, model
        self.callers: dict[str, Caller] = {}
        everywhere = [*self.tenants.values()]
        with operator.transaction():
            for name in PRINCIPALS:
                self._admit(name, self.scope(name), ())
                self.grant(name, "drafts")
            self._admit("worker", Scope(everywhere[0], "worker"), tuple(everywhere))
            self._admit("worker of a", Scope(everywhere[0], "worker"), tuple(everywhere[:1]))
        self.callers["nobody"] = Caller("oncebox_unknown", self.scope("a/ann"))

    def scope(self, name: str) -> Scope:
        tenant, _, principal = name.partition("/")
        return Scope(self.tenants[tenant], principal)

    def _admit(self, name: str, scope: Scope, tenants: tuple[str, ...]) -> None:
        made = administration.create_token(self.operator, scope.tenant, scope.principal, [*tenants])
        self.callers[name] = Caller(str(made["token"]), scope, tenants)

    def grant(self, name: str, folder: str) -> None:
        scope = self.scope(name)
        administration.add_grant(self.operator, scope.tenant, scope.principal, folder)
        self.model.grants.add((scope, folder))

    def revoke(self, name: str, folder: str) -> None:
        scope = self.scope(name)
        if (scope, folder) in self.model.grants:
            administration.revoke_grant(self.operator, scope.tenant, scope.principal, folder)
            self.model.grants.discard((scope, folder))

    def revoke_token(self, name: str) -> None:
        """The token is nobody's from now on; the principal goes on with another one."""
        old = self.callers[name]
        administration.revoke_token(self.operator, old.token.split("_")[1])
        self.callers["nobody"] = old
        self._admit(name, old.own, old.tenants)

    def ask(
        self, way: Way, method: str, path: str, headers: dict[str, str] | None = None, **sent: Any
    ) -> httpx2.Response:
        caller, acting = way
        carried = {"Authorization": f"Bearer {self.callers[caller].token}"} | (headers or {})
        if acting is not None:
            carried["On-Behalf-Of"] = str(self.scope(acting))
        return self.http.request(method, path, headers=carried, **sent)

    def acting(self, way: Way) -> Scope | Refused:
        """For whom a request is in the model's eyes."""
        caller, acting = way
        if caller == "nobody":
            return Refused(401, "unauthenticated")
        named = None if acting is None else str(self.scope(acting))
        return self.model.acting(self.callers[caller], named)

    def hold_key(self, holder: Connection, name: str, key: str) -> None:
        """Another execution of the key is alive until the transaction of `holder` ends."""
        scope = self.scope(name)
        place = {"tenants": [scope.tenant], "principals": [scope.principal], "keys": [key]}
        holder.execute(statements.KEY_LOCK_WAIT, place)

    def age_tombstones(self) -> None:
        """All of them are a month old."""
        self._rows(
            "UPDATE operation_record SET created_at = now() - interval '30 days',"
            " deadline = now() - interval '29 days' WHERE state = 'sealed' AND tenant = ANY(%s) RETURNING key"
        )

    def count_records(self) -> dict[str, int]:
        return dict(
            self._rows("SELECT state, count(*) FROM operation_record WHERE tenant = ANY(%s) GROUP BY state")
        )

    def compare_tables(self) -> None:
        """Records and versions are those of the model, and each version had its grant when it was made."""
        records = self._rows(
            "SELECT tenant, principal, key, state, args_hash FROM operation_record WHERE tenant = ANY(%s)"
        )
        assert sorted(records, key=repr) == sorted(self._records(), key=repr)
        versions = self._rows(
            "SELECT note_id::text, version, tenant, principal, operation_key, title, text, etag FROM note_version"
            " WHERE tenant = ANY(%s)"
        )
        assert sorted(versions) == sorted(self._versions())
        permitted = self._rows(
            "SELECT v.operation_key FROM note_version v JOIN folder_grant g ON g.id = v.grant_id"
            " AND g.tenant = v.tenant AND g.principal = v.principal"
            " AND v.created_at BETWEEN g.granted_at AND coalesce(g.revoked_at, 'infinity')"
            " WHERE v.tenant = ANY(%s)"
        )
        assert len(permitted) == len(versions)

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.operator.execute(query.encode(), [[*self.tenants.values()]]).fetchall()

    def _records(self) -> Iterator[tuple[Any, ...]]:
        for (scope, key), record in self.model.records.items():
            yield scope.tenant, scope.principal, key, record.state, record.args_hash

    def _versions(self) -> Iterator[tuple[Any, ...]]:
        for note_id, versions in self.model.notes.items():
            for number, version in enumerate(versions, 1):
                scope = version.scope
                written = version.title, version.text, version.ref["etag"]
                yield note_id, number, scope.tenant, scope.principal, version.key, *written

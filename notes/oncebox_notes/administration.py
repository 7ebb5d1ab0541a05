"""What an operator does with the service's database: tokens and grants. Each function returns what to print."""

from datetime import datetime
from typing import Any

import psycopg

from oncebox_notes import folders, identity, statements
from oncebox_notes.syntax import format_moment

Row = dict[str, object]
Connection = psycopg.Connection[tuple[Any, ...]]


class NotFoundError(LookupError):
    """What was named does not exist; the message names it."""


class InvalidNameError(ValueError):
    """A tenant, a principal or a folder is not written as it must be; the message says how."""


class InvalidTokenError(ValueError):
    """A given token cannot be registered; the message says why, and never shows the token."""


def forgetful_settings(connection: Connection) -> list[str]:
    """The settings of the server under which a confirmed note can be gone after a crash; none is right."""
    return [row[0] for row in connection.execute(statements.FORGETFUL).fetchall()]


def create_token(connection: Connection, tenant: str, principal: str, tenants: list[str]) -> Row:
    """A new token, shown once. With `tenants` it is a delegate's: it may act for their principals."""
    token_id, token, secret_hash = identity.mint_token()
    wanted = _token(token_id, tenant, principal, tenants)
    created_at = connection.execute(
        statements.TOKEN_CREATE, {**wanted, "secret_hash": secret_hash}
    ).fetchall()[0][0]
    return {"id": token_id, "token": token, **wanted, "created_at": format_moment(created_at)}


def register_token(
    connection: Connection, tenant: str, principal: str, tenants: list[str], token: str
) -> Row:
    """A token that was made elsewhere, in the form of ours; `created` is false when it was registered already.

    Raises `InvalidTokenError` for another form, and when its id is known with another secret or for another party,
    or was revoked: then nothing is written.
    """
    parts = identity.split_token(token)
    if parts is None:
        raise InvalidTokenError(
            "the given token is not written as ours are: oncebox_, 16 of 0-9 a-f, _, 43 of A-Z a-z 0-9 _ -"
        )
    token_id, secret = parts
    wanted = _token(token_id, tenant, principal, tenants)
    parameters = {**wanted, "secret_hash": identity.secret_hash(secret)}
    added = connection.execute(statements.TOKEN_REGISTER, parameters).fetchall()
    created_at = added[0][0] if added else _registered(connection, wanted, secret)
    return {**wanted, "created_at": format_moment(created_at), "created": bool(added)}


def list_tokens(connection: Connection) -> list[Row]:
    """All tokens, revoked ones too, without their secrets."""
    return [
        {
            "id": token_id,
            "tenant": tenant,
            "principal": principal,
            "delegate": delegate,
            "tenants": tenants,
            "created_at": format_moment(created_at),
            "revoked_at": format_moment(revoked_at) if revoked_at else None,
        }
        for token_id, tenant, principal, delegate, tenants, created_at, revoked_at in connection.execute(
            statements.TOKEN_LIST
        ).fetchall()
    ]


def revoke_token(connection: Connection, token_id: str) -> Row:
    """No request that authenticates after this is accepted; twice is the same as once. Raises `NotFoundError`."""
    rows = connection.execute(statements.TOKEN_REVOKE, {"id": token_id}).fetchall()
    if not rows:
        raise NotFoundError(f"there is no token with the id {token_id!r}; `token list` shows all of them")
    tenant, principal, revoked_at = rows[0]
    return {"id": token_id, "tenant": tenant, "principal": principal, "revoked_at": format_moment(revoked_at)}


def add_grant(connection: Connection, tenant: str, principal: str, folder: str) -> Row:
    """A grant in force, and the folder if it was missing; `created` is false when there was one already."""
    wanted = _grant(tenant, principal, folder)
    with connection.transaction():
        connection.execute(statements.GRANT_LOCK_EXCLUSIVE, wanted)
        connection.execute(statements.FOLDER_CREATE, wanted)
        added = connection.execute(statements.GRANT_ADD, wanted).fetchall()
        grant_id, granted_at = (added or connection.execute(statements.GRANT_LIVE, wanted).fetchall())[0]
    return {"id": grant_id, **wanted, "granted_at": format_moment(granted_at), "created": bool(added)}


def revoke_grant(connection: Connection, tenant: str, principal: str, folder: str) -> Row:
    """Ends a grant once the writes that it allowed have committed. The row stays. Raises `NotFoundError`."""
    wanted = _grant(tenant, principal, folder)
    with connection.transaction():
        connection.execute(statements.GRANT_LOCK_EXCLUSIVE, wanted)
        rows = connection.execute(statements.GRANT_REVOKE, wanted).fetchall()
    if not rows:
        raise NotFoundError(f"{tenant}/{principal} has no grant in force for the folder {wanted['folder']!r}")
    grant_id, granted_at, revoked_at = rows[0]
    return {
        "id": grant_id,
        **wanted,
        "granted_at": format_moment(granted_at),
        "revoked_at": format_moment(revoked_at),
    }


def list_grants(connection: Connection, tenant: str | None, principal: str | None) -> list[Row]:
    """All grants, revoked ones too, of a tenant or a principal if named."""
    rows = connection.execute(statements.GRANT_LIST, {"tenant": tenant, "principal": principal}).fetchall()
    return [
        {
            "id": grant_id,
            "tenant": of_tenant,
            "principal": of_principal,
            "folder": path,
            "granted_at": format_moment(granted_at),
            "revoked_at": format_moment(revoked_at) if revoked_at else None,
        }
        for grant_id, of_tenant, of_principal, path, granted_at, revoked_at in rows
    ]


def _token(token_id: str, tenant: str, principal: str, tenants: list[str]) -> Row:
    for name in (tenant, principal, *tenants):
        _check_name(name)
    return {
        "id": token_id,
        "tenant": tenant,
        "principal": principal,
        "delegate": bool(tenants),
        "tenants": tenants,
    }


def _registered(connection: Connection, wanted: Row, secret: str) -> datetime:
    """When the very same token was registered. Raises `InvalidTokenError` when it is not the same."""
    found = connection.execute(statements.TOKEN_REGISTERED, {"id": wanted["id"]}).fetchall()[0]
    tenant, principal, tenants, secret_hash, created_at, revoked_at = found
    if not identity.matches(secret, secret_hash):
        raise InvalidTokenError(f"the token {wanted['id']} is registered with another secret; make a new one")
    if (tenant, principal, tenants) != (wanted["tenant"], wanted["principal"], wanted["tenants"]):
        acting = f", acting in {', '.join(tenants)}" if tenants else ""
        raise InvalidTokenError(
            f"the token {wanted['id']} is registered for {tenant}/{principal}{acting}; make a new one"
        )
    if revoked_at is not None:
        raise InvalidTokenError(f"the token {wanted['id']} was revoked; make a new one")
    return created_at


def _grant(tenant: str, principal: str, folder: str) -> dict[str, str]:
    _check_name(tenant)
    _check_name(principal)
    try:
        return {"tenant": tenant, "principal": principal, "folder": folders.resolve(folder)}
    except folders.InvalidFolderError as error:
        raise InvalidNameError(f"the folder {folder!r} {error}") from None


def _check_name(name: str) -> None:
    if not identity.NAME.fullmatch(name):
        raise InvalidNameError(
            f"{name!r} is no name of a tenant or a principal: 1 to 128 of A-Z a-z 0-9 . _ : @ - that begin with a"
            " letter or a digit"
        )

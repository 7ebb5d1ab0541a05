"""`python -m oncebox_notes ACTION`: the note service and its database, for programs to call.

Settings come from `ONCEBOX_NOTES_…` (see `settings`); only `ONCEBOX_NOTES_DATABASE_URL` is required.
On stdout: one JSON object, or one a line for lists. On stderr: what went wrong, or the logs of `serve`.

    serve                                                   {"event": "ready", "url": …} once it accepts connections
    migrate up|down|status                                  {"revision", "head", "current"}; `status` exits 8 if not current
    token create --tenant T --principal P                   {"id", "token", "tenant", "principal", "delegate", "tenants", "created_at"}
                 [--delegate --tenants T1,T2]
                 [--value-from-env NAME]                registers the token in that variable: the same without "token",
                                                        and with "created", which is false for one that was known
    token list                                              a line a token, without the secret
    token revoke ID                                         {"id", "tenant", "principal", "revoked_at"}
    grant add --tenant T --principal P --folder F           {"id", "tenant", "principal", "folder", "granted_at", "created"}
    grant list [--tenant T] [--principal P]                 a line a grant, revoked ones too
    grant revoke --tenant T --principal P --folder F        {"id", "tenant", "principal", "folder", "granted_at", "revoked_at"}
    purge                                                   {"purged": N} or {"purged": null} while another one runs

Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 8 check failed, 9 the database cannot be reached.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import Final

import psycopg
from pydantic import ValidationError

from oncebox_notes import administration, purging
from oncebox_notes.administration import Connection, Row
from oncebox_notes.settings import Settings

OK: Final = 0
ERROR: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
CHECK_FAILED: Final = 8
UNREACHABLE: Final = 9

Arguments = argparse.Namespace
Action = Callable[[Settings, Arguments], int]


def main(argv: list[str] | None = None) -> int:
    """Runs one action; the answer is the exit code."""
    arguments = _parser().parse_args(argv)
    action: Action = arguments.action
    try:
        settings = Settings()  # pyright: ignore[reportCallIssue]  # the fields come from the environment
    except ValidationError as error:
        return _fail(USAGE, _setting_faults(error))
    try:
        return action(settings, arguments)
    except administration.NotFoundError as error:
        return _fail(NOT_FOUND, str(error))
    except (administration.InvalidNameError, administration.InvalidTokenError) as error:
        return _fail(USAGE, str(error))
    except psycopg.errors.UndefinedTable:
        return _fail(ERROR, "the database has no tables of the note service; run `migrate up` first")
    except psycopg.OperationalError as error:
        return _fail(UNREACHABLE, f"the database cannot be reached: {_first_line(error)}")
    except (psycopg.Error, OSError) as error:
        return _fail(ERROR, _first_line(error))


def _serve(settings: Settings, _: Arguments) -> int:
    # Imported where they are used: a token or a grant does not wait for a web server and a migration tool.
    from oncebox_notes import migrating, serving

    status = migrating.status(_url(settings))
    if not status.current:
        return _fail(
            ERROR,
            f"the database is at revision {status.revision or 'none'} and {status.head} is needed; run `migrate up`",
        )
    with _connect(settings) as connection:
        forgetful = administration.forgetful_settings(connection)
    if forgetful:
        return _fail(
            ERROR,
            f"the database may lose what it confirmed: {', '.join(forgetful)} is off; set it to on and restart the server",
        )
    return OK if serving.serve(settings) else ERROR


def _migrate(settings: Settings, arguments: Arguments) -> int:
    from oncebox_notes import migrating

    run = {"up": migrating.up, "down": migrating.down, "status": migrating.status}[arguments.direction]
    found = run(_url(settings))
    _print([{"revision": found.revision, "head": found.head, "current": found.current}])
    return CHECK_FAILED if arguments.direction == "status" and not found.current else OK


def _token_create(settings: Settings, arguments: Arguments) -> int:
    tenants: list[str] = arguments.tenants.split(",") if arguments.tenants else []
    if arguments.delegate != bool(tenants):
        return _fail(USAGE, "--delegate and --tenants T1,T2 go together: name the tenants that it may act in")
    variable: str | None = arguments.value_from_env
    given = os.environ.get(variable, "") if variable is not None else None
    if given == "":
        return _fail(USAGE, f"{variable} is not set: --value-from-env reads the token from it")
    with _connect(settings) as connection:
        whose = connection, arguments.tenant, arguments.principal, tenants
        if given is None:
            _print([administration.create_token(*whose)])
        else:
            _print([administration.register_token(*whose, given)])
    return OK


def _token_list(settings: Settings, _: Arguments) -> int:
    with _connect(settings) as connection:
        _print(administration.list_tokens(connection))
    return OK


def _token_revoke(settings: Settings, arguments: Arguments) -> int:
    with _connect(settings) as connection:
        _print([administration.revoke_token(connection, arguments.id)])
    return OK


def _grant_add(settings: Settings, arguments: Arguments) -> int:
    with _connect(settings) as connection:
        _print(
            [administration.add_grant(connection, arguments.tenant, arguments.principal, arguments.folder)]
        )
    return OK


def _grant_list(settings: Settings, arguments: Arguments) -> int:
    with _connect(settings) as connection:
        _print(administration.list_grants(connection, arguments.tenant, arguments.principal))
    return OK


def _grant_revoke(settings: Settings, arguments: Arguments) -> int:
    with _connect(settings) as connection:
        _print(
            [administration.revoke_grant(connection, arguments.tenant, arguments.principal, arguments.folder)]
        )
    return OK


def _purge(settings: Settings, _: Arguments) -> int:
    with _connect(settings) as connection:
        _print([{"purged": purging.purge_tombstones(connection, settings.admission_window_seconds)}])
    return OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m oncebox_notes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    areas = parser.add_subparsers(required=True, metavar="ACTION")
    areas.add_parser("serve").set_defaults(action=_serve)
    areas.add_parser("purge").set_defaults(action=_purge)
    migrate = areas.add_parser("migrate")
    migrate.add_argument("direction", choices=["up", "down", "status"])
    migrate.set_defaults(action=_migrate)

    token = areas.add_parser("token").add_subparsers(required=True, metavar="create|list|revoke")
    create = token.add_parser("create")
    _scope(create, required=True)
    create.add_argument("--delegate", action="store_true")
    create.add_argument("--tenants", default="", metavar="T1,T2")
    create.add_argument("--value-from-env", metavar="NAME")
    create.set_defaults(action=_token_create)
    token.add_parser("list").set_defaults(action=_token_list)
    revoke = token.add_parser("revoke")
    revoke.add_argument("id")
    revoke.set_defaults(action=_token_revoke)

    grant = areas.add_parser("grant").add_subparsers(required=True, metavar="add|list|revoke")
    for name, action in (("add", _grant_add), ("revoke", _grant_revoke)):
        changing = grant.add_parser(name)
        _scope(changing, required=True)
        changing.add_argument("--folder", required=True)
        changing.set_defaults(action=action)
    listing = grant.add_parser("list")
    _scope(listing, required=False)
    listing.set_defaults(action=_grant_list)
    return parser


def _scope(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument("--tenant", required=required)
    parser.add_argument("--principal", required=required)


def _url(settings: Settings) -> str:
    return settings.database_url.get_secret_value()


def _connect(settings: Settings) -> Connection:
    return psycopg.connect(
        _url(settings),
        autocommit=True,
        application_name="oncebox-notes-admin",
        connect_timeout=10,
        # As the service's own connections: a standby is not what anybody means.
        target_session_attrs="read-write",
    )


def _print(rows: Iterable[Row]) -> None:
    for row in rows:
        sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def _fail(code: int, message: str) -> int:
    sys.stderr.write(f"oncebox-notes: {message}\n")
    return code


def _setting_faults(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False)
    return "; ".join(
        f"ONCEBOX_NOTES_{'_'.join(str(part) for part in fault['loc']).upper()}: {fault['msg']}"
        for fault in faults
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())

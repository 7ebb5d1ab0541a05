"""`grant add|list|revoke`: who may write into which folder of the note service."""

from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from oncebox_operate import note_process, options
from oncebox_operate.commands.party_rows import Principal, Row, Tenant, print_list, whose
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.options import WHOSE, NotesDatabaseUrl
from oncebox_operate.output import AS_TEXT, Output, plain

Folder = Annotated[
    str,
    Parameter(
        name="--folder", env_var="ONCEBOX_FOLDER", help="A path under the tenant: drafts, team/drafts."
    ),
]


def add(
    *,
    tenant: Tenant,
    principal: Principal,
    folder: Folder,
    notes_database_url: NotesDatabaseUrl = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Let a principal write into a folder.

    The folder is made when it is missing.

    * `oncebox grant add --tenant demo --principal researcher --folder drafts`
    """
    (row,) = _on_grant("add", tenant, principal, folder, notes_database_url)
    already = "" if row["created"] else "already, "
    output.data(
        row,
        lambda: Text(
            plain(f"{whose(row)} may write into {row['folder']} ({already}since {row['granted_at']}).")
        ),
    )
    return ExitCode.OK


def list_grants(
    *,
    tenant: Annotated[
        str | None,
        Parameter(name="--tenant", env_var="ONCEBOX_TENANT", group=WHOSE, help="Only of this tenant."),
    ] = None,
    principal: Annotated[
        str | None,
        Parameter(
            name="--principal", env_var="ONCEBOX_PRINCIPAL", group=WHOSE, help="Only of this principal."
        ),
    ] = None,
    notes_database_url: NotesDatabaseUrl = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """List grants, revoked ones too.

    They tell what was allowed when a note was written.

    * `oncebox grant list --tenant demo`
    """
    narrowed = [
        part
        for name, value in (("--tenant", tenant), ("--principal", principal))
        if value is not None
        for part in (name, value)
    ]
    rows = note_process.ask(options.notes_server(notes_database_url), "grant", "list", *narrowed)
    print_list(
        output,
        rows,
        ("whose", "folder", "granted", "revoked"),
        lambda row: (whose(row), row["folder"], row["granted_at"], row["revoked_at"] or ""),
        "There are no grants. Add one: oncebox grant add --tenant demo --principal researcher --folder drafts",
    )
    return ExitCode.OK


def revoke(
    *,
    tenant: Tenant,
    principal: Principal,
    folder: Folder,
    notes_database_url: NotesDatabaseUrl = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Take a grant back.

    Writes that it allowed are committed before this returns; none is allowed after it.

    * `oncebox grant revoke --tenant demo --principal researcher --folder drafts`
    """
    (row,) = _on_grant("revoke", tenant, principal, folder, notes_database_url)
    output.data(
        row,
        lambda: Text(
            plain(f"{whose(row)} may not write into {row['folder']} any more, since {row['revoked_at']}.")
        ),
    )
    return ExitCode.OK


def _on_grant(action: str, tenant: str, principal: str, folder: str, url: str | None) -> list[Row]:
    return note_process.ask(
        options.notes_server(url),
        "grant",
        action,
        "--tenant",
        tenant,
        "--principal",
        principal,
        "--folder",
        folder,
    )

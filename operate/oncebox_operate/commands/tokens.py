"""`token create|list|revoke`: who may call the note service."""

from typing import Annotated, cast

from cyclopts import Parameter
from rich.text import Text

from oncebox_operate import failures, note_process, options
from oncebox_operate.commands.party_rows import Principal, Row, Tenant, print_list, whose
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.options import NotesDatabaseUrl
from oncebox_operate.output import AS_TEXT, Output


def create(
    *,
    tenant: Tenant,
    principal: Principal,
    delegate: Annotated[
        bool,
        Parameter(
            name="--delegate",
            env_var="ONCEBOX_TOKEN_DELEGATE",
            show_default=False,
            negative="",
            help="A worker's token: it acts for the principals of its tenants, and their grants decide.",
        ),
    ] = False,
    tenants: Annotated[
        str | None,
        Parameter(
            name="--tenants",
            env_var="ONCEBOX_TOKEN_TENANTS",
            help="With --delegate: the tenants it acts in, T1,T2. [default: its own]",
        ),
    ] = None,
    value_from_env: Annotated[
        str | None,
        Parameter(
            name="--value-from-env",
            env_var="ONCEBOX_TOKEN_VALUE_FROM_ENV",
            help="Register the token that this variable holds, instead of a new one; the same again changes nothing.",
        ),
    ] = None,
    notes_database_url: NotesDatabaseUrl = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Make a token and print it, this one time.

    It is stored as a hash only, and never shown again. One that a secret store holds already is registered with
    `--value-from-env`, and not printed.

    * `export ONCEBOX_TOKEN=$(oncebox token create --tenant demo --principal worker --delegate)`
    * `oncebox token create --tenant demo --principal researcher --json`
    * `oncebox token create --tenant demo --principal worker --delegate --value-from-env ONCEBOX_TOKEN`
    """
    if tenants is not None and not delegate:
        raise failures.usage("--tenants is for a delegate's token.", "Add --delegate, or leave it out.")
    acting = ["--delegate", "--tenants", tenants or tenant] if delegate else []
    given = ["--value-from-env", value_from_env] if value_from_env is not None else []
    (made,) = note_process.ask(
        options.notes_server(notes_database_url),
        "token",
        "create",
        "--tenant",
        tenant,
        "--principal",
        principal,
        *acting,
        *given,
    )
    acts = f", acts for the principals of {tenants or tenant}" if delegate else ""
    about = f"Token {made['id']} of {tenant}/{principal}{acts}."
    if value_from_env is not None:
        known = "Registered" if made["created"] else "Registered already"
        output.data(made, lambda: Text(f"{about} {known}, from {value_from_env}."))
        return ExitCode.OK
    output.data(made, lambda: Text(str(made["token"])))
    output.note(f"{about} Keep it: it is not shown again.")
    return ExitCode.OK


def list_tokens(*, notes_database_url: NotesDatabaseUrl = None, output: Output = AS_TEXT) -> ExitCode:
    """List all tokens, without their secrets.

    Revoked ones too.

    * `oncebox token list`
    """
    rows = note_process.ask(options.notes_server(notes_database_url), "token", "list")
    print_list(
        output,
        rows,
        ("id", "whose", "acts in", "made", "revoked"),
        lambda row: (row["id"], whose(row), _tenants(row), row["created_at"], row["revoked_at"] or ""),
        "There are no tokens yet. Make one: oncebox token create --tenant demo --principal worker --delegate",
    )
    return ExitCode.OK


def revoke(
    id: Annotated[str, Parameter(help="The token's id, as `token list` shows it; not the token itself.")],
    /,
    *,
    notes_database_url: NotesDatabaseUrl = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Refuse a token from now on.

    Revoking it again changes nothing.

    * `oncebox token revoke 3f6c0a1b2c3d4e5f`
    """
    (row,) = note_process.ask(options.notes_server(notes_database_url), "token", "revoke", "--", id)
    output.data(row, lambda: Text(f"Token {row['id']} of {whose(row)} is refused since {row['revoked_at']}."))
    return ExitCode.OK


def _tenants(row: Row) -> str:
    return ", ".join(cast("list[str]", row["tenants"])) or "itself only"  # the service's contract

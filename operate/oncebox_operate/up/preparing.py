"""What must be in the databases before anything can run: tables, the workers' token, the researcher's grant."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from sqlalchemy.exc import SQLAlchemyError

from oncebox_operate import migrate, note_process
from oncebox_operate.database_failures import Server, of_database
from oncebox_operate.up.databases import Databases
from oncebox_operate.up.folder import InstallationFolder
from oncebox_operate.up.plan import FOLDER, PRINCIPAL, TENANT, WORKER_PRINCIPAL


def make_tables(databases: Databases) -> None:
    """Bring both databases to this version's tables, side by side. Raises Failure."""
    with ThreadPoolExecutor(2) as pool:
        sender = pool.submit(_migrate_sender, databases.sender)
        notes = pool.submit(note_process.ask, databases.notes, "migrate", "up")
    sender.result()
    notes.result()


def let_in(folder: InstallationFolder, notes: Server) -> str:
    """Grant the researcher its folder, and return the workers' token: the kept one while it is good. Raises Failure."""
    with ThreadPoolExecutor(2) as pool:
        whose = ("--tenant", TENANT, "--principal", PRINCIPAL)
        granted = pool.submit(note_process.ask, notes, "grant", "add", *whose, "--folder", FOLDER)
        token = pool.submit(_token, folder, notes)
    granted.result()
    return token.result()


def _token(folder: InstallationFolder, notes: Server) -> str:
    if kept := folder.token():
        held = cast("dict[str, str]", json.loads(kept))  # written below
        listed = note_process.ask(notes, "token", "list")
        if any(row["id"] == held["id"] and row["revoked_at"] is None for row in listed):
            return held["token"]
    whose = ("--tenant", TENANT, "--principal", WORKER_PRINCIPAL)
    (made,) = note_process.ask(notes, "token", "create", *whose, "--delegate", "--tenants", TENANT)
    held = {name: str(made[name]) for name in ("id", "token")}
    folder.keep_token(json.dumps(held))
    return held["token"]


def _migrate_sender(server: Server) -> None:
    try:
        migrate.up(server.libpq)
    except SQLAlchemyError as error:
        raise of_database(error, server) or error from error

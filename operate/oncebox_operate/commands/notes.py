"""`notes serve`: the note service as a process of its own."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from oncebox_operate import note_process, options
from oncebox_operate.options import NotesDatabaseUrl


def serve(
    *,
    host: Annotated[
        str | None,
        Parameter(
            name="--host", env_var="ONCEBOX_NOTES_HOST", help="Address to listen at. [default: 127.0.0.1]"
        ),
    ] = None,
    port: Annotated[
        int | None,
        Parameter(
            name="--port", env_var="ONCEBOX_NOTES_PORT", help="Port; 0 takes a free one. [default: 8320]"
        ),
    ] = None,
    access_log: Annotated[
        Path | None,
        Parameter(
            name="--access-log",
            env_var="ONCEBOX_NOTES_ACCESS_LOG",
            help="File for one JSON line a request. [default: stderr]",
        ),
    ] = None,
    notes_database_url: NotesDatabaseUrl = None,
) -> None:
    """Serve notes over HTTP.

    Until SIGTERM or Ctrl-C; open requests are answered first.

    One JSON line on stdout says when it is ready, and where; logs are JSON on stderr. Every other setting is a
    variable `ONCEBOX_NOTES_…`.

    * `oncebox notes serve`
    * `oncebox notes serve --port 0 --access-log access.jsonl`
    """
    given = {
        "ONCEBOX_NOTES_DATABASE_URL": options.notes_server(notes_database_url).libpq,
        "ONCEBOX_NOTES_HOST": host,
        "ONCEBOX_NOTES_PORT": port,
        "ONCEBOX_NOTES_ACCESS_LOG": access_log,
    }
    note_process.become_server({name: str(value) for name, value in given.items() if value is not None})

"""A warm Python: pytest and the libraries are imported once, and every run of tests is a fork of it.

Run by its path, never as a module: nothing of ours may be imported before the fork, which is told where ours is.
Reads a request a line (see `warm_python.Request`), answers the exit code of its pytest.
"""

import importlib
import json
import os
import sys
from typing import Any, Final, NoReturn

# What the tests and the code under test spend most of their start on.
LIBRARIES: Final = (
    *("pytest", "hypothesis", "_hypothesis_pytestplugin", "pytest_timeout", "xdist.plugin"),
    *("psycopg", "psycopg_pool", "sqlalchemy.ext.asyncio", "sqlalchemy.orm", "alembic.command"),
    *("pydantic_settings", "structlog", "httpx2", "fastapi", "uvicorn", "prometheus_client"),
)


def main() -> None:
    # The folder of this file is not a place to import from.
    del sys.path[0]
    for name in LIBRARIES:
        importlib.import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run_tests(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def run_tests(request: dict[str, Any]) -> NoReturn:
    """What `python -m pytest` would do in the request's folder, with its environment."""
    code = 70
    try:
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        sys.path[:0] = [request["folder"], *os.environ["PYTHONPATH"].split(os.pathsep)]
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream, target in ((0, os.open(os.devnull, os.O_RDONLY)), (1, log), (2, log)):
            os.dup2(target, stream)
        import pytest

        # Libraries that bring a plugin are imported already: their asserts need no rewriting.
        options = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        code = int(pytest.main([*options, *request["arguments"]]))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()

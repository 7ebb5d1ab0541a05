"""Log lines: one JSON object each on stderr, from our code, from libraries and from Python's warnings alike."""

import json
import subprocess
import sys
from typing import Any

SETUP = "import logging, warnings\nfrom oncebox_worker import logs\nfrom oncebox_worker.events import Event\n"


def lines(code: str, level: str = "info") -> list[dict[str, Any]]:
    """What a process logs that runs `code`; every line must be a JSON object, and stdout stays empty."""
    program = f"{SETUP}logs.configure({level!r})\nlog = logs.Log('test')\n{code}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    return [json.loads(line) for line in done.stderr.splitlines()]


def test_an_event_has_its_name_level_time_and_fields() -> None:
    """The fields are beside the event, not in a text; what JSON does not know comes as text."""
    (line,) = lines(
        "from uuid import UUID; log.warning(Event.DEAD_MESSAGE, readable=True, id=UUID(int=1), text='a\\nb')"
    )
    assert line.pop("ts").endswith("Z")
    assert line == {
        "event": "dead_message",
        "level": "warning",
        "readable": True,
        "id": "00000000-0000-0000-0000-000000000001",
        "text": "a\nb",
    }


def test_a_librarys_record_is_an_event_of_its_own() -> None:
    """It says which logger spoke; a traceback is one field of the one line."""
    code = "try:\n    1 / 0\nexcept ZeroDivisionError:\n    logging.getLogger('celery.worker').exception('it %s', 'broke')"
    (line,) = lines(code)
    assert (line["event"], line["logger"], line["message"], line["level"]) == (
        "log",
        "celery.worker",
        "it broke",
        "error",
    )
    assert "ZeroDivisionError" in line["exception"]


def test_a_python_warning_is_a_line_of_json() -> None:
    """Celery warns of many things that way; a log collector must not choke on them."""
    (line,) = lines("warnings.warn('two\\nlines', UserWarning)")
    assert (line["event"], line["logger"], line["level"]) == ("log", "py.warnings", "warning")
    assert "two\nlines" in line["message"]


def test_the_chatter_of_libraries_is_left_out() -> None:
    """They speak from warnings on; a task that gave its message back has said why by an event of its own."""
    code = (
        "for name in ('celery', 'kombu', 'amqp', 'httpx2', 'asyncio'): logging.getLogger(name).info('chatter')\n"
        "logging.getLogger('celery.app.trace').warning('reject')\n"
        "logging.getLogger('celery.app.trace').error('raised unexpected')"
    )
    assert [line["message"] for line in lines(code, "debug")] == ["raised unexpected"]


def test_the_level_is_the_one_that_was_asked_for() -> None:
    """debug shows all; warning hides what goes well."""
    code = "log.debug(Event.QUEUE_FULL)\nlog.info(Event.RELAY_STARTED)\nlog.error(Event.START_REFUSED)"
    assert len(lines(code, "debug")) == 3
    assert [line["event"] for line in lines(code, "warning")] == ["start_refused"]

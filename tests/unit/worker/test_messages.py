"""The message between relay and worker: ids only, and exactly what Celery itself would build."""

import json
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncebox_worker import process
from oncebox_worker.messages import DELIVER_TASK, Chunk, ChunkResult, accepted_ids
from oncebox_worker.settings import WorkerSettings
from oncebox_worker.task_messages import chunk_of, task_message

CHUNKS = st.builds(
    Chunk,
    destination=st.text(min_size=1, max_size=20),
    ids=st.lists(st.uuids(), min_size=1, max_size=5).map(tuple),
    dispatched_at=st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-9, minutes=-30))])),
)


def a_chunk() -> Chunk:
    return Chunk(
        destination="notes", ids=(uuid4(), uuid4()), dispatched_at=datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
    )


@given(CHUNKS)
def test_a_chunk_comes_back_as_it_went(chunk: Chunk) -> None:
    """To the microsecond: the stamp that it names is compared with the one in the table."""
    back = chunk_of(task_message(chunk).body)
    assert back == chunk
    assert back is not None
    assert back.dispatched_at == chunk.dispatched_at


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has a worker's settings, for one test."""
    monkeypatch.setattr(process, "_settings", [])
    process.use(
        WorkerSettings.model_construct(
            database_url="postgresql://x/y", broker_url="amqp://x", queue_prefix="oncebox", concurrency=8
        )
    )


@pytest.mark.usefixtures("configured")
def test_the_message_is_what_the_workers_own_app_would_build() -> None:
    """A Celery upgrade cannot drift past us: headers, properties and body are those of `as_task_v2`."""
    from oncebox_worker.app import app

    chunk = a_chunk()
    built = task_message(chunk)
    expected = app.amqp.as_task_v2(
        built.id, DELIVER_TASK, (chunk.as_message(),), {}, argsrepr="-", kwargsrepr="-"
    )
    assert built.headers == expected.headers
    assert built.properties == expected.properties
    assert json.loads(built.body) == json.loads(json.dumps(expected.body))
    assert app.tasks[DELIVER_TASK].name == built.headers["task"]


def test_each_message_is_a_task_of_its_own() -> None:
    """Two messages of one chunk are told apart by the broker's confirms and by Celery's log."""
    chunk = a_chunk()
    assert task_message(chunk).id != task_message(chunk).id


def test_no_header_shows_the_ids() -> None:
    """Celery puts a repr of the arguments into the headers, where tools print it: ours is empty."""
    chunk = a_chunk()
    headers = json.dumps(task_message(chunk).headers)
    assert not any(str(id) in headers for id in chunk.ids)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "null",
        "{broken",
        "[]",
        "[[]]",
        '"text"',
        "[[1], {}, {}]",
        "[[{}], {}, {}]",
        '[[{"v": 2, "destination": "notes", "ids": [], "dispatched_at": "2026-01-01T00:00:00Z"}], {}, {}]',
        '[[{"v": 1, "destination": "notes", "ids": ["x"], "dispatched_at": "2026-01-01T00:00:00Z"}], {}, {}]',
        '[[{"v": 1, "destination": "notes", "ids": [], "dispatched_at": "soon"}], {}, {}]',
        b"\xff\xfe",
        b"\x80",
    ],
)
def test_a_body_that_is_not_ours_is_no_chunk(body: bytes | str) -> None:
    """None, whatever it is: a relay must outlive any message in its queue."""
    assert chunk_of(body) is None


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_no_body_makes_the_reader_fail(body: bytes | str) -> None:
    """Arbitrary bytes are at worst unreadable."""
    chunk_of(body)


def test_a_member_that_a_newer_version_adds_is_left_out() -> None:
    """F18: during a rolling deploy old workers read new messages."""
    chunk = a_chunk()
    body = json.loads(task_message(chunk).body)
    body[0][0]["priority"] = 7
    assert chunk_of(json.dumps(body)) == chunk


def test_only_accepted_chunks_count() -> None:
    """How many operations the broker took over."""
    ids: tuple[UUID, ...] = (uuid4(), uuid4(), uuid4())
    chunk = Chunk(destination="notes", ids=ids, dispatched_at=datetime.now(UTC))
    assert accepted_ids([ChunkResult(chunk, True), ChunkResult(chunk, False, "no confirm in time")]) == 3

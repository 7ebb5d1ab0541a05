"""The note service over HTTP: every answer is what a small model says, in one tour and in random histories."""

from collections import Counter
from collections.abc import Callable, Generator

import httpx2
import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.notes.running import RunningService
from tests.proof.properties.budget import tries
from tests.proof.properties.note_machine import NoteService, Surroundings
from tests.proof.properties.note_model import Due, Write
from tests.proof.properties.serving import serving
from tests.support.processes import Processes

EXAMPLES = 40
Bind = Callable[[Counter[str]], type[NoteService]]

EVERY_KIND = {
    "executed",
    "replayed",
    "argument_conflict",
    "busy",
    "deadline_invalid",
    "folder_not_writable",
    "invalid_argument",
    "note_not_found",
    "operation_expired",
    "operation_sealed",
    "precondition_failed",
    "precondition_required",
    "unauthenticated",
}


@pytest.fixture(scope="module")
def service(
    notes_database: str, processes: Processes, tmp_path_factory: pytest.TempPathFactory
) -> Generator[RunningService, None, None]:
    """Who meets a held key waits very shortly: the machine holds many."""
    folder = tmp_path_factory.mktemp("notes")
    with serving(notes_database, processes, folder, lock_timeout_seconds=0.02) as running:
        yield running


@pytest.fixture(scope="module")
def bind(service: RunningService) -> Generator[Bind, None, None]:
    """The machine of this service; each of its examples has tenants of its own."""
    with (
        httpx2.Client(base_url=service.url, timeout=30) as http,
        service.connect() as operator,
        service.connect() as holder,
    ):

        def bound(met: Counter[str]) -> type[NoteService]:
            class Bound(NoteService):
                surroundings = Surroundings(
                    service.settings.admission_window_seconds, http, operator, holder, met
                )

            return Bound

        yield bound


def write(key: str, text: str = "Reef B.", folder: str = "drafts", due: Due = Due.AHEAD) -> Write:
    return Write(key, "note.create", {"folder": folder, "title": "Reef", "text": text}, due)


def test_each_kind_of_answer_is_met_once(bind: Bind) -> None:
    """The model is no empty promise: it foretells all of these."""
    met: Counter[str] = Counter()
    machine = bind(met)()
    ann = ("a/ann", None)
    machine.begin()
    for asked in (write("note-1", "Reef A."), write("note-1"), write("note-2", folder="archive")):
        machine.create(ann, asked, quoted=True)
    machine.create(ann, write("note-2", due=Due.PASSED), quoted=False)
    machine.create(ann, write("note-2", due=Due.TOO_FAR), quoted=False)
    machine.create(("nobody", None), write("note-2"), quoted=False)
    machine.create(("worker", None), write("note-2"), quoted=False)
    machine.while_the_key_is_held("a/ann", write("note-2"))
    machine.seal(ann, "note-2", Due.PASSED)
    machine.create(ann, write("note-2"), quoted=False)
    for name, key in (("a/ann", "note-3"), ("b/ann", "note-3"), ("a/bob", "note-2")):
        for tag in ("missing", "wrong", "right"):
            machine.revise((name, None), (key, 0, tag, "Reef B.", Due.AHEAD))
    twice = [
        (None, ("note-4", 0, "right", "Reef C.", Due.AHEAD)),
        (None, ("note-5", 0, "right", "Reef D.", Due.AHEAD)),
    ]
    machine.batch(ann, twice)
    machine.purge()
    machine.read(ann, 0, None)
    machine.nothing_else_was_recorded()
    machine.teardown()
    assert met.keys() == EVERY_KIND


def test_every_answer_is_what_the_model_says(bind: Bind) -> None:
    """R24, R26, R29, R38, R39, R41: replays are the same bytes, a refusal records nothing, a key is one principal's."""
    met: Counter[str] = Counter()
    run_state_machine_as_test(bind(met), settings=tries(EXAMPLES, steps=40))
    # Every example writes its first three notes; more than that shows that histories go on.
    assert met["executed"] > EXAMPLES * 3, met
    assert min(met["replayed"], met["argument_conflict"]) > 5, met

"""One row, played: a victim is struck at its point, both ledgers are looked at, survivors finish, and the receiver's
database decides."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.proof.matrix.forks import Fork
from tests.proof.matrix.moments import Moment, Row
from tests.proof.matrix.outcome import Outcome
from tests.proof.matrix.seams.trap import Arm
from tests.proof.matrix.town import NOTHING, Look, Town
from tests.support.polling import eventually

KILLED: Final = -9
DEAD_WORKER: Final = 1
"""The process id in the name of a worker that died before the row began."""
REACH_S: Final = 10.0
"""Longest wait for a victim to reach its point, in seconds."""
_SETTLED_S: Final = 0.06
"""Longer than a worker takes from one call of a chunk to the next, in seconds."""
_NEVER: Final = frozenset({"refused", "not_saved"})
"""Said of an operation for which the receiver will never hold one."""
_NO_NOTE: Final = frozenset({NOTHING, "pending", "retrying", "refused", "not_saved"})
"""Said of an operation for which the receiver holds no note."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One row's part of the installation. `key` names its operation."""

    row: Row
    town: Town
    arm: Arm

    @property
    def key(self) -> str:
        return self.row.slug

    @property
    def gate(self) -> Path:
        """Made when the trap is to be set, for a point that is passed before its operation comes."""
        return self.town.folder / f"{self.row.slug}.gate"

    @property
    def gated(self) -> Arm:
        return Arm(self.arm.seam, self.arm.point, self.arm.moment, self.gate)


class Untrue(Exception):
    """The sender said what the receiver's database contradicts. No poll may wait until it is true again."""


Step = Callable[[Scene], None]
Epilogue = Callable[[Scene, Fork], None]


def nothing(_: Scene) -> None:
    """For a scenario in which nothing has to be put right."""


def no_more(_: Scene, __: Fork) -> None:
    """For a scenario whose ledgers say everything."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """How a point is reached. what: for the page, in a few words.

    prepare: what is there before. strike: starts the victim and leads it to its point. mend: what a person puts right
    before the survivors come. afterwards: what must hold, beside the ledgers, once the survivors are done.
    armed: the point's name in its seam, where it is not its own.
    lost_exit: how a victim ends whose reply is lost; None: it lives on.
    orphans: a lost reply leaves a lease that nobody knows of.
    ends: the state in the end, or by moment.
    """

    what: str
    prepare: Step
    strike: Callable[[Scene], Fork]
    armed: str | None = None
    mend: Step = nothing
    afterwards: Epilogue = no_more
    lost_exit: int | None = None
    orphans: bool = False
    ends: str | Mapping[Moment, str] = "saved"

    def end(self, moment: Moment) -> str:
        return self.ends if isinstance(self.ends, str) else self.ends[moment]


def play(row: Row, scenario: Scenario, town: Town) -> Outcome:
    """Play a row. Raises NotReached, Untrue, and AssertionError for whatever else is not as it must be."""
    scene = Scene(row, town, Arm(row.seam, scenario.armed or row.point, row.moment))
    try:
        town.begin(row.slug)
        return _played(scene, scenario)
    except Exception as error:
        error.add_note(town.cast.tails())
        raise
    finally:
        town.cast.rest()


def _played(scene: Scene, scenario: Scenario) -> Outcome:
    town, key = scene.town, scene.key
    versions_before = _versions(town)
    scenario.prepare(scene)
    victim = scenario.strike(scene)
    victim.wait_until_reached(REACH_S)
    if scene.row.moment is Moment.LOST:
        first, later = _lost(scene, scenario, victim)
    else:
        first, later = _killed(scene, victim)
    scenario.mend(scene)
    town.cast.be_whole()
    town.drain(lambda: _true(town.look(key)))
    if scene.row.moment is Moment.LOST and scenario.lost_exit is None:
        assert victim.exit_code() is None, f"{victim} was to live on"
    scenario.afterwards(scene, victim)
    last = _true(town.look(key))
    assert last.said == scenario.end(scene.row.moment), last
    _check_ledgers(town, _versions(town) - versions_before)
    return Outcome(first.said, first.notes, later.said, last.said, last.notes)


def _killed(scene: Scene, victim: Fork) -> tuple[Look, Look]:
    """What was said right after the end of the victim, and what once its leases had run out."""
    town = scene.town
    assert victim.wait() == KILLED, victim
    if town.cast.role_of(victim) == "notes":
        # A worker whose receiver died under its call needs a moment to see it.
        eventually(
            lambda: _true(town.look(scene.key)).said != "sending", what="the caller of the dead notices"
        )
    first = _true(town.look(scene.key))
    town.let_time_pass([victim.pid, DEAD_WORKER])
    later = _true(town.look(scene.key))
    assert later.said != "sending", "nobody is alive who could be at work on it"
    return first, later


def _lost(scene: Scene, scenario: Scenario, victim: Fork) -> tuple[Look, Look]:
    """What was said while the reply is lost and nobody knows, and what once the victim knows and has acted on it."""
    town = scene.town
    first = _true(town.look(scene.key))
    town.let_time_pass([victim.pid, DEAD_WORKER] if scenario.orphans else [DEAD_WORKER])
    role = town.cast.role_of(victim)
    # Whoever is in a call with the victim goes on with it.
    town.cast.freeze_all_but(role, "worker" if role == "notes" else role)
    victim.go_on()
    if scenario.lost_exit is None:
        eventually(lambda: _at_rest(scene), what="the victim has acted on it", interval=_SETTLED_S)
    else:
        assert victim.wait() == scenario.lost_exit, victim
    return first, _true(town.look(scene.key))


def _at_rest(scene: Scene) -> bool:
    """Nobody is at work on it, nor a moment later."""
    said = _true(scene.town.look(scene.key)).said
    time.sleep(_SETTLED_S)
    return not scene.town.leased() and _true(scene.town.look(scene.key)).said == said


def _versions(town: Town) -> int:
    """All notes, and all versions of them: a revision is a version of its own."""
    return int(town.notes.value("SELECT count(*) FROM note_version"))


def _true(look: Look) -> Look:
    """The look, if what the sender said agrees with what the receiver held. A note never goes away."""
    wrong = (
        (look.said in _NO_NOTE and look.notes_before > 0)
        or (look.said in _NEVER and look.notes > 0)
        or (look.said == "saved" and look.notes == 0)
        or look.notes > 1
    )
    if wrong:
        raise Untrue(str(look))
    return look


def _check_ledgers(town: Town, versions: int) -> None:
    """Every operation of the row: saved and one note, or something else and none; and no note of nobody's."""
    ended = town.sender.rows("SELECT operation_id, final FROM oncebox.operation")
    for key, final in ended:
        assert len(town.notes.notes_of(key)) == (final == "saved"), (key, final)
    assert versions == sum(final == "saved" for _, final in ended), ended
    assert town.sender.violations() == []

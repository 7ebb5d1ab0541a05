"""How each named statement of the sender is reached: by the program that runs it."""

import json
from collections.abc import Mapping
from typing import Final

from tests.proof.matrix import stage
from tests.proof.matrix.forks import Fork
from tests.proof.matrix.moments import Moment
from tests.proof.matrix.play import Scenario, Scene, Step, nothing
from tests.proof.matrix.seams.sender_sql import COMMIT
from tests.proof.matrix.town import NOTHING

UNREACHABLE: Final = 9
_WINDOW_S: Final = 30 * 86_400.0
"""Longer than the receiver admits."""
# What is committed by the agent only when its transaction comes to its end: a kill rolls it back, and after a lost
# reply the agent runs it again.
_IN_TRANSACTION: Final = {Moment.BEFORE: NOTHING, Moment.AFTER: NOTHING, Moment.LOST: "saved"}


def command(scene: Scene, *arguments: str, changed: Mapping[str, str | None] | None = None) -> Fork:
    """`oncebox …`, armed."""
    return scene.town.cast.start("oncebox", *arguments, arm=scene.arm, changed=changed)


def _asks(
    *arguments: str,
    prepare: Step = stage.pending,
    ends: str | Mapping[Moment, str] = "saved",
    changed: Mapping[str, str | None] | None = None,
    where: str = "",
) -> Scenario:
    """A command; KEY stands for the row's operation."""

    def strike(scene: Scene) -> Fork:
        told = [scene.key if argument == "KEY" else argument for argument in arguments]
        return command(scene, *told, "--json", changed=changed)

    return Scenario(
        f"`{' '.join(('oncebox', *arguments))}`{where}", prepare, strike, lost_exit=UNREACHABLE, ends=ends
    )


def _enqueues(
    what: str,
    *before: Mapping[str, object],
    armed: str | None = None,
    prepare: Step = stage.nothing_yet,
    ends: str | Mapping[Moment, str] = _IN_TRANSACTION,
    **more: object,
) -> Scenario:
    """An agent's own transaction: first `before`, then the row's operation with `more`."""

    def strike(scene: Scene) -> Fork:
        writes = [
            *(
                {"key": f"{scene.key}-{number}", "folder": "drafts", **write}
                for number, write in enumerate(before)
            ),
            {"key": scene.key, "folder": "drafts", **more},
        ]
        return scene.town.cast.start("agent", "save", json.dumps({"writes": writes}), arm=scene.arm)

    return Scenario(what, prepare, strike, armed=armed, lost_exit=0, ends=ends, afterwards=_told_the_truth)


def _told_the_truth(scene: Scene, agent: Fork) -> None:
    """What the agent said to be committed is there."""
    said = [json.loads(line) for line in agent.output().splitlines()]
    for key in (key for line in said for key in line.get("committed", ())):
        assert scene.town.look(key).said != NOTHING, key


def _relays(what: str, prepare: Step, ends: str = "saved", *, lost_exit: int | None = None) -> Scenario:
    return Scenario(
        what, prepare, lambda scene: scene.town.cast.relay(scene.arm), ends=ends, lost_exit=lost_exit
    )


def _starts_worker(what: str, prepare: Step = stage.pending, mend: Step = nothing) -> Scenario:
    """A worker's checks before it starts: without a database it does not, and says so."""
    return Scenario(
        what,
        prepare,
        lambda scene: scene.town.cast.worker(scene.arm),
        lost_exit=UNREACHABLE,
        mend=mend,
    )


def works(scene: Scene) -> Fork:
    """A healthy relay, and a worker that is the victim."""
    victim = scene.town.cast.worker(scene.arm)
    scene.town.cast.relay()
    return victim


def _prunes_again(scene: Scene, _: Fork) -> None:
    """Nothing holds a later prune up."""
    again = scene.town.cast.start("oncebox", "prune", changed={"ONCEBOX_NOTES_DATABASE_URL": None})
    assert again.wait() == 0, again.tail()


def _pruning(*arguments: str) -> Scenario:
    def strike(scene: Scene) -> Fork:
        return command(scene, "prune", *arguments, changed={"ONCEBOX_NOTES_DATABASE_URL": None})

    what = " ".join(("oncebox prune", *arguments))
    return Scenario(
        f"`{what}`", stage.saved_long_ago, strike, lost_exit=UNREACHABLE, afterwards=_prunes_again
    )


_NO_NOTES_DATABASE: Final = {"ONCEBOX_NOTES_DATABASE_URL": None}
_DOCTOR: Final = _asks("doctor", changed=_NO_NOTES_DATABASE)
_LAG: Final = _asks("lag")
_VERIFY: Final = _asks("verify", prepare=stage.saved)
_CANCELLED: Final = {Moment.BEFORE: "saved", Moment.AFTER: "not_saved", Moment.LOST: "not_saved"}

SCENARIOS: Final = {
    "COMMIT enqueue": _enqueues(
        "an agent's transaction",
        armed=COMMIT,
        ends={Moment.BEFORE: NOTHING, Moment.AFTER: "saved", Moment.LOST: "saved"},
    ),
    "COMMIT cancel": Scenario(
        "`oncebox cancel`",
        stage.pending,
        lambda scene: command(scene, "cancel", scene.key),
        armed=COMMIT,
        lost_exit=UNREACHABLE,
        ends=_CANCELLED,
    ),
    "admission": _enqueues("an agent's transaction, with a write that is refused", {"deadline_s": _WINDOW_S}),
    "arguments": Scenario(
        "`oncebox enqueue --supersedes`",
        stage.cancelled_before,
        lambda scene: command(
            scene, "enqueue", "--operation-id", scene.key, "--supersedes", f"{scene.key}-old"
        ),
        lost_exit=UNREACHABLE,
        ends=NOTHING,
    ),
    "cancel": _asks("cancel", "KEY"),
    "capabilities": _starts_worker("a worker's start"),
    "claim": Scenario("a worker", stage.pending, works, orphans=True),
    "clock": _DOCTOR,
    "destinations": _LAG,
    "dispatch": _relays("a relay", stage.pending),
    "enqueue": _enqueues("an agent's transaction"),
    "existing": _enqueues(
        "an agent's transaction, for what is committed already", prepare=stage.pending, ends="saved"
    ),
    "find": _asks("status", "KEY", prepare=stage.unknown),
    "has_revision": _DOCTOR,
    "in_review": _DOCTOR,
    "lag": _LAG,
    "ledger": _VERIFY,
    "list_all": _asks("list"),
    "list_open": _asks("list", "--state", "pending"),
    "list_settled": _asks("list", "--state", "saved", prepare=stage.saved),
    "lock_ordering_keys": _enqueues("an agent's transaction, with an ordering key", ordering_key="log"),
    "orphans": _DOCTOR,
    "park_poison": _relays(
        "a relay, of an operation that ended five workers", stage.poisonous, "needs_review"
    ),
    "prunable": _pruning("--dry-run"),
    "prune_calls": _pruning(),
    "prune_lock": _pruning(),
    "prune_operations": _pruning(),
    "prune_unlock": _pruning(),
    "receivers": _starts_worker(
        "a worker's start, where another receiver answers",
        stage.other_receiver,
        mend=lambda scene: scene.town.know_receiver(),
    ),
    "reconcile": _asks("reconcile", prepare=stage.sent),
    "register_destination": _starts_worker("a worker's start"),
    "retry": _asks("retry", "KEY", prepare=stage.sent),
    "revision": _DOCTOR,
    "roles": _DOCTOR,
    "see_capabilities": _starts_worker("a worker's start"),
    "server": _relays("a relay's start", stage.pending, lost_exit=UNREACHABLE),
    "settle": Scenario("a worker", stage.pending, works),
    "settle_unsent": _relays("a relay, past the deadline", stage.expired, "not_saved"),
    "stuck": _DOCTOR,
    "timeline": _asks("show", "KEY", prepare=stage.unknown),
    "undispatch": _relays("a relay, of a dead letter", stage.set_aside),
    "verify_content": _VERIFY,
    "verify_count": _asks(
        "verify", prepare=stage.saved, changed={"FORCE_COLOR": "1"}, where=" at a terminal"
    ),
    "verify_known": _VERIFY,
    "verify_violations": _VERIFY,
    "violations": _LAG,
}

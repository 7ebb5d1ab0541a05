"""How each statement of the note service is reached: by a request that it serves, or by its operator's program."""

import hashlib
from collections.abc import Callable
from typing import Final

import psycopg

from oncebox_notes import statements
from tests.proof.matrix import agent, stage
from tests.proof.matrix.forks import Fork
from tests.proof.matrix.play import REACH_S, Scenario, Scene, Step
from tests.proof.matrix.scenarios_of_sender import UNREACHABLE
from tests.support.polling import eventually

_PARTY: Final = ("--tenant", agent.OUTBOX.tenant, "--principal", agent.OUTBOX.principal)
_LOOKS_AT_START: Final = 2
"""How often a worker asks for the capabilities when it starts: before, and when its watch begins."""
_VARIABLE: Final = "MATRIX_TOKEN"


def _starts(scene: Scene) -> Fork:
    """The note service starts in the place of the one that ran."""
    return scene.town.cast.note_service(scene.arm)


def _serves(scene: Scene) -> Fork:
    """A note service that is the victim, with a healthy relay and worker."""
    town = scene.town
    victim = _starts(scene)
    victim.wait_for('"ready"')
    town.cast.relay()
    town.cast.worker()
    return victim


def _serves_a_late_one(scene: Scene) -> Fork:
    """The same, for what every request does: the trap is set when the worker has started, then the operation comes."""
    town = scene.town
    victim = town.cast.note_service(scene.gated)
    victim.wait_for('"ready"')
    town.cast.relay()
    town.cast.new_worker()
    eventually(
        lambda: victim.errors().count("/v1/capabilities") >= _LOOKS_AT_START,
        timeout=REACH_S,
        what="the worker has looked at the receiver",
    )
    scene.gate.touch()
    stage.pending(scene)
    return victim


def _greets_a_worker(scene: Scene) -> Fork:
    """The same, when a worker starts."""
    victim = _starts(scene)
    victim.wait_for('"ready"')
    scene.town.cast.new_worker()
    return victim


def _seals_a_busy_key(scene: Scene) -> Fork:
    """The key is held while the seal comes, until the service waits for it or is at its point."""
    town = scene.town
    with psycopg.connect(town.notes_database) as holder:
        holder.execute(
            f"SELECT pg_advisory_xact_lock({statements.KEY_LOCK})"  # pyright: ignore[reportArgumentType] our own
            " FROM (VALUES (%s::text, %s::text, %s::text)) AS held(tenant, principal, key)",
            [agent.OUTBOX.tenant, agent.OUTBOX.principal, scene.key],
        )
        victim = _serves(scene)
        eventually(
            lambda: victim.has_reached() or town.notes.waiting(),
            timeout=REACH_S,
            what="the key is waited for",
        )
    return victim


def _asked(path: str) -> Callable[[Scene], Fork]:
    """One GET of a client, while the victim serves."""

    def strike(scene: Scene) -> Fork:
        victim = _starts(scene)
        victim.wait_for('"ready"')
        scene.town.cast.start("agent", "get", path.replace("KEY", scene.key))
        return victim

    return strike


def _verified(scene: Scene) -> Fork:
    victim = _starts(scene)
    victim.wait_for('"ready"')
    scene.town.cast.start("oncebox", "verify", "--deep", "--json")
    return victim


def _operates(scene: Scene, *arguments: str, armed: bool = True) -> Fork:
    """`python -m oncebox_notes …`; FOLDER and TOKEN stand for the row's own."""
    token = _token_of(scene)
    own = {"FOLDER": stage.folder_of(scene), "TOKEN": token.split("_")[1]}
    told = [own.get(argument, argument) for argument in arguments]
    arm = scene.arm if armed else None
    return scene.town.cast.start("oncebox_notes", *told, arm=arm, changed={_VARIABLE: token})


def _token_of(scene: Scene) -> str:
    """In the form of the service's own."""
    return f"oncebox_{hashlib.sha256(scene.key.encode()).hexdigest()[:16]}_{'A' * 43}"


def _registered(scene: Scene) -> None:
    """The row's token is known already."""
    stage.pending(scene)
    done = _operates(scene, *_REGISTER, armed=False)
    assert done.wait() == 0, done.tail()


def _served(
    what: str, prepare: Step, ends: str = "saved", strike: Callable[[Scene], Fork] = _serves
) -> Scenario:
    """A lost reply of its database ends no service."""
    return Scenario(what, prepare, strike, ends=ends)


def _administers(*arguments: str, prepare: Step = stage.pending, ends: str = "saved") -> Scenario:
    def strike(scene: Scene) -> Fork:
        return _operates(scene, *arguments)

    what = f"`python -m oncebox_notes {' '.join(arguments[:2])}`"
    return Scenario(what, prepare, strike, lost_exit=UNREACHABLE, ends=ends)


_REGISTER: Final = ("token", "create", *_PARTY, "--value-from-env", _VARIABLE)
_ADD: Final = ("grant", "add", *_PARTY, "--folder", "FOLDER")
_REVOKE: Final = ("grant", "revoke", *_PARTY, "--folder", "FOLDER")
_WRITING: Final = _served("a batch", stage.pending)
_STATUS: Final = _served("a status query", stage.sent)
_SEAL: Final = _served("a seal", stage.given_up, "not_saved")
_BUSY: Final = _served("a seal of a busy key", stage.given_up, "not_saved", _seals_a_busy_key)
_REVISING: Final = _served("a revision", stage.revision)
# What was granted is rolled back with the one who granted it.
_GRANTING: Final = _administers(*_ADD, prepare=stage.without_grant, ends="refused")
_PURGING: Final = _administers("purge", prepare=stage.sealed_long_ago, ends="not_saved")

SCENARIOS: Final = {
    "AUTHENTICATE": _served("a batch", stage.nothing_yet, strike=_serves_a_late_one),
    "BEGIN": _WRITING,
    "CLOCK": _STATUS,
    "COMMIT": _WRITING,
    "FOLDER_CREATE": _GRANTING,
    "FORGETFUL": Scenario("the start", stage.pending, _starts, lost_exit=UNREACHABLE),
    "GRANTS_READ": _WRITING,
    "GRANT_ADD": _GRANTING,
    "GRANT_LIST": _administers("grant", "list"),
    "GRANT_LIVE": _administers(*_ADD, prepare=stage.with_grant),
    "GRANT_LOCKS_SHARED": _WRITING,
    "GRANT_LOCK_EXCLUSIVE": _GRANTING,
    "GRANT_REVOKE": _administers(*_REVOKE, prepare=stage.with_grant),
    "KEYS_HELD": _STATUS,
    "KEY_LOCK_TRY": _WRITING,
    "KEY_LOCK_WAIT": _BUSY,
    "LOCK_TIMEOUT_LOCAL": _BUSY,
    "NOTES_CURRENT": _REVISING,
    "NOTES_LOCK": _REVISING,
    "NOTES_OF_OPERATION": _served(
        "a look-up by operation", stage.saved, strike=_asked("/v1/notes?operation=KEY")
    ),
    "NOTES_TO_REVISE": _REVISING,
    "NOTE_READ": _served("`oncebox verify --deep`", stage.saved, strike=_verified),
    "PERMITTED_FOLDERS": _served("a batch without a grant", stage.without_grant, "refused"),
    "PURGE": _PURGING,
    "PURGE_CANDIDATES": _PURGING,
    "PURGE_LOCK_TRY": _PURGING,
    "RECEIVER": _served("a worker's start", stage.pending, strike=_greets_a_worker),
    "RECORDS_READ": _WRITING,
    "SCHEMA_REVISION": _served("a probe of its health", stage.pending, strike=_asked("/readyz")),
    "SEAL": _SEAL,
    "SESSION_SETTINGS": _served("the start", stage.pending, strike=_starts),
    "TOKEN_CREATE": _administers("token", "create", *_PARTY),
    "TOKEN_LIST": _administers("token", "list"),
    "TOKEN_REGISTER": _administers(*_REGISTER),
    "TOKEN_REGISTERED": _administers(*_REGISTER, prepare=_registered),
    "TOKEN_REVOKE": _administers("token", "revoke", "TOKEN", prepare=_registered),
    "WRITE": _WRITING,
}

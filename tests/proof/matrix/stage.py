"""How things stand before a victim starts: operations in every state that a point needs, made by the product's code."""

from datetime import timedelta
from typing import Final
from uuid import UUID

from kombu import Exchange
from sqlalchemy.orm import Session

from oncebox_outbox import cancelling
from oncebox_outbox.claiming import Claim, claim, dispatch
from oncebox_outbox.policy import Policy
from oncebox_worker.messages import Chunk
from oncebox_worker.task_messages import task_message
from tests.proof.matrix import agent
from tests.proof.matrix.play import DEAD_WORKER, Scene

POLICY: Final = Policy()
_DEAD: Final = f"matrix:{DEAD_WORKER}:dead"
_LONG_AGO: Final = timedelta(days=40)


def pending(scene: Scene) -> None:
    """Committed, and nothing was sent."""
    scene.town.save(scene.key)


def nothing_yet(scene: Scene) -> None:
    """Nobody has wanted anything."""


def unknown(scene: Scene) -> None:
    """A worker claimed it and died before its first byte: nobody can know that."""
    _claimed(scene, scene.town.save(scene.key))


def sent(scene: Scene) -> None:
    """A worker sent it and died before the reply: the note is there, and nobody knows."""
    town = scene.town
    for call in _claimed(scene, town.save(scene.key)).calls:
        operations = [operation.outgoing for operation in call.operations]
        town.loop.run(town.receiver.send(call.call_id, operations))


def given_up(scene: Scene) -> None:
    """Of unknown outcome, then cancelled: its key is to be sealed."""
    unknown(scene)
    with scene.town.engine.begin() as connection:
        cancelling.cancel(connection, scene.town.id_of(scene.key))


def cancelled_before(scene: Scene) -> None:
    """Another operation was cancelled before anything was sent; the row's own is to replace it."""
    id = scene.town.save(f"{scene.key}-old")
    with scene.town.engine.begin() as connection:
        cancelling.cancel(connection, id)


def saved(scene: Scene) -> None:
    """Delivered."""
    scene.town.deliver(scene.town.save(scene.key))


def saved_long_ago(scene: Scene) -> None:
    """Delivered, and old enough to be pruned."""
    saved(scene)
    town = scene.town
    town.sender.execute("UPDATE oncebox.operation SET settled_at = settled_at - %s", _LONG_AGO)
    town.sender.execute("UPDATE oncebox.call SET started_at = started_at - %s", _LONG_AGO)


def sealed_long_ago(scene: Scene) -> None:
    """Given up and sealed; its tombstone is older than any packet that can be admitted."""
    given_up(scene)
    town = scene.town
    town.deliver(town.id_of(scene.key))
    town.notes.execute(
        "UPDATE operation_record SET created_at = created_at - %s, deadline = deadline - %s WHERE key = %s",
        _LONG_AGO,
        _LONG_AGO,
        scene.key,
    )


def expired(scene: Scene) -> None:
    """Its deadline has passed, and nothing was ever sent."""
    pending(scene)
    for table in ("operation", "outbox_entry"):
        scene.town.sender.execute(f"UPDATE oncebox.{table} SET deadline = now() - interval '1 s'")


def poisonous(scene: Scene) -> None:
    """Every worker that claimed it died, as often as is allowed."""
    id = scene.town.save(scene.key)
    for _ in range(POLICY.poison_claims):
        _claimed(scene, id)


def set_aside(scene: Scene) -> None:
    """Handed over, and the broker gave its message up: it is among the dead letters."""
    pending(scene)
    town = scene.town
    due = dispatch(town.worker_engine, POLICY, low_mark=None, limit=1)
    chunk = Chunk(
        destination=agent.OUTBOX.destination,
        ids=tuple(entry.id for entry in due),
        dispatched_at=due[0].dispatched_at,
    )
    built = task_message(chunk)
    dead = town.queues.topology.dead
    assert isinstance(dead.exchange, Exchange)
    message = town.queues.channel.prepare_message(
        built.body, content_type="application/json", content_encoding="utf-8", headers=built.headers
    )
    town.queues.channel.basic_publish(message, exchange=dead.exchange.name)


def without_grant(scene: Scene) -> None:
    """For a folder that its principal has no grant for."""
    scene.town.save(scene.key, folder_of(scene))


def with_grant(scene: Scene) -> None:
    """For a folder of its own, with a grant in force."""
    scene.town.grant(folder_of(scene))
    scene.town.save(scene.key, folder_of(scene))


def revision(scene: Scene) -> None:
    """A new version of a note that is there: the operation's own note is that version."""
    town = scene.town
    base = f"{scene.key}-base"
    town.deliver(town.save(base))
    with Session(town.engine) as session, session.begin():
        agent.revise(session, scene.key, agent.OUTBOX.status(session, base))


def other_receiver(scene: Scene) -> None:
    """The destination belongs to another receiver than the one that answers at its address."""
    pending(scene)
    scene.town.sender.execute("UPDATE oncebox.destination SET receiver = 'another'")


def folder_of(scene: Scene) -> str:
    """A folder of the row's own."""
    return f"rows/{scene.key}"


def _claimed(scene: Scene, id: UUID) -> Claim:
    """Claimed by a worker that is dead, and whose lease has run out."""
    town = scene.town
    taken = claim(town.worker_engine, POLICY, agent.OUTBOX.destination, [id], worker=_DEAD)
    assert taken.calls, "it was to be claimed"
    town.sender.lapse_leases_of([DEAD_WORKER])
    return taken

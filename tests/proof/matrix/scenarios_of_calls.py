"""How each call to the receiver and to the broker is reached."""

from typing import Final

from tests.proof.matrix import stage
from tests.proof.matrix.forks import Fork
from tests.proof.matrix.play import Scenario, Scene
from tests.proof.matrix.scenarios_of_sender import command, works
from tests.proof.matrix.seams import broker_frames


def _folders(scene: Scene) -> Fork:
    return scene.town.cast.start("agent", "folders", arm=scene.arm)


def _relay(scene: Scene) -> Fork:
    return scene.town.cast.relay(scene.arm)


def _another_follows(scene: Scene, _: Fork) -> None:
    """The message that was not acknowledged has come again by the time that a later one is done."""
    scene.town.save(f"{scene.key}-later")
    scene.town.drain()


# Reads are tried again at once: a lost reply ends no command and no start.
HTTP: Final = {
    "capabilities": Scenario(
        "a worker's start", stage.pending, lambda scene: scene.town.cast.worker(scene.arm)
    ),
    "list_folders": Scenario("an agent", stage.pending, _folders, lost_exit=0),
    "read_note": Scenario(
        "`oncebox verify --deep`",
        stage.saved,
        lambda scene: command(scene, "verify", "--deep", "--json"),
        lost_exit=0,
    ),
    "seal": Scenario("a worker, of a cancelled operation", stage.given_up, works, ends="not_saved"),
    "send": Scenario("a worker", stage.pending, works),
    "status": Scenario("a worker, after another died", stage.sent, works),
}

BROKER: Final = {
    "dead": Scenario("a relay, of a dead letter", stage.set_aside, _relay),
    "dead ack": Scenario("a relay, of a dead letter", stage.set_aside, _relay, armed=broker_frames.ACK),
    "publish": Scenario("a relay", stage.pending, _relay),
    "task ack": Scenario(
        "a worker", stage.pending, works, armed=broker_frames.ACK, afterwards=_another_follows
    ),
    "waiting": Scenario("a relay", stage.pending, _relay),
}

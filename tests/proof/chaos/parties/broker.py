"""A RabbitMQ node of the run's own, from Debian's scripts: it shares nothing with the machine's broker."""

import os
import secrets
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Final

from tests.proof.chaos.parties.ports import ports_below_those_of_clients
from tests.proof.chaos.parties.spawning import Nursery
from tests.support.processes import RunningProcess

# Debian's command of the same name would become another user.
_SCRIPTS: Final = Path("/usr/lib/rabbitmq/bin")
_WATERMARK: Final = "0.4"
_ALARMING: Final = "0.00001"
_START_S: Final = 60.0
_CALL_S: Final = 30.0
_SET_WATERMARK: Final = "vm_memory_monitor set_vm_memory_high_watermark"


class BrokerMissing(Exception):
    """This machine has no RabbitMQ to start."""


class Broker:
    """``start`` it, and it takes connections at `address`; `kill`, `pause`, `alarm` as the run wants."""

    def __init__(self, nursery: Nursery, folder: Path) -> None:
        if not (_SCRIPTS / "rabbitmq-server").exists() or shutil.which("epmd") is None:
            raise BrokerMissing(f"no RabbitMQ in {_SCRIPTS}: install the package rabbitmq-server")
        self._nursery = nursery
        self._folder = folder
        self._node = f"chaos-{secrets.token_hex(4)}@localhost"
        self._port, distribution, self._epmd_port = ports_below_those_of_clients(3)
        self._starts = 0
        self._process: RunningProcess
        for name in ("home", "data", "logs"):
            (folder / name).mkdir(parents=True)
        (folder / "enabled_plugins").write_text("[].\n", encoding="ascii")
        (folder / "rabbitmq.conf").write_text("vm_memory_high_watermark.relative = 0.4\n", encoding="ascii")
        (folder / "rabbitmq-env.conf").touch()
        self._environment = {
            # Its secret word lies in the home folder.
            "HOME": str(folder / "home"),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": self._node,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "logs"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "rabbitmq-env.conf"),
            # One scheduler that sleeps when it has nothing to do: the machine is small and others want it, too.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none"
            " -kernel inet_dist_use_interface {127,0,0,1}",
        }

    @property
    def address(self) -> str:
        """host:port."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start the name server and the node; returns when it takes connections."""
        self._nursery.start("epmd", ["epmd", "-port", str(self._epmd_port)], self._environment)
        self.restart()

    def restart(self) -> None:
        """Start the node on the data of the one before, and wait until it takes connections."""
        self._starts += 1
        self._process = self._nursery.start(
            f"broker-{self._starts}", [_SCRIPTS / "rabbitmq-server"], self._environment
        )
        self._process.wait_for_port(self._port, timeout=_START_S)

    def kill(self) -> None:
        """kill -9 of the node and its helpers."""
        self._process.reap()

    def pause(self) -> None:
        """SIGSTOP for all of it."""
        os.killpg(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.killpg(self._process.pid, signal.SIGCONT)

    def alarm(self) -> None:
        """The memory alarm: no publisher gets anything through, and consumers go on."""
        self._call(f"{_SET_WATERMARK} [{_ALARMING}]")

    def end_alarm(self) -> None:
        self._call(f"{_SET_WATERMARK} [{_WATERMARK}]")

    def version(self) -> str:
        return self._call("rabbit_misc version []").strip('"')

    def _call(self, function: str) -> str:
        """Call a function of the node: what `rabbitmqctl` does, without a second Erlang machine for it."""
        secret = (self._folder / "home" / ".erlang.cookie").read_text(encoding="ascii").strip()
        done = subprocess.run(
            [_erl_call(), "-sname", self._node, "-c", secret, "-a", function],
            env={**os.environ, **self._environment},
            capture_output=True,
            text=True,
            timeout=_CALL_S,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{function}: {done.stdout}{done.stderr}")
        return done.stdout.strip()


def _erl_call() -> Path:
    found = sorted(Path("/usr/lib/erlang").glob("erts-*/bin/erl_call"))
    if not found:
        raise BrokerMissing("no erl_call in /usr/lib/erlang: install the package erlang-base")
    return found[-1]

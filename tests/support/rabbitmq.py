"""RabbitMQ for tests: a virtual host for each, where this machine's ``rabbitmqctl`` may make one."""

import os
import secrets
import shutil
import socket
import subprocess
from urllib.parse import urlsplit

GIVEN = "ONCEBOX_TEST_RABBITMQ_URL"
LOCAL = "amqp://guest:guest@127.0.0.1:5672//"


class RabbitMQ:
    """The broker at ONCEBOX_TEST_RABBITMQ_URL, else the one on this machine's standard port."""

    def __init__(self) -> None:
        self.url = os.environ.get(GIVEN, LOCAL)
        self._vhosts: list[str] = []

    def unreachable(self) -> str | None:
        """Why it cannot be used; None when it can."""
        address = urlsplit(self.url)
        try:
            socket.create_connection((address.hostname or "", address.port or 5672), 5.0).close()
        except OSError as error:
            return f"no RabbitMQ at {address.hostname}:{address.port or 5672} ({error}); start one or set {GIVEN}"
        return None

    def fresh_url(self) -> str:
        """The address of an empty virtual host; of the given one where we cannot make one."""
        if not self._is_local() or shutil.which("rabbitmqctl") is None:
            return self.url
        vhost, user = f"oncebox-test-{secrets.token_hex(4)}", urlsplit(self.url).username or "guest"
        # One start of the Erlang VM instead of two: it is what a test waits for.
        made = self._evaluate(
            f'rabbit_vhost:add(<<"{vhost}">>, <<"tests">>), rabbit_auth_backend_internal:set_permissions('
            f'<<"{user}">>, <<"{vhost}">>, <<".*">>, <<".*">>, <<".*">>, <<"tests">>).'
        )
        if not made:
            return self.url
        self._vhosts.append(vhost)
        return urlsplit(self.url)._replace(path=f"/{vhost}").geturl()

    def clean_up(self) -> None:
        """Delete the virtual hosts, queues and messages with them."""
        if self._vhosts:
            names = ", ".join(f'<<"{vhost}">>' for vhost in self._vhosts)
            self._evaluate(f'[catch rabbit_vhost:delete(Name, <<"tests">>) || Name <- [{names}]].')
            self._vhosts.clear()

    def _is_local(self) -> bool:
        address = urlsplit(self.url)
        return address.hostname in ("127.0.0.1", "localhost") and address.port in (None, 5672)

    def _evaluate(self, expression: str) -> bool:
        done = subprocess.run(
            ["rabbitmqctl", "eval", expression], capture_output=True, timeout=60, check=False
        )
        return done.returncode == 0

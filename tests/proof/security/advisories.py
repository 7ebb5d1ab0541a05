"""A vulnerability service on a socket, as `uv audit` asks one: it knows what a test tells it, and nothing else."""

import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Known = Mapping[tuple[str, str], Mapping[str, Any]]
"""An advisory in OSV's form, by the package and the version that it is about."""


@contextmanager
def serving(known: Known) -> Generator[str]:
    """The address of a service that knows these advisories."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            found = [known.get((query["package"]["name"], query["version"])) for query in asked]
            self._say({"results": [{"vulns": [{"id": each["id"]}]} if each else {} for each in found]})

        def do_GET(self) -> None:
            (found,) = [each for each in known.values() if self.path.endswith(f"/{each['id']}")]
            self._say(found)

        def _say(self, value: object) -> None:
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing on the test's screen."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()

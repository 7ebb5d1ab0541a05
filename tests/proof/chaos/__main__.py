"""Break everything on purpose while several agents enqueue at a steady pace, and show that one note results.

Everything is private to the run and real: two PostgreSQL servers, a RabbitMQ node, the note service, two relays, four
workers and five agents, each a process, with a network between them that can fail. They are killed, paused past the
lease and resumed, restarted, cut off and slowed; some clocks are ten minutes off; the disk of the note service's database
is full once; the broker is in a memory alarm now and then. Meanwhile everybody is asked all the time what is known.
Afterwards both databases are compared by SQL with what was committed, and every statement with what was true.

Progress goes to stderr; the report goes to stdout as Markdown. Exits with 0 when nothing was lost, nothing doubled,
nothing untrue said, and every kind of fault struck operations in flight; with 8 when anything of that does not hold; its
data and logs are kept then, and named. A run of 900 s or more must meet the full numbers: 150 faults, 8 of each kind.

Needs the package rabbitmq-server, a C compiler, and for the full disk the right to mount a file system: root, or a system
that lets its users have namespaces.

    python -m tests.proof.chaos                             15 minutes, as `make chaos`
    python -m tests.proof.chaos --seconds 60 --seed 7       a short form, with one fault of each kind
    python -m tests.proof.chaos --json chaos.json           the report for machines, too
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.proof.chaos import report
from tests.proof.chaos.plan import Size
from tests.proof.chaos.run import run

_CHECK_FAILED: Final = 8
_INSIDE: Final = "CHAOS_MAY_MOUNT"


def main(arguments: list[str]) -> int:
    given = _parser().parse_args(arguments)
    # Ctrl-C and a polite end clean up alike.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    started_at = datetime.now(UTC)
    folder = Path(tempfile.mkdtemp(prefix="oncebox-chaos-"))
    # The databases' own user must get through.
    folder.chmod(0o711)
    kept = given.keep
    try:
        happened, verdict = run(folder, Size(given.seconds, given.rate, given.seed), started_at)
        told = report.document(happened, verdict)
        print(report.markdown(told))
        if given.json is not None:
            given.json.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
        kept = kept or not told["ok"]
        return 0 if told["ok"] else _CHECK_FAILED
    except BaseException:
        kept = True
        raise
    finally:
        if kept:
            print(f"Logs, ledgers and statements are in {folder}.", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.proof.chaos",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--seconds", type=float, default=900.0, help="how long operations are enqueued (default: 900)"
    )
    parser.add_argument("--rate", type=float, default=60.0, help="operations a second (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="decides when what breaks (default: 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report as JSON, too")
    parser.add_argument("--keep", action="store_true", help="keep data and logs, whatever comes out")
    return parser


def _in_a_mount_namespace(arguments: list[str]) -> None:
    """Become the same program in a name space of its own, where it may mount what nobody else sees, and which takes
    its mounts along however it ends. Goes on as it is where the system does not allow that."""
    unshare = shutil.which("unshare")
    if unshare is None or os.environ.get(_INSIDE):
        return
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    prefix = [unshare, "--mount", *as_root, "--"]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0:
        os.environ[_INSIDE] = "1"
        os.execv(unshare, [*prefix, sys.executable, "-m", __spec__.parent, *arguments])


if __name__ == "__main__":
    _in_a_mount_namespace(sys.argv[1:])
    sys.exit(main(sys.argv[1:]))

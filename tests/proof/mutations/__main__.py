"""Break the lines that keep the guarantees, one after the other, and see that the tests notice.

    python -m tests.proof.mutations [--only NAME] [--list] [--jobs N] [--json]

Reads docs/guarantees.toml. Works in private copies of the tree: nothing in the working tree changes, and an interrupt
leaves nothing behind. Progress goes to stderr, the result to stdout.

Exit codes: 0 every fault was seen; 8 a fault was not seen; 1 a fault shows nothing (see its reason); 2 usage;
130 interrupted.
"""

import argparse
import json
import queue
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.proof.mutations.catalogue import ROOT, Mutation, WrongCatalogue, read
from tests.proof.mutations.copies import copy_of
from tests.proof.mutations.databases import running
from tests.proof.mutations.judging import Bench, Judged, Verdict, judge
from tests.proof.mutations.warm_python import WarmPython


def main(arguments: Sequence[str]) -> int:
    """Judge all mutations, or those that are named."""
    options = _options(arguments)
    # Ended from outside we clean up as after Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        mutations = list(read().mutations())
    except WrongCatalogue as error:
        print(f"docs/guarantees.toml: {error}", file=sys.stderr)
        return 1
    if options.only:
        if unknown := sorted(set(options.only) - {mutation.name for mutation in mutations}):
            print(f"no mutation {', '.join(unknown)}; see --list", file=sys.stderr)
            return 2
        mutations = [mutation for mutation in mutations if mutation.name in options.only]
    if options.list:
        for mutation in mutations:
            print(f"{mutation.name:32} {mutation.fault}")
        return 0
    started = time.monotonic()
    judged = judge_all(mutations, options.jobs)
    seconds = round(time.monotonic() - started, 1)
    if options.json:
        print(json.dumps({"seconds": seconds, "mutations": [_row(result) for result in judged]}, indent=2))
    else:
        _summarise(judged, seconds)
    return _exit_code(judged)


def judge_all(mutations: Sequence[Mutation], jobs: int) -> list[Judged]:
    """A verdict for each, in order; `jobs` at once, each in a copy of its own, all on one PostgreSQL."""
    with (
        tempfile.TemporaryDirectory(prefix="oncebox-mutations-") as folder,
        running(Path(folder) / "postgres") as databases,
    ):
        benches = [
            Bench(copy_of(ROOT, Path(folder) / f"copy-{number}"), WarmPython(), databases)
            for number in range(jobs)
        ]
        free: queue.SimpleQueue[Bench] = queue.SimpleQueue()
        for bench in benches:
            free.put(bench)

        def work(mutation: Mutation) -> Judged:
            bench = free.get()
            try:
                return judge(mutation, bench)
            finally:
                free.put(bench)

        with ThreadPoolExecutor(jobs) as pool:
            try:
                futures = [pool.submit(work, mutation) for mutation in mutations]
                _report_progress(futures)
                return [future.result() for future in futures]
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                for bench in benches:
                    bench.python.close()


def _report_progress(futures: Sequence["Future[Judged]"]) -> None:
    """Say what is done, as it gets done."""
    for count, future in enumerate(as_completed(futures), start=1):
        result = future.result()
        told = f"{count}/{len(futures)}"
        print(f"{told:>7} {result.seconds:5.1f} s {result.verdict:12} {result.name}", file=sys.stderr)
        if result.why:
            print(f"        {result.why}", file=sys.stderr)


def _row(result: Judged) -> dict[str, object]:
    return {
        "name": result.name,
        "verdict": str(result.verdict),
        "why": result.why,
        "saw": dict(result.saw),
        "seconds": result.seconds,
    }


def _summarise(judged: Sequence[Judged], seconds: float) -> None:
    for result in judged:
        if result.why:
            print(f"{result.verdict}: {result.name}: {result.why}")
    seen = sum(result.verdict is Verdict.LOAD_BEARING for result in judged)
    print(f"{seen} of {len(judged)} faults were seen by every test that has to see them, in {seconds:g} s")


def _exit_code(judged: Sequence[Judged]) -> int:
    verdicts = {result.verdict for result in judged}
    if Verdict.SURVIVED in verdicts:
        return 8
    return 1 if Verdict.ERROR in verdicts else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.mutations", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", action="append", metavar="NAME", help="judge this one (may be repeated)")
    parser.add_argument("--list", action="store_true", help="show the names and faults")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once (default 2)")
    parser.add_argument("--json", action="store_true", help="the whole result as JSON")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)

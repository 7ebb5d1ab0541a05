"""The tables of docs/guarantees.md, made from docs/guarantees.toml.

    python -m tests.proof.mutations.page docs/guarantees.md

What stands between `<!-- NAME: from guarantees.toml -->` and `<!-- end -->` is replaced; the rest of the page stays.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.proof.mutations.catalogue import Catalogue, Guarantee, Mutation, function_of, read

_TABLE: Final = re.compile(r"(<!-- (\w+): from guarantees\.toml -->\n).*?(<!-- end -->)", re.DOTALL)


def with_tables(page: str, catalogue: Catalogue) -> str:
    """The page with its tables made anew. Raises ValueError when one of them has no place in it."""
    tables = {
        "sender": _promises(catalogue, "sender"),
        "receiver": _promises(catalogue, "receiver"),
        "faults": _faults(catalogue),
    }
    places = [match[2] for match in _TABLE.finditer(page)]
    if sorted(places) != sorted(tables):
        raise ValueError(f"the page has places for {places}; it needs one each for {sorted(tables)}")
    return _TABLE.sub(lambda match: f"{match[1]}\n{tables[match[2]]}\n{match[3]}", page)


def _promises(catalogue: Catalogue, side: str) -> str:
    rows = [
        "| # | promise | kept by | shown by | shown to be load-bearing by |",
        "|---|---|---|---|---|",
    ]
    rows += [_promise(guarantee) for guarantee in catalogue.guarantees if guarantee.side == side]
    return "\n".join(rows) + "\n"


def _promise(guarantee: Guarantee) -> str:
    tests = ", ".join(_test(test) for test in guarantee.tests)
    faults = ", ".join(f"[`{mutation.name}`](#what-was-broken)" for mutation in guarantee.mutations)
    return f"| {guarantee.number} | {guarantee.promise} | {guarantee.kept_by} | {tests} | {faults} |"


def _faults(catalogue: Catalogue) -> str:
    rows = ["| mutation | of | what is wrong then | in | tests that fail then |", "|---|---|---|---|---|"]
    rows += [
        _fault(guarantee, mutation) for guarantee in catalogue.guarantees for mutation in guarantee.mutations
    ]
    return "\n".join(rows) + "\n"


def _fault(guarantee: Guarantee, mutation: Mutation) -> str:
    files = ", ".join(f"[`{file}`](../{file})" for file in mutation.files)
    tests: Mapping[str, None] = dict.fromkeys(function_of(test) for test in mutation.tests)
    names = ", ".join(f"`{test.rpartition('::')[2]}`" for test in tests)
    return f"| `{mutation.name}` | {guarantee.number} | {mutation.fault} | {files} | {names} |"


def _test(test: str) -> str:
    return f"[`{test}`](../{test.partition('::')[0]})"


def main(path: Path) -> None:
    """Make the tables of that page anew."""
    path.write_text(with_tables(path.read_text(encoding="utf-8"), read()), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

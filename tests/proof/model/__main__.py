"""Explore the protocol, or the protocol without one of its rules, and print what was found.

python -m tests.proof.model                       the whole protocol; exit 1 if anything is broken
python -m tests.proof.model --bound 5             the same with larger numbers (about 1 GB of memory)
python -m tests.proof.model --without RULE        the shortest way to what breaks without that rule
python -m tests.proof.model --without RULE --safe whether one note and true words need it: everything is explored
python -m tests.proof.model --list                the rules, and what each is there for
"""

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter

from oncebox_models.states import ARROWS
from tests.proof.model import telling
from tests.proof.model.arrows import untaken
from tests.proof.model.exploration import Exploration
from tests.proof.model.properties import PROPERTIES
from tests.proof.model.rules import BY_NAME, RULES, SAFETY, SMALL, Rule
from tests.proof.model.sender import Protocol, bounded

BOUND = 3


def main(arguments: list[str]) -> int:
    """Do what is asked; the answer is the exit code."""
    parser = ArgumentParser(
        "tests.proof.model", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--bound", type=int, default=BOUND, metavar="N")
    parser.add_argument("--without", choices=BY_NAME, metavar="RULE")
    parser.add_argument("--safe", action="store_true")
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args(arguments)
    if asked.list:
        print("\n".join(telling.columns((rule.name, rule.keeps, rule.says) for rule in RULES)))
        return 0
    if asked.without:
        return _without(BY_NAME[asked.without], safe=asked.safe)
    return _whole(asked.bound)


def _whole(bound: int) -> int:
    policy = bounded(bound)
    broken = 0
    print(f"Up to {bound} sends without a verdict, {bound} claims without an outcome.")
    for name, protocol in (
        ("any delay, any repetition", Protocol(policy=policy)),
        ("prompt packets", Protocol(policy=policy, calm=True)),
    ):
        explored = Exploration(protocol, frozenset(PROPERTIES)).run()
        print(f"{name}: {telling.numbers(explored)}")
        if explored.found is not None:
            print(telling.trace(explored.found))
            broken += 1
        elif not protocol.calm:
            left = untaken(explored.changes)
            print(f"arrows taken: {len(ARROWS) - len(left)} of {len(ARROWS)}", *left)
            broken += bool(left)
    print("broken" if broken else f"nothing broken: {len(PROPERTIES)} properties hold")
    return int(broken > 0)


def _without(rule: Rule, *, safe: bool) -> int:
    start = Protocol(policy=SMALL) if safe else rule.start()
    explored = Exploration(rule.without(start), SAFETY if safe else frozenset({rule.keeps})).run()
    print(f"Without {rule.name} ({rule.says}): {telling.numbers(explored)}")
    print(telling.trace(explored.found) if explored.found else "Nothing is broken.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

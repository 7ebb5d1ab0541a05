"""What an exploration found, in words."""

from collections.abc import Iterable

from tests.proof.model.exploration import Explored, Found
from tests.proof.model.properties import PROPERTIES

_HEADS = ("", "what happens", "the state", "the first words", "the receiver holds", "notes")


def trace(found: Found) -> str:
    """The way to a broken property, a line a step, and what is said and true after each."""
    lines = [
        (str(number), step.told, str(step.state), step.words, str(step.record), str(step.notes))
        for number, step in enumerate(found.trace)
    ]
    end = f"Broken: {found.broken}: {PROPERTIES[found.broken]}."
    if found.broken == "ends":
        end += " From here neither workers nor receiver come to an end."
    return "\n".join([*columns([_HEADS, *lines]), end])


def columns(lines: Iterable[tuple[str, ...]]) -> list[str]:
    """Lines whose cells stand under each other."""
    lines = list(lines)
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def numbers(explored: Explored) -> str:
    """How much was looked at."""
    return (
        f"{explored.states:,} states, {explored.transitions:,} transitions,"
        f" {explored.seconds:.1f} s of one processor"
    )

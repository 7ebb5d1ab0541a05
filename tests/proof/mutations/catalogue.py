"""What `docs/guarantees.toml` says: each guarantee, the tests that show it, and the faults that those tests must see."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

ROOT: Final = Path(__file__).parents[3]
CATALOGUE: Final = ROOT / "docs" / "guarantees.toml"

Side = Literal["sender", "receiver"]


class WrongCatalogue(Exception):
    """The catalogue does not fit the tree; the message names the entry and what to change."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One literal piece of one file, and what stands there instead. `file` is relative to the tree."""

    file: str
    find: str
    replace: str

    def applied(self, text: str) -> str:
        """The file's text with the fault. Raises WrongCatalogue unless `find` occurs exactly once."""
        count = text.count(self.find)
        if count != 1:
            raise WrongCatalogue(
                f"{self.file}: the text to replace occurs {count} times, not once:\n{self.find}"
            )
        if self.find == self.replace:
            raise WrongCatalogue(f"{self.file}: replaced by itself:\n{self.find}")
        return text.replace(self.find, self.replace)


@dataclass(frozen=True, slots=True)
class Mutation:
    """A single fault: one edit, or a few that only make sense together. Each of `tests` has to see it.

    fault: what a reader is told of it. tests: pytest node ids; one without a variant stands for all its variants,
    of which at least one has to fail.
    """

    name: str
    fault: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """The files it changes, each once."""
        return tuple(dict.fromkeys(edit.file for edit in self.edits))

    @property
    def migrates(self) -> bool:
        """Whether it changes what a migration makes, so that the databases have to be made with it."""
        return any("/migrations/" in file for file in self.files)


@dataclass(frozen=True, slots=True)
class Guarantee:
    """One promise. `kept_by` is Markdown; `tests` are all that show it, without variants."""

    number: int
    side: Side
    promise: str
    kept_by: str
    tests: tuple[str, ...]
    mutations: tuple[Mutation, ...]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All guarantees, in the order of their numbers."""

    guarantees: tuple[Guarantee, ...]

    def mutations(self) -> Iterator[Mutation]:
        """All mutations, in the order of the guarantees."""
        for guarantee in self.guarantees:
            yield from guarantee.mutations


def read(path: Path = CATALOGUE) -> Catalogue:
    """The catalogue in that file. Raises WrongCatalogue for what a reader of the page would stumble over."""
    with path.open("rb") as file:
        content = tomllib.load(file)
    guarantees = tuple(_guarantee(entry) for entry in _tables(content, "guarantee"))
    numbers = [guarantee.number for guarantee in guarantees]
    if numbers != list(range(1, len(numbers) + 1)):
        raise WrongCatalogue(f"guarantees are numbered {numbers}; count from 1, in order")
    catalogue = Catalogue(guarantees)
    names = [mutation.name for mutation in catalogue.mutations()]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise WrongCatalogue(f"two mutations have the name {', '.join(twice)}")
    return catalogue


def function_of(test: str) -> str:
    """A node id without its variant."""
    return test.partition("[")[0]


def _guarantee(entry: Mapping[str, object]) -> Guarantee:
    number = entry.get("number")
    if not isinstance(number, int):
        raise WrongCatalogue(f"a guarantee needs a number: {entry.get('promise')!r}")
    where = f"guarantee {number}"
    _only(entry, where, "number", "side", "promise", "kept_by", "tests", "mutation")
    side = _text(entry, "side", where)
    if side not in ("sender", "receiver"):
        raise WrongCatalogue(f"{where}: side is {side!r}, not sender or receiver")
    tests = _texts(entry, "tests", where)
    mutations = tuple(_mutation(mutation, where, tests) for mutation in _tables(entry, "mutation"))
    if not mutations:
        raise WrongCatalogue(f"{where} has no mutation: which line keeps it?")
    return Guarantee(
        number, side, _text(entry, "promise", where), _text(entry, "kept_by", where), tests, mutations
    )


def _mutation(entry: Mapping[str, object], where: str, shown_by: Sequence[str]) -> Mutation:
    name = _text(entry, "name", where)
    where = f"{where}, mutation {name}"
    _only(entry, where, "name", "fault", "tests", "file", "find", "replace", "edit")
    edits = tuple(_edit(edit, where) for edit in (_tables(entry, "edit") if "edit" in entry else [entry]))
    tests = _texts(entry, "tests", where) if "tests" in entry else tuple(shown_by)
    if strangers := [test for test in tests if function_of(test) not in shown_by]:
        raise WrongCatalogue(f"{where}: not among the guarantee's tests: {', '.join(strangers)}")
    return Mutation(name, _text(entry, "fault", where), edits, tests)


def _edit(entry: Mapping[str, object], where: str) -> Edit:
    replace = entry.get("replace")
    if not isinstance(replace, str):
        raise WrongCatalogue(f"{where}: replace has to be text (it may be empty)")
    return Edit(_text(entry, "file", where), _text(entry, "find", where), replace)


def _tables(entry: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    value = entry.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in cast("list[object]", value)):
        raise WrongCatalogue(f"write [[{name}]], a list of tables")
    return cast("list[Mapping[str, object]]", value)  # checked above


def _text(entry: Mapping[str, object], name: str, where: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not value.strip():
        raise WrongCatalogue(f"{where}: {name} is missing")
    return value


def _texts(entry: Mapping[str, object], name: str, where: str) -> tuple[str, ...]:
    value = entry.get(name)
    if not isinstance(value, list) or not value:
        raise WrongCatalogue(f"{where}: {name} is missing")
    texts = cast("list[object]", value)
    if not all(isinstance(text, str) for text in texts):
        raise WrongCatalogue(f"{where}: {name} has to be a list of texts")
    return tuple(cast("list[str]", texts))


def _only(entry: Mapping[str, object], where: str, *known: str) -> None:
    if unknown := sorted(entry.keys() - set(known)):
        raise WrongCatalogue(f"{where}: nobody reads {', '.join(unknown)}")

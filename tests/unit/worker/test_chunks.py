"""How the relay packs entries into messages."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from oncebox_models.states import CallKind
from oncebox_outbox.claiming import Due
from oncebox_worker.relay import chunks_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@st.composite
def dues(draw: st.DrawFn) -> list[Due]:
    """Entries as `dispatch` returns them: oldest first, stamped together."""
    shapes = draw(
        st.lists(
            st.tuples(st.sampled_from(["notes", "wiki"]), st.sampled_from(list(CallKind)), st.booleans()),
            max_size=40,
        )
    )
    return [
        Due(UUID(int=age), destination, kind, alone, NOW + timedelta(seconds=age), NOW)
        for age, (destination, kind, alone) in enumerate(shapes)
    ]


@given(dues(), st.integers(1, 7))
def test_every_entry_is_in_one_chunk_of_its_kind(due: list[Due], size: int) -> None:
    """None lost, none twice; one destination and kind a chunk; no chunk above `size`; suspects alone; oldest first."""
    by_id = {entry.id: entry for entry in due}
    chunks = chunks_of(due, size)
    assert sorted(id for chunk in chunks for id in chunk.ids) == sorted(by_id)
    for chunk in chunks:
        entries = [by_id[id] for id in chunk.ids]
        assert len({(entry.destination, entry.kind) for entry in entries}) == 1
        assert chunk.destination == entries[0].destination
        assert 1 <= len(entries) <= size
        assert len(entries) == 1 or not any(entry.alone for entry in entries)
        assert [entry.ready_at for entry in entries] == sorted(entry.ready_at for entry in entries)
        assert chunk.dispatched_at == NOW


@given(dues(), st.integers(1, 7))
def test_no_more_chunks_than_needed(due: list[Due], size: int) -> None:
    """Entries that may travel together do: a message costs more than an id."""
    groups: dict[tuple[str, CallKind], int] = {}
    for entry in due:
        if not entry.alone:
            groups[entry.destination, entry.kind] = groups.get((entry.destination, entry.kind), 0) + 1
    suspects = sum(1 for entry in due if entry.alone)
    assert len(chunks_of(due, size)) == suspects + sum(-(-count // size) for count in groups.values())

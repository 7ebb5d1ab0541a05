"""An agent's ledger: a kill loses at most the line that was being written."""

from pathlib import Path

from tests.proof.chaos.ledgers import AgentLedger, read


def test_what_has_no_end_is_done_again_and_the_rest_is_not(tmp_path: Path) -> None:
    file = tmp_path / "ledger"
    with AgentLedger(file) as ledger:
        ledger.note(0, "begun")
        ledger.note(0, "committed")
        ledger.note(1, "begun")
        ledger.note(1, "rolled back")
        ledger.note(2, "begun")
    with AgentLedger(file) as ledger:
        assert list(ledger.still_to_do(5)) == [2, 3, 4]
    assert read(file) == {0: "committed", 1: "rolled back", 2: "begun"}


def test_a_torn_line_is_not_written_and_spoils_no_other(tmp_path: Path) -> None:
    file = tmp_path / "ledger"
    file.write_bytes(b'[0, "begun"]\n[0, "comm')
    with AgentLedger(file) as ledger:
        assert list(ledger.still_to_do(2)) == [0, 1]
        ledger.note(0, "committed")
    assert read(file) == {0: "committed"}

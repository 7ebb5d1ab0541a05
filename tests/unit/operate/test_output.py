"""What is printed: harmless for terminals, and receipts with the bytes of their canonical form."""

import pytest

from oncebox_models.outcomes import Receipt
from oncebox_operate import output, shaping
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.failures import Failure


@pytest.mark.parametrize("wild", ["\x1b[2J", "\x9b31m", "\r", "\x07", "\u202e", "\u2066", "\u200b", "\u2028"])
def test_text_from_elsewhere_cannot_steer_a_terminal(wild: str) -> None:
    assert (
        output.plain(f"a{wild}b")
        == "a" + "".join(f"\\u{ord(c):04x}" if c not in "[2J31m" else c for c in wild) + "b"
    )


def test_ordinary_text_of_any_script_stays_as_it_is() -> None:
    text = "Reef B «recovers» 珊瑚 الشعاب\nsecond line [bold]"
    assert output.plain(text) == text


def test_a_printed_receipt_has_the_bytes_of_its_canonical_text() -> None:
    receipt = Receipt(
        "note-7", "ab" * 32, {"id": "1", "folder": "brouillons é 漢", "version": 1, "etag": "1-ab"}
    )
    assert receipt.text in output.json_line({"receipt": shaping.receipt(receipt)})


def test_a_failure_is_said_to_people_and_under_json_to_programs(capsys: pytest.CaptureFixture[str]) -> None:
    failure = Failure(ExitCode.NOT_FOUND, "not_found", "There is no \x1b[31mnote-7.", "See: oncebox list")
    output.print_failure(failure, as_json=True)
    out, err = capsys.readouterr()
    assert err == "Error: There is no \\u001b[31mnote-7.\nSee: oncebox list\n"
    assert out == (
        '{"error":{"kind":"not_found","exit_code":3,"message":"There is no \\u001b[31mnote-7.",'
        '"hint":"See: oncebox list","faults":[],"matches":[]}}\n'
    )

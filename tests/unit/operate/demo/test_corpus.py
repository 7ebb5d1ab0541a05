"""The notes that the demonstration saves: ours, of many lengths and scripts, and made by what lies beside them."""

import unicodedata

from oncebox_operate.demo import corpus
from oncebox_operate.demo.corpus import compose


def test_the_file_is_what_the_composer_makes() -> None:
    assert compose.TARGET.read_text(encoding="utf-8") == compose.text()


def test_there_are_hundreds_of_different_notes_from_a_remark_to_a_diary() -> None:
    notes = corpus.load()
    sizes = sorted(len(note.text.encode()) for note in notes)

    assert len({note.text for note in notes}) == len(notes) >= 300
    assert sizes[0] <= 20
    assert 20_000 <= sizes[-1] <= 25_000
    assert {note.format for note in notes} == {"markdown", "plain"}


def test_they_are_written_in_many_scripts() -> None:
    letters = {
        unicodedata.name(character).split()[0]
        for note in corpus.load()
        for character in note.text
        if character.isalpha()
    }

    assert (
        len(letters & {"LATIN", "CYRILLIC", "GREEK", "ARABIC", "HEBREW", "DEVANAGARI", "BENGALI", "TAMIL"})
        == 8
    )
    assert len(letters & {"THAI", "GEORGIAN", "ARMENIAN", "ETHIOPIC", "CJK", "HIRAGANA", "HANGUL"}) == 7

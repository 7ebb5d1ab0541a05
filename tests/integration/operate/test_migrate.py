"""`oncebox migrate`: both databases, each by its own party."""

from collections.abc import Callable

from oncebox_operate import migrate
from tests.integration.operate.conftest import Oncebox

Change = Callable[[str, str | None], None]


def test_up_brings_both_to_this_version_and_may_be_repeated(
    oncebox: Oncebox, environment: Change, empty_database: str, notes_database: str
) -> None:
    environment("ONCEBOX_DATABASE_URL", empty_database)
    environment("ONCEBOX_NOTES_DATABASE_URL", notes_database)
    before = oncebox("migrate", "status", "--json")
    assert (before.code, [line["current"] for line in before.lines]) == (8, [False, True])
    for _ in range(2):
        ran = oncebox("migrate", "up", "--json")
        assert ran.code == 0
        assert [(line["database"], line["current"]) for line in ran.lines] == [
            ("sender", True),
            ("notes", True),
        ]
    assert oncebox("migrate", "status").code == 0


def test_the_note_services_database_is_left_alone_when_it_is_not_named(
    oncebox: Oncebox, environment: Change, empty_database: str
) -> None:
    environment("ONCEBOX_DATABASE_URL", empty_database)
    ran = oncebox("migrate", "up")
    assert (ran.code, ran.out) == (0, f"sender: at {migrate.head()}, up to date\n")
    assert "ONCEBOX_NOTES_DATABASE_URL is not set" in ran.err


def test_only_narrows_to_one_database(oncebox: Oncebox, environment: Change, notes_database: str) -> None:
    environment("ONCEBOX_NOTES_DATABASE_URL", notes_database)
    assert [line["database"] for line in oncebox("migrate", "status", "--only", "notes", "--json").lines] == [
        "notes"
    ]
    environment("ONCEBOX_NOTES_DATABASE_URL", None)
    assert "ONCEBOX_NOTES_DATABASE_URL is not set" in oncebox("migrate", "up", "--only", "notes").err


def test_down_asks_for_yes_and_names_what_would_go(
    oncebox: Oncebox, environment: Change, sender_database: str, notes_database: str
) -> None:
    environment("ONCEBOX_DATABASE_URL", sender_database)
    environment("ONCEBOX_NOTES_DATABASE_URL", notes_database)
    asked = oncebox("migrate", "down")
    assert (asked.code, "--yes" in asked.err) == (2, True)
    assert migrate.status(sender_database).up_to_date
    done = oncebox("migrate", "down", "--yes", "--json")
    assert (done.code, [line["revision"] for line in done.lines]) == (0, [None, None])
    assert oncebox("migrate", "down", "--yes").code == 0


def test_sql_is_what_up_executes(oncebox: Oncebox) -> None:
    text = oncebox("migrate", "sql").out
    assert "CREATE TABLE oncebox.outbox_entry" in text
    assert oncebox("migrate", "sql", "--json").json["sql"].rstrip() == text.rstrip()

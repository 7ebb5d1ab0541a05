"""`oncebox token` and `oncebox grant`: answered by the note service, told by us."""

from collections.abc import Callable

import pytest

from tests.integration.operate.conftest import Oncebox

Change = Callable[[str, str | None], None]
PARTY = ("--tenant", "demo", "--principal", "researcher")


@pytest.fixture
def notes(environment: Change, notes_database: str) -> str:
    environment("ONCEBOX_NOTES_DATABASE_URL", notes_database)
    return notes_database


def test_a_token_alone_is_on_stdout_so_that_a_shell_can_keep_it(oncebox: Oncebox, notes: str) -> None:
    made = oncebox("token", "create", "--tenant", "demo", "--principal", "worker", "--delegate")
    assert made.code == 0
    assert made.out.startswith("oncebox_")
    assert len(made.out.split()) == 1
    assert made.out.strip() not in made.err


def test_a_delegate_acts_in_its_own_tenant_unless_others_are_named(oncebox: Oncebox, notes: str) -> None:
    create = ("token", "create", "--tenant", "demo", "--principal", "worker", "--json")
    assert oncebox(*create).json["tenants"] == []
    assert oncebox(*create, "--delegate").json["tenants"] == ["demo"]
    assert oncebox(*create, "--delegate", "--tenants", "demo,acme").json["tenants"] == ["demo", "acme"]
    assert oncebox(*create, "--tenants", "acme").code == 2


def test_a_revoked_token_is_listed_as_such_and_no_secret_is_listed(oncebox: Oncebox, notes: str) -> None:
    made = oncebox("token", "create", *PARTY, "--json").json
    assert oncebox("token", "revoke", made["id"]).code == 0
    listed = oncebox("token", "list", "--json")
    assert [(line["id"], line["revoked_at"] is None) for line in listed.lines] == [(made["id"], False)]
    assert made["token"] not in listed.out + oncebox("token", "list").out


def test_a_token_that_is_not_there_is_exit_3(oncebox: Oncebox, notes: str) -> None:
    assert oncebox("token", "revoke", "-x").code == 2
    ran = oncebox("token", "revoke", "0000", "--json")
    assert (ran.code, ran.error["kind"]) == (3, "not_found")


def test_grants_are_added_listed_and_taken_back(oncebox: Oncebox, notes: str) -> None:
    assert oncebox("grant", "add", *PARTY, "--folder", "drafts", "--json").json["created"] is True
    assert oncebox("grant", "add", *PARTY, "--folder", "drafts", "--json").json["created"] is False
    assert "demo/researcher" in oncebox("grant", "list").out
    assert oncebox("grant", "revoke", *PARTY, "--folder", "drafts").code == 0
    assert oncebox("grant", "revoke", *PARTY, "--folder", "drafts").code == 3
    (grant,) = oncebox("grant", "list", "--tenant", "demo", "--json").lines
    assert grant["revoked_at"] is not None


def test_empty_lists_say_what_to_type(oncebox: Oncebox, notes: str) -> None:
    assert "oncebox token create" in oncebox("token", "list").err
    assert "oncebox grant add" in oncebox("grant", "list").err


def test_a_wrong_name_is_exit_2_with_the_services_own_words(oncebox: Oncebox, notes: str) -> None:
    ran = oncebox("grant", "add", "--tenant", "demo", "--principal", "a b", "--folder", "drafts")
    assert (ran.code, "'a b'" in ran.err) == (2, True)


def test_a_database_without_tables_leads_to_migrate(
    oncebox: Oncebox, environment: Change, empty_database: str
) -> None:
    environment("ONCEBOX_NOTES_DATABASE_URL", empty_database)
    ran = oncebox("token", "list")
    assert (ran.code, "oncebox migrate up --only notes" in ran.err) == (1, True)


def test_a_database_that_is_down_is_exit_9_without_the_password(
    oncebox: Oncebox, environment: Change
) -> None:
    environment("ONCEBOX_NOTES_DATABASE_URL", "postgresql://u:secret@127.0.0.1:1/notes")
    ran = oncebox("grant", "list")
    assert (ran.code, "127.0.0.1:1" in ran.err, "secret" in ran.err) == (9, True, False)

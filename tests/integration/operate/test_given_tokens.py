"""`oncebox token create --value-from-env`: the secret store has the token already, and nobody copies it from a log."""

from collections.abc import Callable

from oncebox_notes import identity
from tests.integration.operate.conftest import Oncebox

Change = Callable[[str, str | None], None]
CREATE = ("token", "create", "--tenant", "demo", "--principal", "worker", "--delegate")


def test_the_token_of_a_variable_is_registered_again_and_again_and_never_printed(
    oncebox: Oncebox, environment: Change, notes_database: str
) -> None:
    token = identity.mint_token()[1]
    environment("ONCEBOX_NOTES_DATABASE_URL", notes_database)
    environment("GIVEN", token)
    ran = [oncebox(*CREATE, "--value-from-env", "GIVEN", "--json") for _ in range(2)]
    assert [(one.code, one.json["created"]) for one in ran] == [(0, True), (0, False)]
    told = oncebox(*CREATE, "--value-from-env", "GIVEN")
    assert "Registered already, from GIVEN" in told.out
    assert all(token not in one.out + one.err for one in [*ran, told])


def test_a_variable_that_is_not_set_or_holds_no_token_is_exit_2(
    oncebox: Oncebox, environment: Change, notes_database: str
) -> None:
    environment("ONCEBOX_NOTES_DATABASE_URL", notes_database)
    missing = oncebox(*CREATE, "--value-from-env", "GIVEN")
    assert (missing.code, "GIVEN is not set" in missing.err) == (2, True)
    environment("GIVEN", "hunter2")
    malformed = oncebox(*CREATE, "--value-from-env", "GIVEN")
    assert (malformed.code, "hunter2" in malformed.err) == (2, False)
    assert oncebox("token", "list", "--json").lines == []

"""A token that an operator made elsewhere: registered once, the same again changes nothing, anything else is refused."""

from collections.abc import Callable

import psycopg
import pytest

from oncebox_notes import administration, identity
from oncebox_notes.administration import InvalidTokenError, Row
from tests.notes.running import RunningService

Register = Callable[..., Row]


def other_secret(token: str) -> str:
    """A token with the same id."""
    token_id = identity.split_token(token)
    assert token_id is not None
    return f"oncebox_{token_id[0]}_{'A' * 43}"


@pytest.fixture
def token() -> str:
    return identity.mint_token()[1]


@pytest.fixture
def register(notes_database: str) -> Register:
    def run(token: str, *, principal: str = "worker", tenants: tuple[str, ...] = ("demo",)) -> Row:
        with psycopg.connect(notes_database, autocommit=True) as connection:
            return administration.register_token(connection, "demo", principal, list(tenants), token)

    return run


def test_a_given_token_is_accepted_and_its_secret_is_stored_as_a_hash_only(
    service: RunningService, register: Register, token: str
) -> None:
    registered = register(token)
    assert (registered["created"], "token" in registered) == (True, False)
    assert service.sender(token).http.get("/v1/capabilities").status_code == 200
    ((row,),) = service.rows("SELECT token::text FROM token")
    assert token.rpartition("_")[2] not in row


def test_the_same_token_again_changes_nothing(register: Register, token: str) -> None:
    first, again = register(token), register(token)
    assert again == {**first, "created": False}


@pytest.mark.parametrize(
    "malformed",
    ["secret", "oncebox_0123456789abcdef_short", "oncebox_0123456789ABCDEF_" + "A" * 43, "\noncebox_"],
)
def test_what_is_not_written_as_a_token_is_refused_and_not_repeated(
    register: Register, malformed: str
) -> None:
    with pytest.raises(InvalidTokenError) as refused:
        register(malformed)
    assert malformed not in str(refused.value)


def test_the_id_of_another_token_is_refused_and_the_first_stays(
    service: RunningService, register: Register, token: str
) -> None:
    register(token)
    with pytest.raises(InvalidTokenError, match="another secret"):
        register(other_secret(token))
    assert service.sender(token).http.get("/v1/capabilities").status_code == 200
    assert service.sender(other_secret(token)).http.get("/v1/capabilities").status_code == 401


def test_a_token_does_not_change_hands(register: Register, token: str) -> None:
    register(token)
    with pytest.raises(InvalidTokenError, match="demo/worker, acting in demo"):
        register(token, principal="somebody")
    with pytest.raises(InvalidTokenError, match="acting in demo"):
        register(token, tenants=("demo", "acme"))


def test_a_revoked_token_does_not_come_back(notes_database: str, register: Register, token: str) -> None:
    registered = register(token)
    with psycopg.connect(notes_database, autocommit=True) as connection:
        administration.revoke_token(connection, str(registered["id"]))
    with pytest.raises(InvalidTokenError, match="revoked"):
        register(token)

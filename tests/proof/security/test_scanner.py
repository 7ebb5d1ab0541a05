"""The scanner finds a planted secret in every form that a log can give it, and nothing where there is none."""

import base64
import html
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.proof.security.canary import Canary, secret_of
from tests.proof.security.scanner import Find, Scanner

TOKEN = "oncebox_0123456789abcdef_2Xq-ozzKJ3_hhTtLw0N5yVbS9aPdQfRgUeWiYkMnBcA"
CANARY = Canary.hatch()
# Nothing in it is written the same way in JSON, percent-encoding or HTML.
STRANGE = Canary("סוד שאין לו אותיות לטיניות", "سر<&>\"ابجد'\\هوز\nحطي🪸كلمن🪸سعفص")
NOISE = "".join(
    json.dumps({"ts": f"2026-01-01T00:00:00.{n:06}Z", "event": "call_finished", "call_id": f"{n:032x}"})
    + "\n"
    for n in range(300)
)
FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in JSON": json.dumps,
    "in JSON, not ASCII": lambda text: json.dumps(text, ensure_ascii=False),
    "in JSON in JSON": lambda text: json.dumps(json.dumps({"message": text})),
    "as Python writes it": repr,
    "as Python writes bytes": lambda text: repr(text.encode()),
    "percent-encoded": lambda text: quote(text, safe=""),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 of a URL": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64 in the middle": lambda text: base64.b64encode(b"xy" + text.encode() + b"z").decode(),
    "base64, wrapped": lambda text: base64.encodebytes(text.encode() * 3).decode(),
    "JSON in base64": lambda text: base64.b64encode(json.dumps(text).encode()).decode(),
    "hexadecimal": lambda text: text.encode().hex(),
    "HTML": html.escape,
    "wrapped": lambda text: "\n    ".join(textwrap.wrap(text, 11, break_on_hyphens=False)),
    "in JSON, wrapped": lambda text: "\n".join(textwrap.wrap(json.dumps(text), 13, break_on_hyphens=False)),
    "its first part": lambda text: text.strip()[:14] + "…",
    "its last part": lambda text: "…" + text.strip()[-14:],
}
SECRETS = {"token": secret_of(TOKEN), **CANARY.named("a note"), **STRANGE.named("a strange note")}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_found_in_every_form(name: str, form: str, tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    middle = NOISE.index("\n", len(NOISE) // 2) + 1
    log.write_text(
        f"{NOISE[:middle]}error: {FORMS[form](SECRETS[name])} :end\n{NOISE[middle:]}", encoding="utf-8"
    )
    finds = Scanner(SECRETS).look_at_files({"worker": log})
    assert [(find.secret, find.where) for find in finds] == [(name, "worker")]


def test_nothing_is_found_where_nothing_is() -> None:
    others = Canary.hatch()
    for form in FORMS.values():
        assert Scanner(SECRETS).look_at("noise", NOISE + form(others.text) + form(others.title)) == []
    assert Scanner(SECRETS).look_at("the token's id", f'{{"token_id":"{TOKEN.split("_")[1]}"}}') == []


def test_bytes_that_are_no_text_do_not_stop_it() -> None:
    planted = b"\xff\xfe\x00\x80" + CANARY.text.encode() + b"\xc3"
    assert Scanner(CANARY.named("it")).look_at("core", planted) == [
        Find("the text of it", "core", "as it is")
    ]


def test_a_find_does_not_show_the_secret() -> None:
    (find,) = Scanner({"token": secret_of(TOKEN)}).look_at(
        "worker", json.dumps({"Authorization": f"Bearer {TOKEN}"})
    )
    assert str(find) == "token in worker (as it is)"


def test_a_secret_that_chance_could_write_is_refused() -> None:
    with pytest.raises(ValueError, match="by chance"):
        Scanner({"pin": "12 34"})

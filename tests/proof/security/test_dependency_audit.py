"""The audit of our dependencies finds a planted vulnerable version, and says what it could not look at."""

import re
import shutil
import socket
from collections.abc import Mapping
from email.message import Message
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import pytest

from scripts import audit_dependencies
from tests.proof.security import advisories

# A version that really had one, though what is served of it here is made up.
PLANTED = ("urllib3", "1.24.1")
ADVISORY = {
    "id": "PYSEC-2099-7",
    "aliases": ["CVE-2099-7777"],
    "modified": "2099-01-01T00:00:00Z",
    "published": "2099-01-01T00:00:00Z",
    "summary": "Trusts what it should not",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "urllib3"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.24.2"}]}],
        }
    ],
}


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """Our project with an old version of one package in its lock."""
    name, version = PLANTED
    for file in ("pyproject.toml", "uv.lock"):
        shutil.copy(audit_dependencies.ROOT / file, tmp_path)
    lock = tmp_path / "uv.lock"
    text = lock.read_text(encoding="utf-8")
    (locked,) = re.findall(rf'name = "{name}"\nversion = "([^"]+)"', text)
    text = text.replace(f'name = "{name}"\nversion = "{locked}"', f'name = "{name}"\nversion = "{version}"')
    lock.write_text(text.replace(f"{name}-{locked}", f"{name}-{version}"), encoding="utf-8")
    return tmp_path


def test_a_planted_vulnerable_version_fails_with_all_that_is_needed_to_act(
    planted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with advisories.serving({PLANTED: ADVISORY}) as url:
        assert audit_dependencies.main(["--project", str(planted), "--service-url", url]) == 1
        *found, last = capsys.readouterr().out.splitlines()
        assert found == [
            "FOUND: urllib3 1.24.1 has PYSEC-2099-7, CVE-2099-7777: Trusts what it should not; fixed in 1.24.2"
        ]
        assert re.fullmatch(r"Audited: .*known vulnerabilities of \d+ packages; 1 findings\.", last)
        # The same service has nothing against what we really use.
        assert audit_dependencies.main(["--service-url", url]) == 0
    told = capsys.readouterr().out.splitlines()
    count = len(audit_dependencies.locked_packages(audit_dependencies.ROOT))
    assert len(told) == 1
    assert f"known vulnerabilities of {count} packages; 0 findings." in told[0]


def test_without_the_service_it_says_what_was_not_audited(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    assert audit_dependencies.main(["--service-url", url]) == 0
    assert audit_dependencies.main(["--service-url", url, "--require-advisories"]) == 2
    for line in capsys.readouterr().out.splitlines():
        assert "0 findings. NOT audited: known vulnerabilities of " in line
        assert "cannot be reached" in line


def test_a_service_that_does_not_answer_holds_nobody_up(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_dependencies, "ASKING_S", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert audit_dependencies.main(["--service-url", url]) == 0
    assert "NOT audited: known vulnerabilities" in capsys.readouterr().out


def test_an_audit_that_cannot_be_run_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody must take a broken tool for a missing network."""
    assert audit_dependencies.main(["--service-url", "no url"]) == 1
    assert "uv audit cannot be run" in capsys.readouterr().out


def package(**more: Any) -> Mapping[str, Any]:
    usual = {
        "name": "a",
        "version": "1",
        "source": {"registry": "r"},
        "sdist": {"hash": "sha256:00"},
        "wheels": [{"hash": "sha256:01"}],
    }
    return usual | more


@pytest.mark.parametrize(
    ("odd", "word"),
    [
        ({"source": {"git": "somewhere"}}, "git"),
        ({"source": {"registry": "another"}}, "another"),
        ({"source": {"url": "x"}}, "url"),
        ({"sdist": {}}, "SHA-256"),
        ({"wheels": [{"hash": "md5:00"}]}, "SHA-256"),
        ({"wheels": [], "sdist": {"hash": ""}}, "SHA-256"),
    ],
)
def test_a_package_from_elsewhere_or_without_a_hash_is_a_finding(odd: dict[str, Any], word: str) -> None:
    usual = [package(name="b"), package(name="c")]
    (finding,) = audit_dependencies.origin_findings([*usual, package(**odd)])
    assert finding.startswith("a 1 ")
    assert word in finding
    assert audit_dependencies.origin_findings(usual) == []


def test_what_is_installed_and_not_locked_is_a_finding() -> None:
    locked = [package(name="a", version="1"), package(name="b", version="2")]
    assert audit_dependencies.installed_findings(locked, {"a": "1", "b": "2", "pip": "9"}) == []
    assert audit_dependencies.installed_findings(locked, {"a": "1.1", "x": "3"}) == [
        "a 1.1 is installed, and the lock has 1",
        "x 3 is installed, and the lock has no such package",
    ]


class Licensed(Distribution):
    """A package that says of its licence what the test says."""

    def __init__(self, **said: str | list[str]) -> None:
        self._said = Message()
        for name, values in {"Name": "a", "Version": "1", **said}.items():
            for value in [values] if isinstance(values, str) else values:
                self._said[name.replace("_", "-")] = value

    def read_text(self, filename: str) -> str | None:
        return self._said.as_string() if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    "said",
    [
        {"License_Expression": "MIT"},
        {"License_Expression": "GPL-3.0-only OR MIT"},
        {"License_Expression": "(Apache-2.0 AND BSD-2-Clause)"},
        {"License": "BSD-3-Clause"},
        {"Classifier": ["License :: OSI Approved :: MIT License", "License :: DFSG approved"]},
    ],
)
def test_an_allowed_licence_is_none(said: dict[str, Any]) -> None:
    assert audit_dependencies.licence_findings([Licensed(**said)]) == []


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"License": "Proprietary\nAll rights reserved."},
        {"License_Expression": "AGPL-3.0-only"},
        {"License_Expression": "MIT AND SSPL-1.0"},
        {"Classifier": ["License :: OSI Approved :: GNU General Public License v3 (GPLv3)"]},
        {"Classifier": ["License :: OSI Approved :: MIT License", "License :: Other/Proprietary License"]},
    ],
)
def test_any_other_licence_is_a_finding(said: dict[str, Any]) -> None:
    (finding,) = audit_dependencies.licence_findings([Licensed(**said)])
    assert finding.startswith("a 1 is licensed ")

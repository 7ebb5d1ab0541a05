"""Audit every dependency in uv.lock: known vulnerabilities, where it comes from, what is installed, its licence.

    python scripts/audit_dependencies.py [--require-advisories] [--project FOLDER] [--service-url URL]

Known vulnerabilities are asked of the service that `uv audit` uses (OSV), so they are as fresh as that. Without a
network to it everything else is audited, and the last line says that this was not; --require-advisories makes that a
failure, for a release. Exit status: 0 nothing found, 1 something found, 2 not all could be asked that had to be.
"""

import argparse
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
UV: Final = Path(sys.executable).with_name("uv")
ASKING_S: Final = 8
"""Longest time for all questions to the service."""
TOOLS: Final = frozenset({"pip", "setuptools", "uv"})
"""What made the environment; it is in no lock."""
ALLOWED: Final = frozenset(
    {"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "LGPL-3.0-only", "MIT", "MPL-2.0", "PSF-2.0"}
)
"""Licences under which a library may be used unchanged by a project under Apache-2.0."""
CLASSIFIED: Final[Mapping[str, str]] = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""What packages say in the older way, by classifier."""

Package = Mapping[str, Any]


@dataclass(slots=True)
class Audit:
    """What was found, and what was looked at: `looked` and `left_out` become the last line."""

    findings: list[str] = field(default_factory=list[str])
    looked: list[str] = field(default_factory=list[str])
    left_out: list[str] = field(default_factory=list[str])


def locked_packages(project: Path) -> list[Package]:
    """All packages of the project's lock but the project itself."""
    lock = tomllib.loads((project / "uv.lock").read_text(encoding="utf-8"))
    return [package for package in lock["package"] if "editable" not in package["source"]]


def origin_findings(packages: Sequence[Package]) -> list[str]:
    """Packages that do not come from the one registry, and files that have no hash to be checked by."""
    registries = [package["source"].get("registry") for package in packages]
    usual = max(set(registries), key=registries.count)
    findings = list[str]()
    for package, registry in zip(packages, registries, strict=True):
        name = f"{package['name']} {package.get('version', '')}".strip()
        if registry is None or registry != usual:
            findings.append(f"{name} comes from {package['source']}, not from the registry of all others")
        files = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else ())]
        if not files or not all(str(file.get("hash", "")).startswith("sha256:") for file in files):
            findings.append(
                f"{name} has a file without a SHA-256 in the lock, so nobody notices another file"
            )
    return findings


def normal(name: str) -> str:
    """A package's name as the lock writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed_findings(packages: Sequence[Package], installed: Mapping[str, str]) -> list[str]:
    """What is installed (version by name) and not locked, or locked as another version."""
    locked = {package["name"]: package.get("version") for package in packages}
    return [
        f"{name} {version} is installed, and the lock has {locked.get(name, 'no such package')}"
        for name, version in sorted(installed.items())
        if name not in TOOLS and locked.get(name) != version
    ]


def licences(said: importlib.metadata.PackageMetadata) -> list[list[str]]:
    """All of the outer list hold, each as one of its inner ones."""
    expression: list[str] = said.get_all("License-Expression") or []
    licence: list[str] = said.get_all("License") or []
    classifiers: list[str] = [
        line.rsplit(" :: ", 1)[-1]
        for line in said.get_all("Classifier") or []
        if line.startswith("License :: ") and not line.endswith("DFSG approved")
    ]
    if not expression and classifiers:
        return [[CLASSIFIED.get(line, line)] for line in classifiers]
    written, *_ = (*expression, *licence, "it says none")
    bare = written.strip().partition("\n")[0].replace("(", "").replace(")", "")
    return [part.split(" OR ") for part in bare.split(" AND ")]


def licence_findings(distributions: Sequence[importlib.metadata.Distribution]) -> list[str]:
    """Installed packages under a licence that is not allowed."""
    findings = list[str]()
    for distribution in distributions:
        held = licences(distribution.metadata)
        if not all(ALLOWED.intersection(part) for part in held):
            told = " and ".join(" or ".join(part) for part in held)
            findings.append(
                f"{distribution.name} {distribution.version} is licensed {told}, which is not allowed here"
            )
    return findings


def ask_for_vulnerabilities(project: Path, service_url: str | None, audit: Audit, count: int) -> None:
    """Ask by `uv audit`; an answer is a finding or its absence, and no answer is said as such."""
    command = [UV, "audit", "--frozen", "--project", project, "--output-format", "json"]
    command += ["--preview-features", "audit-command,json-output"]
    if service_url is not None:
        command += ["--service-url", service_url]
    quick = {"UV_HTTP_RETRIES": "0", "UV_HTTP_TIMEOUT": str(ASKING_S // 2)}
    try:
        done = subprocess.run(
            command,
            env=os.environ | quick,
            capture_output=True,
            text=True,
            timeout=ASKING_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        audit.left_out.append(f"known vulnerabilities (no answer within {ASKING_S} s)")
        return
    if done.returncode in (0, 1) and done.stdout.startswith("{"):
        answer = json.loads(done.stdout)
        audit.findings += [
            vulnerability_finding(found) for found in answer["vulnerabilities"] + answer["adverse_statuses"]
        ]
        audit.looked.append(f"known vulnerabilities of {answer['summary']['audited_packages']} packages")
    elif "error sending request" in done.stderr or "timed out" in done.stderr:
        why = done.stderr.strip().splitlines()[-1].removeprefix("  cause: ")
        audit.left_out.append(
            f"known vulnerabilities of {count} packages (the service cannot be reached: {why})"
        )
    else:
        audit.findings.append(f"uv audit cannot be run (exit {done.returncode}): {done.stderr.strip()}")


def vulnerability_finding(found: Mapping[str, Any]) -> str:
    """Package, version, advisory and the versions that fix it, in one line."""
    if "dependency" not in found or "id" not in found:
        return f"the registry says of a package: {json.dumps(found)}"
    package = found["dependency"]
    names = ", ".join([found["id"], *found.get("aliases", ())])
    fixed = ", ".join(found.get("fix_versions") or ()) or "no version yet"
    summary = found.get("summary") or "no summary"
    return f"{package['name']} {package['version']} has {names}: {summary}; fixed in {fixed}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Audit every dependency in uv.lock.")
    parser.add_argument("--require-advisories", action="store_true")
    parser.add_argument("--project", type=Path, default=ROOT)
    parser.add_argument("--service-url")
    asked = parser.parse_args(arguments)

    audit = Audit()
    packages = locked_packages(asked.project)
    audit.findings += origin_findings(packages)
    audit.looked.append(f"registry and hashes of {len(packages)}")
    if asked.project == ROOT:
        distributions = [
            distribution
            for distribution in importlib.metadata.distributions()
            if normal(distribution.name) != "oncebox"
        ]
        installed = {normal(each.name): each.version for each in distributions}
        audit.findings += installed_findings(packages, installed)
        audit.findings += licence_findings(distributions)
        audit.looked.append(f"version and licence of {len(installed)} installed")
    ask_for_vulnerabilities(asked.project, asked.service_url, audit, len(packages))

    for finding in audit.findings:
        print(f"FOUND: {finding}")
    said = f"Audited: {'; '.join(audit.looked)}; {len(audit.findings)} findings."
    if audit.left_out:
        said += f" NOT audited: {'; '.join(audit.left_out)}."
    print(said)
    if audit.findings:
        return 1
    return 2 if audit.left_out and asked.require_advisories else 0


if __name__ == "__main__":
    sys.exit(main())

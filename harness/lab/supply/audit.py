"""``python -m lab audit``: known vulnerabilities and bills of materials of environments, from their locks.

The tools are those of their field: pip-audit and cyclonedx-py, from the lock `audit`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executorch_goldens.cli import DIFFERENT, ERROR, SAME
from executorch_goldens.settings import releases
from executorch_goldens.toolchains import locking
from lab import REPOSITORY

BILLS = REPOSITORY / "build" / "bom"

#: A lock of one distribution: whether anybody answers is found out with one question.
SMALLEST = "build"


@dataclass(frozen=True)
class Answer:
    """The answer of a vulnerability service.

    Attributes
    ----------
    known
        A line for each vulnerability of a distribution.
    unasked
        A line for each distribution that it said nothing about, or one why it did not answer.
    """

    known: tuple[str, ...]
    unasked: tuple[str, ...]


def tool(name: str) -> str:
    """Return the path of a program of this environment."""
    return str(Path(sysconfig.get_path("scripts")) / name)


# Vulnerabilities


def answer(printed: Mapping[str, Any]) -> Answer:
    """Return the content of pip-audit's JSON.

    It ends with 0 where a distribution was skipped, for instance because the index has none of the data: that is no
    answer.
    """
    known, unasked = [], []
    for each in printed["dependencies"]:
        if "skip_reason" in each:
            unasked.append(f"{each['name']}: {each['skip_reason']}")
        for found in each.get("vulns", ()):
            fixed = ", ".join(found["fix_versions"]) or "no version"
            known.append(f"{each['name']} {each['version']}: {found['id']}, fixed in {fixed}")
    return Answer(tuple(dict.fromkeys(known)), tuple(dict.fromkeys(unasked)))


def asked(names: Sequence[str], service: str) -> Answer:
    """Ask a service about the content of locks."""
    files = (word for name in names for word in ("-r", str(locking.path(name))))
    command = [tool("pip-audit"), "--format", "json", "--vulnerability-service", service]
    command += ["--require-hashes", "--disable-pip", "--progress-spinner", "off", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return answer(json.loads(done.stdout))
    except ValueError:
        last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
        return Answer((), tuple(last) or (f"pip-audit ended with {done.returncode}",))


def vulnerabilities(service: str) -> int:
    """Print known vulnerabilities of locked packages; return the exit code."""
    if unasked := asked([SMALLEST], service).unasked:
        print(f"known vulnerabilities: nobody could be asked, {service} does not answer ({unasked[0][:200]})")
        return ERROR
    code = SAME
    for name in sorted(file.stem for file in locking.FOLDER.glob("*.txt")):
        found = asked([name], service)
        lines = [*found.known, *(f"not asked about: {line}" for line in found.unasked)]
        print(f"{name}: {'; '.join(lines) or 'no known vulnerabilities'}", flush=True)
        code = DIFFERENT if found.known or code == DIFFERENT else ERROR if found.unasked else code
    return code


# Bills of materials


def write_bills(folder: Path) -> Iterator[Path]:
    """Write a CycloneDX file for each release: this project, and all that its environment has, with hashes."""
    folder.mkdir(parents=True, exist_ok=True)
    for release in releases.load().releases.values():
        locks = (locking.path(name) for name in (release.version, locking.torch_of(release)))
        held = "".join(lock.read_text(encoding="utf-8") for lock in locks)
        file = folder / f"{release.version}.cdx.json"
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "cyclonedx_py",
            "requirements",
            "--output-reproducible",
        ]
        command += ["--pyproject", str(REPOSITORY / "pyproject.toml"), "--output-file", str(file), "-"]
        subprocess.run(command, input=held, text=True, check=True)
        yield file


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "audit",
        description="Write bills of materials, and ask about known vulnerabilities of locked packages: exits with 1 if "
        "there are any, with 2 if nobody could be asked.",
    )
    parser.add_argument(
        "--service", choices=("pypi", "osv"), default="pypi", help="whom to ask (default: %(default)s)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the bills, and ask about vulnerabilities."""
    for file in write_bills(BILLS):
        print(f"written: {file.relative_to(REPOSITORY)}")
    return vulnerabilities(options.service)

"""``python -m lab probe REQUIREMENT``: tries an ExecuTorch that is not in the matrix, and says what it would take.

An environment is made for it; the upstream issues are tried in it with patches off and on; the zoo is exported and
judged in it, recorded under ``build/probe`` and compared with the goldens of the nearest release of the matrix. What
comes out is the table that ``releases.toml`` would need. Nothing outside of ``build/probe`` is written.

``--newest`` asks the package index what is newer than the newest release of the matrix, and tries that.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomlkit
from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from executorch_goldens import patches, releases
from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.compare.drift import Drift
from executorch_goldens.errors import CommandError, UsageError
from executorch_goldens.files.untrusted import markdown
from executorch_goldens.goldens.reading import read
from executorch_goldens.patches.shortcuts import SHORTCUTS
from executorch_goldens.running.selection import load_cells, select
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import share
from executorch_goldens.settings.exports import EXPORT_TIMEOUT, Settings, cores, worker_environment
from executorch_goldens.toolchains.installed import Installed
from executorch_goldens.variations import parse_hash_seeds
from executorch_goldens.workers.sweep import SweepError
from executorch_goldens.workers.worker import with_harness
from lab.probe import newest
from lab.stock import issues

EXAMPLES = """\
examples:
  python -m lab probe "executorch==1.6.0"
  python -m lab probe ./executorch-1.6.0a0-cp311-cp311-linux_x86_64.whl --with torch==2.15.0
  python -m lab probe ../executorch --cell 'tosa-int/cat-*' --variations 1
  python -m lab probe --newest --cell '*/linear' --cell '*/lstm'
"""
#: What ``--newest`` writes of all that it tried.
PAGE = "newest.md"
#: What an entry of releases.toml pins in addition to executorch.
PINNED = ("torch", "torchao", "tosa-tools", "pytest")
#: Lines of the drift that are printed; the whole is in a file.
SHOWN_LINES = 25


@dataclass(frozen=True)
class Trial:
    """A release under trial and where its things are.

    Attributes
    ----------
    folder
        Of the environment, the logs, the matrix, the goldens and the drift.
    python
        Interpreter of the environment.
    release
        What is installed there, as releases.toml would have it.
    nearest
        The release of the matrix that it is compared with.
    """

    folder: Path
    python: Path
    release: releases.Release
    nearest: releases.Release


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "probe",
        description="Make an environment for an ExecuTorch, export the zoo in it, compare with the nearest release.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "requirement", metavar="REQUIREMENT", nargs="?", help="of pip: executorch==X, a wheel, a checkout"
    )
    parser.add_argument(
        "--newest",
        action="store_true",
        help="try what the package index has of executorch, torch, torchao and tosa-tools that is newer than the "
        "newest release of the matrix: each alone, then all together",
    )
    parser.add_argument(
        "--with",
        dest="others",
        action="append",
        default=[],
        metavar="REQUIREMENT",
        help="install with it, e.g. torch==2.15.0; default: what it requires itself, else what the nearest release has",
    )
    share(parser.add_argument, "--cell")
    share(parser.add_argument, "--variations", default="quick", help="default: %(default)s")
    share(parser.add_argument, "--jobs", default=cores())
    share(parser.add_argument, "--export-timeout", default=EXPORT_TIMEOUT)
    parser.add_argument(
        "--folder", type=Path, default=Path("build/probe"), metavar="DIR", help="default: %(default)s"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Try the release, print what was found; return 0 if nothing drifted from the nearest release, else 1."""
    if arguments.newest:
        return run_newest(arguments)
    if arguments.requirement is None:
        raise CommandError("name what to try, e.g. executorch==1.6.0, or say --newest")
    wanted = named(arguments.requirement)
    folder = arguments.folder.resolve() / re.sub(r"[^A-Za-z0-9.]+", "-", Path(arguments.requirement).name)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        trial = install(folder, wanted, arguments.others)
        found, needed = try_issues(trial, arguments)
        known = sweep(trial, found, needed, arguments)
        drifted = compared(trial, known, arguments.cell)
    except (UsageError, SweepError) as error:
        raise CommandError(str(error)) from error
    whole = folder / "drift.md"
    lines = list(drifted.markdown())
    whole.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines[:SHOWN_LINES]))
    print(f"\nall of it: {whole}\n\nfor {releases.MATRIX.name}:\n")
    print(entry(trial, found, needed, known), end="")
    return DIFFERENT if drifted.entries else SAME


# What is newest


@dataclass(frozen=True)
class Tried:
    """What became of a combination: what drifted, or why it could not be tried; and the cells without a golden."""

    combination: newest.Combination
    drift: Drift | None
    failure: str
    known: Mapping[str, str]

    @property
    def drifted(self) -> bool:
        """Whether something is not as in the release."""
        return self.drift is None or bool(self.drift.entries)

    def markdown(self) -> Iterator[str]:
        """Yield its section of the page."""
        combination = self.combination
        yield f"## {combination.name}"
        yield ""
        yield f"`{' '.join((combination.executorch, *combination.others))}`"
        yield ""
        if self.drift is None:
            yield f"Could not be tried: {markdown(self.failure)}"
            return
        # Its own heading names two releases, which may be one here.
        for line in list(self.drift.markdown())[2:]:
            yield f"#{line}" if line.startswith("##") else line
        if self.known:
            yield ""
            yield "Neither stable nor recorded:"
            yield ""
            yield from (f"- {cell}: {markdown(said)}" for cell, said in sorted(self.known.items()))


def run_newest(arguments: argparse.Namespace) -> int:
    """Try what is newer than the newest release; write and print a page; return 0 if nothing drifted, else 1."""
    if arguments.requirement is not None or arguments.others:
        raise CommandError("--newest finds out itself what to try: leave REQUIREMENT and --with out")
    matrix = releases.load()
    base = newest.last(matrix)
    found = newest.newest(matrix.python)
    combinations = newest.combinations(base, found)
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    tried = [attempted(combination, base, folder, arguments) for combination in combinations]
    versions = ", ".join(f"{name} {version}" for name, version in found.items())
    paired = ", ".join(f"{name} {pin}" for name, pin in base.stack().items())
    lines = ["# What is newest, against the newest release", ""]
    lines += [f"On the package index: {versions}.", "", f"In the matrix: {paired}."]
    if not tried:
        lines += ["", "Nothing is newer."]
    for each in tried:
        lines += ["", *each.markdown()]
    page = folder / PAGE
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    print(f"\nwritten to {page}")
    return DIFFERENT if any(each.drifted for each in tried) else SAME


def attempted(
    combination: newest.Combination, base: releases.Release, folder: Path, arguments: argparse.Namespace
) -> Tried:
    """Try a combination. What cannot be installed, or cannot export at all, is an answer as well."""
    print(f"trying {combination.name}", flush=True)
    place = folder / combination.folder
    place.mkdir(parents=True, exist_ok=True)
    try:
        trial = install(place, combination.executorch, combination.others)
        if trial.release.version == base.version:
            # The release's own code: its patches fit, and it shows of the issues what it is declared to show.
            found, needed = base.issues, base.patches
        else:
            found, needed = try_issues(trial, arguments)
        known = sweep(trial, found, needed, arguments)
        return Tried(combination, compared(trial, known, arguments.cell), "", known)
    except (CommandError, UsageError, SweepError) as error:
        return Tried(combination, None, str(error), {})


def shortcuts(trial: Trial) -> tuple[str, ...]:
    """Return the shortcuts for a trial: none for a release of the matrix, whose own are for its own torch.

    They change no byte, so that it only takes longer.
    """
    return () if trial.release.version in releases.load().releases else tuple(SHORTCUTS)


# The environment


def named(requirement: str) -> str:
    """Return what an installer is asked for; raise CommandError for what is neither a requirement nor a path."""
    path = Path(requirement)
    if path.exists():
        return str(path.resolve())
    if path.suffix == ".whl" or (os.sep in requirement and "://" not in requirement):
        raise CommandError(f"{requirement}: no such wheel or checkout")
    try:
        parsed = Requirement(requirement)
    except InvalidRequirement as error:
        raise CommandError(
            f"{requirement!r} is not a requirement of pip ({str(error).splitlines()[0]}); e.g. executorch==1.6.0"
        ) from error
    if parsed.name != "executorch":
        raise CommandError(f"{requirement!r} is {parsed.name}, not executorch; put it behind --with")
    return requirement


def install(folder: Path, wanted: str, others: Sequence[str]) -> Trial:
    """Make the environment: what executorch requires itself, what was asked for, and the nearest release's pins."""
    matrix = releases.load()
    python = folder / "env" / "bin" / "python"
    uv = shutil.which("uv")
    log = folder / "install.log"
    log.write_text("")
    if not python.exists():
        make = [uv, "venv", "--python", matrix.python] if uv else [sys.executable, "-m", "venv"]
        _run([*make, str(folder / "env")], log)
    pip = [uv, "pip", "install", "--python", str(python)] if uv else [str(python), "-m", "pip", "install"]
    print(f"installing {wanted} in {folder / 'env'}", flush=True)
    _run([*pip, "--no-deps", wanted], log)
    version = Installed.probe(python).versions["executorch"]
    nearest = closest(version, matrix)
    stated = _required(python) | {Requirement(other).name for other in others}
    pins = [f"{name}=={pin}" for name, pin in nearest.pins.items() if name not in stated | {"executorch"}]
    _run([*pip, wanted, *others, *pins], log)
    installed = _versions(python)
    release = releases.Release(
        version=version,
        pins={**nearest.pins, "executorch": version, **installed},
        targets=nearest.targets,
        unsupported=nearest.unsupported,
        patches=(),
        issues={},
        known={},
    )
    stack = ", ".join(f"{name} {pin}" for name, pin in release.stack().items())
    print(f"{stack}; nearest in the matrix: {nearest.version}", flush=True)
    return Trial(folder, python, release, nearest)


def closest(version: str, matrix: releases.Matrix) -> releases.Release:
    """Return the release of the matrix of the same minor version, else the last before it, else the first of all."""
    ordered = sorted(matrix.releases, key=Version)
    minor = Version(version).release[:2]
    before = [known for known in ordered if Version(known).release[:2] <= minor]
    return matrix.releases[(before or ordered[:1])[-1]]


def _required(python: Path) -> set[str]:
    """Return the distributions that the installed executorch itself requires."""
    code = "from importlib import metadata; print('\\n'.join(metadata.requires('executorch') or ()))"
    found = (Requirement(line) for line in _asked(python, code).splitlines() if line)
    return {each.name for each in found if each.marker is None or each.marker.evaluate()}


def _versions(python: Path) -> dict[str, str]:
    code = f"from importlib import metadata as m; print('\\n'.join(map(m.version, {PINNED!r})))"
    found = (line.partition("+")[0] for line in _asked(python, code).split())
    return dict(zip(PINNED, found, strict=True))


def _asked(python: Path, code: str) -> str:
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout


def _run(command: Sequence[str], log: Path) -> None:
    """Run a command with its output behind `log`; raise CommandError with its last line if it fails."""
    code, last = _logged(command, log)
    if code:
        raise CommandError(f"{' '.join(command[:4])} ... failed: {last or code}; see {log}")


def _logged(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run a command with its output behind `log`; return its exit code and the last line that says something."""
    with log.open("a", encoding="utf-8") as out:
        code = subprocess.run(
            command, stdout=out, stderr=subprocess.STDOUT, env=environment, check=False
        ).returncode
    lines = [line for line in log.read_text(encoding="utf-8").splitlines() if line.strip()]
    return code, lines[-1] if lines else ""


# The release in it


def try_issues(trial: Trial, arguments: argparse.Namespace) -> tuple[dict[int, str], tuple[str, ...]]:
    """Try the upstream issues with patches off and on; return their states and the patches that help."""
    zoos = config.load().zoos(None)
    settings = Settings(
        trial.python, zoos, (), arguments.jobs, arguments.export_timeout, shortcuts=shortcuts(trial)
    )
    seeds = parse_hash_seeds(issues.HASH_SEEDS)
    states = {number: finding.state for number, finding in issues.findings(settings, seeds).items()}
    needed: list[str] = []
    for patch in patches.PATCHES.values():
        if patch.issue is None:  # what corrects a finding is declared for no release
            continue
        state = states[patch.issue]
        if state == "fixed":
            said = "not needed"
        else:
            if trial.release.version in patch.fits:
                patched = issues.findings(replace(settings, patches=(patch.name,)), seeds)
                said = f"needed; with it: {patched[patch.issue].state}"
                needed += [patch.name] if patched[patch.issue].state == "fixed" else []
            else:
                said = f"needed; {fits(trial, patch)}"
        print(f"#{patch.issue}: {state}; patch {patch.name}: {said}", flush=True)
    return states, tuple(needed)


def fits(trial: Trial, patch: patches.Patch) -> str:
    """Return whether a patch that does not know the release would fit: whether its functions are the nearest's."""
    nearest = trial.nearest.version
    if nearest not in patch.fits:
        return f"it is not for {nearest} either: write one"
    code = (
        "from executorch_goldens.patches.guard import digest; print(*(digest(name) for name in sys.argv[1:]))"
    )
    functions = patch.fits[nearest]
    found = subprocess.run(
        [*with_harness(trial.python, code), *functions],
        capture_output=True,
        text=True,
        check=False,
        env=worker_environment(trial.python, 0),
    )
    if found.returncode == 0 and found.stdout.split() == list(functions.values()):
        return f"its functions are those of {nearest}: add {trial.release.version} beside it in the patch's module"
    how = "`python -m executorch_goldens.patches` prints digests"
    return f"its functions are not those of {nearest}: review them ({how})"


def sweep(
    trial: Trial, found: Mapping[int, str], needed: Sequence[str], arguments: argparse.Namespace
) -> dict[str, str]:
    """Export, judge and record the zoo; return the cells that have no golden, with their verdict and its reason."""
    matrix = trial.folder / releases.MATRIX.name
    write_matrix(trial, found, needed, matrix)
    goldens, sweeps = trial.folder / "goldens", trial.folder / "sweeps"
    shutil.rmtree(goldens, ignore_errors=True)
    log = trial.folder / "sweep.log"
    command = [sys.executable, "-m", "executorch_goldens", "run", "-q", "--cache=off"]
    command += [
        "--matrix",
        str(matrix),
        "--release",
        trial.release.version,
        "--interpreter",
        str(trial.python),
    ]
    command += [
        "--goldens",
        str(goldens),
        "--sweeps",
        str(sweeps),
        "--snapshot-update",
        "--jobs",
        str(arguments.jobs),
        "--export-timeout",
        str(arguments.export_timeout),
    ]
    command += ["--variations", arguments.variations]
    command += ["--shortcuts", ",".join(shortcuts(trial)) or "none"]
    command += [word for cell in arguments.cell or () for word in ("--cell", cell)]
    print(f"exporting the zoo; follow it in {log}", flush=True)
    # These goldens are not accepted by anyone: they are there to be compared, in CI as well.
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    log.write_text("")
    code, last = _logged(command, log, environment)
    if code > 1:
        raise CommandError(f"the sweep could not run: {last or code}; see {log}")
    print(last.strip("= "))
    results = (sweeps / trial.release.version / "results.jsonl").read_text(encoding="utf-8").splitlines()
    judged = [json.loads(line) for line in results]
    return {
        f"{each['target']}/{each['case']}": f"{each['verdict']}: {each['reason']}"
        for each in judged
        if each["verdict"] not in ("new", "stable")
    }


def compared(trial: Trial, known: Mapping[str, str], cells: Sequence[str] | None) -> Drift:
    """Return what changed from the nearest release, over the cells that were exported."""
    exported = select(load_cells(config.load().zoos(None), trial.release), cells)
    defects = {cell: releases.KnownDefect(*said.split(": ", 1)) for cell, said in known.items()}
    before = read(config.load().goldens / trial.nearest.version, trial.nearest.known)
    after = read(trial.folder / "goldens" / trial.release.version, defects)
    return Drift.of(
        (trial.nearest.version, {cell: read for cell, read in before.items() if cell in exported}),
        (trial.release.version, after),
    )


def write_matrix(trial: Trial, found: Mapping[int, str], needed: Sequence[str], file: Path) -> None:
    """Write the matrix with the trial's release in it, in place of one of the same version."""
    tables = tomllib.loads(releases.MATRIX.read_text(encoding="utf-8"))
    tables["releases"][trial.release.version] = fields(trial, found, needed, {})
    file.write_text(tomlkit.dumps(tables), encoding="utf-8")


def entry(trial: Trial, found: Mapping[int, str], needed: Sequence[str], known: Mapping[str, str]) -> str:
    """Return the table that releases.toml would need, as TOML."""
    return tomlkit.dumps({"releases": {trial.release.version: fields(trial, found, needed, known)}})


def fields(
    trial: Trial, found: Mapping[int, str], needed: Sequence[str], known: Mapping[str, str]
) -> dict[str, Any]:
    """Return the fields of that table."""
    release = trial.release
    return {
        **{name: release.pins[name] for name in PINNED},
        "unsupported": dict(release.unsupported),
        "patches": list(needed),
        "issues": {str(number): state for number, state in found.items()},
        **({"known": dict(sorted(known.items()))} if known else {}),
    }

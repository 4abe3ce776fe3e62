"""``goldens compile``: compiles TOSA payloads further, and compares the results with compiled goldens.

Vela does it for an Ethos-U, the model converter to VGF. ``nox -s "compile(1.4.1)"`` runs it with those that the release
names. The cells of a run are those that have a golden; ``--cell`` names others.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from executorch_goldens import patches
from executorch_goldens.artifact import Cell
from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.errors import CommandError
from executorch_goldens.files.invocation import UPDATE, require_a_person
from executorch_goldens.files.untrusted import require_name
from executorch_goldens.files.wording import count
from executorch_goldens.running.selection import require_repeats, select
from executorch_goldens.running.zoo import load_zoo
from executorch_goldens.settings import config, releases
from executorch_goldens.settings.arguments import Forms, share, with_short
from executorch_goldens.settings.exports import EXPORT_TIMEOUT, Settings, cores, default_interpreter
from executorch_goldens.toolchains import handing
from executorch_goldens.toolchains.toolchain import chosen as chosen_toolchain
from executorch_goldens.zoo import registry, targets
from executorch_goldens.zoo.variations import Variation, named, variations
from executorch_goldens_plugins.downstream import golden
from executorch_goldens_plugins.downstream.compilers import KINDS, CompileJob, Compiler, Result
from executorch_goldens_plugins.downstream.payloads import Payloads, exported, kept
from executorch_goldens_plugins.downstream.targets import TARGETS
from executorch_goldens_plugins.downstream.verdicts import CompileVerdict, judge

EXAMPLES = """\
examples:
  goldens compile --cell 'ethos-u55-128/linear'
  goldens compile --cell '*/linear' --snapshot-update
  goldens compile --release 1.4.1 --exported --against ../vela-5.0.0/bin/python
"""
#: Folder of the last run's payloads, below the folder of builds.
BUILD = Path("build/compiled")
#: The forms of the command, and the options of each.
EXPORTING, EXPORTED = "exporting", "--exported"
OPTIONS = {EXPORTING: ("--models", "--jobs", "--toolchain"), EXPORTED: (EXPORTED, "--release")}
#: Fits the verdicts in which a golden may be recorded.
RECORDED = ("new", "changed", "stable")


@dataclass(frozen=True)
class CompileRun:
    """Settings of a compiling run; `limit` is in seconds for each payload."""

    release: releases.Release
    compilers: Mapping[str, Compiler]
    variations: tuple[Variation, ...]
    limit: int

    def head(self, cell: Cell) -> dict[str, str]:
        """Return the head of a golden of `cell`."""
        target = TARGETS[cell.target]
        arguments = " ".join(target.arguments(self.release.version))
        return {
            "executorch": self.release.version,
            target.compiler: self.compilers[target.compiler].version,
            **({"arguments": arguments} if arguments else {}),
            "payloads of": str(source(cell)),
            "variations": " ".join(each.name for each in self.variations),
        }


@dataclass(frozen=True)
class Goldens:
    """The compiled goldens of a release, below the root of the goldens."""

    root: Path
    release: str

    def path(self, cell: Cell) -> Path:
        """Return where the golden of `cell` is."""
        return golden.path_of(self.root, self.release, cell.target, cell.case)

    def cells(self) -> list[Cell]:
        """Return the cells that have one."""
        files = (self.root / golden.FOLDER / self.release).glob("*/*.txt")
        found = (Cell(file.parent.name, require_name(file.stem)) for file in files)
        return sorted(cell for cell in found if cell.target in TARGETS)


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "compile",
        description="Export cells for TOSA, compile the payloads with Vela or the model converter under every "
        "variation, and compare with compiled goldens.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    share(with_short(parser.add_argument), "--toolchain")
    share(parser.add_argument, "--release", help="of the payloads that the last run has left, for --exported")
    share(
        parser.add_argument,
        "--cell",
        help="these cells; wildcards; repeatable (default: those that have a golden)",
    )
    share(parser.add_argument, "--variations", default="full", help="default: %(default)s")
    share(parser.add_argument, "--models")
    share(parser.add_argument, "--goldens")
    share(parser.add_argument, "--jobs", default=cores())
    share(parser.add_argument, "--export-timeout", default=EXPORT_TIMEOUT)
    for kind in KINDS.values():
        parser.add_argument(
            kind.option,
            type=Path,
            metavar="PYTHON",
            help=f"Python of the environment that has {' and '.join(kind.needs)} (default: {kind.variable})",
        )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="PYTHON",
        help="compare with the compiler of this environment on the same payloads, not with goldens",
    )
    parser.add_argument(
        EXPORTED,
        action="store_true",
        help=f"compile the last run's payloads in {BUILD} and export nothing; needs --release",
    )
    parser.add_argument(UPDATE, action="store_true", help="record cells that are new or changed")
    forms = Forms(OPTIONS, lambda arguments: EXPORTED if arguments.exported else EXPORTING)
    parser.set_defaults(run=run, forms=forms)


def run(arguments: argparse.Namespace) -> int:
    """Print the verdict of each cell; return 0 if all are stable or were recorded, else 1."""
    recording = arguments.snapshot_update
    repeats = variations(named(arguments.variations))
    if recording and arguments.against:
        raise CommandError(
            f"{UPDATE} records goldens, and --against compares with none: leave one of them out"
        )
    require_a_person(recording)
    require_repeats(recording, len(repeats), "Pass --variations full.")
    release = release_of(arguments)
    goldens = Goldens(arguments.goldens or config.load().goldens, release.version)
    cells, stale = chosen(goldens, release, arguments)
    compilers = {
        name: compiler_of(name, release, arguments, recording)
        for name in dict.fromkeys(TARGETS[cell.target].compiler for cell in cells)
    }
    this = CompileRun(release, compilers, repeats, math.ceil(arguments.export_timeout))
    payloads = payloads_of(cells, release, arguments)
    if arguments.against:
        before, stale = against(this, arguments.against, payloads), []
    else:
        before = {cell: golden.read(goldens.path(cell)) for cell in payloads}
    found = judged(this, payloads, before)
    verdicts = [recorded(*each, goldens) if recording else each[0] for each in found]
    return reported([*verdicts, *stale])


def recorded(verdict: CompileVerdict, made: golden.Golden, goldens: Goldens) -> CompileVerdict:
    """Write the result of a cell, if it may be recorded; return the verdict after that."""
    if verdict.name not in RECORDED:
        return verdict
    golden.write(goldens.path(verdict.cell), made)
    # That a refusal was recorded is said once more.
    refuses = verdict.name == "new" and any("refused" in facts for facts in made.delegates)
    refused = verdict.reason if refuses else ""
    return CompileVerdict(verdict.cell, "stable" if verdict.name == "stable" else "recorded", refused)


def reported(verdicts: Sequence[CompileVerdict]) -> int:
    """Print verdicts that are not stable, and counts; return the exit code."""
    for verdict in verdicts:
        if verdict.name != "stable":
            print("\n".join(verdict.lines()))
    counts = Counter(verdict.name for verdict in verdicts)
    print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "no cells")
    return SAME if set(counts) <= {"stable", "recorded"} else DIFFERENT


def compiler_of(
    name: str, release: releases.Release, arguments: argparse.Namespace, recording: bool
) -> Compiler:
    """Return a compiler, and print which; raise CommandError where another than the release's would record goldens."""
    wanted = release.compilers.get(name)
    compiler = Compiler.find(name, option_of(name, arguments), release.compilers, release.version)
    if recording and compiler.version != wanted:
        raise CommandError(
            f"{UPDATE}: {release.version} names {name} {wanted} (releases.toml), and this is "
            f"{compiler.version}: goldens are made by the one that is named"
        )
    print(f"ExecuTorch {release.version}, {name} {compiler.version}", flush=True)
    if compiler.version != wanted:
        print(
            f"  {release.version} names {wanted}: differences below come from the different version",
            flush=True,
        )
    return compiler


def release_of(arguments: argparse.Namespace) -> releases.Release:
    """Return the release that is installed; with ``--exported`` the one that is named."""
    if not arguments.exported:
        handing.over_if_needed(arguments, ["compile", *arguments.forwarded])
        return chosen_toolchain(arguments.toolchain).release
    if arguments.release is None:
        raise CommandError("--exported needs --release: the folder of payloads is that of a release")
    return releases.load().release(arguments.release)


def source(cell: Cell) -> Cell:
    """Return the TOSA cell whose payloads a compiled cell takes."""
    return Cell(TARGETS[cell.target].takes, cell.case)


def chosen(
    goldens: Goldens, release: releases.Release, arguments: argparse.Namespace
) -> tuple[list[Cell], list[CompileVerdict]]:
    """Return the cells to compile; and, without ``--cell``, those with only a golden."""
    recorded = goldens.cells()
    if arguments.exported:
        known = sorted({*recorded, *of_build(release.version)})
    else:
        known = of_zoo(release, config.load().zoos(arguments.models))
    known = [cell for cell in known if can_compile(TARGETS[cell.target].compiler, release, arguments)]
    if arguments.cell:
        if not known:
            raise CommandError(f"--exported: {BUILD / release.version} has no payloads")
        selected = select(known, arguments.cell)
        return [cell for cell in known if cell in selected], []
    if not recorded:
        raise CommandError(
            f"{goldens.root / golden.FOLDER / release.version} has no golden: name cells by --cell, "
            f"e.g. --cell 'ethos-u55-128/linear' {UPDATE}"
        )
    stale = [
        CompileVerdict(cell, "stale", f"its case is gone; delete {goldens.path(cell)}")
        for cell in recorded
        if cell not in set(known)
    ]
    return [cell for cell in known if cell in set(recorded)], stale


def can_compile(compiler: str, release: releases.Release, arguments: argparse.Namespace) -> bool:
    """Return whether the release or the command line names a compiler; docs/plugins/downstream.md has why not."""
    return compiler in release.compilers or option_of(compiler, arguments) is not None


def option_of(compiler: str, arguments: argparse.Namespace) -> Path | None:
    """Return the Python that the command line names for a compiler."""
    python: Path | None = getattr(arguments, KINDS[compiler].option.removeprefix("--"))
    return python


def of_build(release: str) -> Iterator[Cell]:
    """Yield the cells whose payloads the last run has kept."""
    for target in TARGETS.values():
        for folder in (BUILD / release / target.takes).glob("*/"):
            yield Cell(target.name, require_name(folder.name))


def of_zoo(release: releases.Release, models: Sequence[str]) -> list[Cell]:
    """Return every cell that could be compiled: of each target, the cases that its TOSA target takes."""
    cases: Mapping[str, registry.Case] = load_zoo(models)
    return [
        Cell(target.name, name)
        for target in TARGETS.values()
        for name, case in cases.items()
        if (not case.releases or release.version in case.releases)
        and targets.find(target.takes).is_for(case.backends)
    ]


def payloads_of(
    cells: Sequence[Cell], release: releases.Release, arguments: argparse.Namespace
) -> dict[Cell, Payloads]:
    """Return the payloads of cells: exported, or kept by the last run."""
    folder = BUILD / release.version
    if arguments.exported:
        return {cell: kept(source(cell), folder) for cell in cells}
    repository = config.load()
    settings = Settings(
        default_interpreter(),
        repository.zoos(arguments.models),
        patches.select(repository.patches, release.patches),
        arguments.jobs,
        arguments.export_timeout,
        execute=False,
    )
    sources = list(dict.fromkeys(map(source, cells)))
    print(f"exporting {count(len(sources), 'cell')} for TOSA", flush=True)
    found = dict(exported(sources, settings, folder))
    return {cell: found[source(cell)] for cell in cells}


def judged(
    this: CompileRun, payloads: Mapping[Cell, Payloads], before: Mapping[Cell, golden.Golden | None]
) -> Iterator[tuple[CompileVerdict, golden.Golden]]:
    """Compile everything under each variation; yield the verdict of each cell, and the golden it would get."""
    made = compiled(this, payloads)
    for cell, given in payloads.items():
        if given.failure:
            reason = f"{source(cell)} has no payload: {given.failure}"
            yield CompileVerdict(cell, "failed", reason), golden.Golden(this.head(cell), ())
            continue
        compiler = TARGETS[cell.target].compiler
        facts = {
            name: golden.delegates(compiler, given.named, results[cell]) for name, results in made.items()
        }
        first = next(iter(facts.values()))
        agreed = golden.Golden(this.head(cell), first if isinstance(first, tuple) else ())
        yield judge(cell, facts, before.get(cell), agreed.head), agreed


def against(
    this: CompileRun, python: Path, payloads: Mapping[Cell, Payloads]
) -> dict[Cell, golden.Golden | None]:
    """Return the results of another environment's compilers for the payloads, as goldens; None where one died."""
    release = this.release
    others = {
        name: Compiler.find(name, python, release.compilers, release.version, "--against")
        for name in this.compilers
    }
    print("against " + ", ".join(f"{name} {other.version}" for name, other in others.items()), flush=True)
    once = replace(this, compilers=others, variations=this.variations[:1])
    return {verdict.cell: made if made.delegates else None for verdict, made in judged(once, payloads, {})}


def compiled(this: CompileRun, payloads: Mapping[Cell, Payloads]) -> dict[str, dict[Cell, list[Result]]]:
    """Return the compiled delegates of every cell, by the name of the variation."""
    found: dict[str, dict[Cell, list[Result]]] = {}
    for variation in this.variations:
        by_cell: dict[Cell, list[Result]] = {cell: [] for cell in payloads}
        for name, compiler in this.compilers.items():
            owners = [
                (cell, payload)
                for cell, given in payloads.items()
                if TARGETS[cell.target].compiler == name
                for _, payload in given.named
            ]
            jobs = [
                CompileJob(payload, TARGETS[cell.target].arguments(this.release.version))
                for cell, payload in owners
            ]
            results = compiler.compile(jobs, variation, this.limit) if jobs else []
            for (cell, _), result in zip(owners, results, strict=True):
                by_cell[cell].append(result)
        found[variation.name] = by_cell
    return found

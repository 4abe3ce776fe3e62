"""One run over the cells of one release: what it exports, what is said of each cell, what it leaves behind."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import filelock
from syrupy.assertion import SnapshotAssertion

from harness import config, patches, variations
from harness.artifact import PARTITIONING, Artifact, Casualty, Cell, Failure, Lowered, Outcome, PassRun
from harness.exporting import shortcuts
from harness.judging import golden, parting, verdict
from harness.judging.snapshot import GoldenExtension
from harness.judging.verdict import Verdict
from harness.selection import (
    Installed,
    UsageError,
    find_release,
    load_cells,
    of_families,
    require_extensions,
    require_flatc,
    require_known,
    require_supported,
    select,
)
from harness.sweep import Settings, Sweep, cores, default_interpreter


@dataclass(frozen=True)
class Options:
    """What a run was asked for: the plugin's command line, read.

    Attributes
    ----------
    release
        The release that must be installed; None takes whichever is.
    matrix
        The file that says what there is of releases.
    cells
        Patterns ``TARGET/CASE``; empty selects every cell.
    families
        Names of families that cells are taken from; empty takes all.
    variations, hash_seeds
        What ``--variations`` says, unless ``--hash-seeds`` names them one by one.
    interpreter
        Python of the exporting environment; None is this one.
    goldens, sweeps
        Directories that hold one directory per release.
    updating
        Whether goldens may be written.
    targets, releases, tolerances
        See `harness.config.Config`.
    """

    release: str | None
    matrix: Path
    cells: tuple[str, ...]
    families: tuple[str, ...]
    variations: str
    hash_seeds: str | None
    jobs: int | None
    export_timeout: float
    patches: str
    shortcuts: str
    models: tuple[str, ...]
    goldens: Path
    sweeps: Path
    interpreter: Path | None
    isolation: str
    updating: bool
    targets: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    tolerances: Mapping[str, float] = dataclasses.field(default_factory=dict)


class Run:
    """A run over some cells of one release: what the fixtures, the report and the results are made of.

    Attributes
    ----------
    release
        What is installed in the exporting environment.
    root
        Directory of this release's goldens.
    known
        Every cell that the zoo and the release make, selected or not.
    verdicts
        Of the cells that were checked.
    differences
        Of those of them whose program is right, `harness.judging.verdict.worst_difference`.
    """

    def __init__(self, options: Options) -> None:
        self.updating = options.updating
        if self.updating and os.environ.get("CI"):
            raise UsageError(
                "--snapshot-update is refused because CI is set: goldens are accepted by a person, in a checkout. "
                "Run it there and commit what it wrote."
            )
        interpreter = options.interpreter or default_interpreter()
        installed = Installed.probe(interpreter)
        self.release = find_release(installed, options.release, options.matrix)
        try:
            seeds = (
                variations.named(options.variations)
                if options.hash_seeds is None
                else variations.parse_hash_seeds(options.hash_seeds)
            )
            require_supported(self.release, options.releases)
            require_known(options.tolerances, "tolerances")
            self.known = load_cells(options.models, self.release, options.targets)
            # A module that registers cases may register patches as well.
            self.patches = patches.select(options.patches, self.release.patches)
            named_shortcuts = shortcuts.select(options.shortcuts)
        except ValueError as error:
            raise UsageError(str(error)) from error
        self.selected = select(of_families(self.known, options.families, options.models), options.cells)
        self.variations = variations.variations(seeds)
        self.settings = Settings(
            interpreter=interpreter,
            models=options.models,
            patches=self.patches,
            jobs=options.jobs or cores(),
            limit=options.export_timeout,
            isolation=options.isolation,
            shortcuts=named_shortcuts,
            tolerances=options.tolerances,
        )
        require_flatc(interpreter)
        require_extensions(installed, interpreter, self.selected, self.patches)
        self.root = options.goldens.resolve() / self.release.version
        self.sweeps = options.sweeps.resolve() / self.release.version
        self.verdicts: dict[Cell, Verdict] = {}
        self.differences: dict[Cell, float] = {}
        self.sweep: Sweep | None = None
        self.lock = filelock.FileLock(self.sweeps / "lock")

    # Life of a run

    def start(self, cells: Sequence[Cell]) -> None:
        """Take the lock, make the folders ready and start exporting `cells`."""
        try:
            self.sweeps.mkdir(parents=True, exist_ok=True)
            self.lock.acquire(timeout=0)
        except filelock.Timeout as error:
            raise UsageError(
                f"another run works on {self.release.version} in this checkout (it holds {self.lock.lock_file}); "
                "wait for it, or give this one a checkout or a --sweeps of its own"
            ) from error
        except OSError as error:
            raise UsageError(f"--sweeps {self.sweeps} cannot be written: {error}") from error
        (self.sweeps / "results.jsonl").write_text("")
        golden.recover(self.root)
        if self.updating:
            try:
                probe = self.root / f"probe{golden.ASIDE}"
                probe.mkdir(parents=True, exist_ok=True)
                probe.rmdir()
            except OSError as error:
                raise UsageError(f"the goldens' folder {self.root} cannot be written: {error}") from error
        self.sweep = Sweep(cells, self.variations, self.settings)
        self.sweep.start()

    def finish(self) -> None:
        if self.sweep is not None:
            self.sweep.stop()
        self.lock.release()

    def check(self, cell: Cell, snapshot: SnapshotAssertion) -> Verdict:
        """Judge `cell`, record it where that was asked for, note the result.

        Raises
        ------
        SweepError
            When the harness itself could not export; no further cell will do better.
        GoldenError, DecodeError
            When the golden is damaged, or a payload is not what its format's schema says.
        """
        assert self.sweep is not None
        outcomes = self.sweep.outcomes(cell)
        judged, texts = self._compare(cell, outcomes)
        if texts is not None:
            artifact = outcomes[0].result
            if isinstance(artifact, Artifact) and isinstance(artifact.result, Lowered):
                self.differences[cell] = verdict.worst_difference(artifact.result)
            # syrupy compares once more, counts and, under --snapshot-update, records.
            recorded = snapshot.use_extension(GoldenExtension.for_root(self.root)) == texts
            judged = dataclasses.replace(judged, recorded=recorded and judged.recordable)
            place = golden.directory(self.root, cell)
            if judged.name == "stable" and self.updating and golden.TRACE not in (golden.read(place) or ()):
                golden.write(place, texts)
        if judged.name != "stable" and not judged.recorded:
            self._keep(cell, outcomes)
            judged = dataclasses.replace(judged, detail=(*self._where(judged, outcomes), *judged.detail))
        self.verdicts[cell] = judged
        self._note(judged, outcomes)
        return judged

    def judge(self, cell: Cell, outcomes: Sequence[Outcome]) -> Verdict:
        """Judge the exports of `cell`, compare them with its golden, name the pass that made the difference.

        Raises
        ------
        GoldenError, DecodeError
            See `check`.
        """
        return self._compare(cell, outcomes)[0]

    def _compare(self, cell: Cell, outcomes: Sequence[Outcome]) -> tuple[Verdict, golden.Texts | None]:
        """Return the verdict, and the texts of an artifact that could be the cell's golden."""
        objection = verdict.objection(cell, outcomes)
        defect = self.release.known.get(str(cell))
        if objection is not None:
            known = defect is not None and defect.verdict == objection.name
            return dataclasses.replace(
                objection, known=known, parting=self._parting(objection, outcomes)
            ), None
        if defect is not None:
            known_as = f"{defect.verdict} ({defect.reason})"
            reason = f"is right now, but releases.toml knows it as {known_as}: delete that entry"
            return Verdict(cell, "changed", reason), None
        artifact = verdict.agreed(outcomes)
        texts = golden.render(artifact, self._origin(artifact))
        reviewed = golden.read(golden.directory(self.root, cell))
        if reviewed is None:
            return verdict.new(cell), texts
        if golden.compared(reviewed) == golden.compared(texts):
            return Verdict(cell, "stable", ""), texts
        judged = verdict.changed(cell, reviewed, texts)
        return dataclasses.replace(judged, parting=self._parting(judged, outcomes)), texts

    def _parting(self, judged: Verdict, outcomes: Sequence[Outcome]) -> parting.Parting | None:
        """Return the pass at which an artifact went wrong; None where no pass tells.

        Where variations disagree it is the first at which two of them part; else the first whose result is not the one
        that the golden's trace tells.
        """
        if judged.name in verdict.DISAGREEING:
            return parting.parting(*(passes(group[0]) for group in verdict.group_by_content(outcomes)[:2]))
        artifact = outcomes[0].result
        texts = golden.read(golden.directory(self.root, judged.cell))
        if not isinstance(artifact, Artifact) or texts is None or golden.TRACE not in texts:
            return None
        result = artifact.result
        end = result.pass_name or result.function if isinstance(result, Failure) else None
        found = parting.departure(golden.read_trace(texts[golden.TRACE]), passes(outcomes[0]), end)
        made = result.made if isinstance(result, Failure) else result
        if found is not None and made is not None:
            change = verdict.payload_difference(found.name, texts, made)
            return dataclasses.replace(found, line=f"{found.line}: {change}") if change else found
        return found

    def _where(self, judged: Verdict, outcomes: Sequence[Outcome]) -> Iterator[str]:
        """Yield the line that names the pass, and what it made in the variations that it parts."""
        if judged.parting is not None:
            yield judged.parting.line
        elif judged.name in verdict.DISAGREEING:
            one_program = verdict.have_one_program(verdict.group_by_content(outcomes))
            made = "when the program runs" if one_program else "by serialization or emission"
            yield f"no pass diverges: what differs is made {made}"
        if judged.parting is not None and judged.name in verdict.DISAGREEING:
            pair = [group[0].variation for group in verdict.group_by_content(outcomes)[:2]]
            yield from self._difference(judged.cell, pair, judged.parting)

    def _difference(self, cell: Cell, names: Sequence[str], found: parting.Parting) -> Iterator[str]:
        """Export two variations again, which keep the graph that the pass at which they part left, and compare."""
        if found.numbers is None or f"({PARTITIONING})" in found.line:
            return
        kept = []
        for name, number in zip(names, found.numbers, strict=True):
            variation = [variation for variation in self.variations if variation.name == name]
            with Sweep([cell], variation, dataclasses.replace(self.settings, keep=number)) as sweep:
                (outcome,) = sweep.outcomes(cell)
            if isinstance(outcome.result, Artifact) and outcome.result.watched is not None:
                kept.append({f"graph after {found.name}": outcome.result.watched.kept})
        if len(kept) == 2:
            yield from verdict.text_difference(kept[0], kept[1], names[0], names[1])

    def _origin(self, artifact: Artifact) -> golden.Origin:
        return golden.Origin(
            stack=self.release.stack(),
            variations=[variation.name for variation in self.variations],
            numerics=numerics_line(artifact),
        )

    def is_whole(self) -> bool:
        """Whether every cell of the zoo and the release was checked."""
        return set(self.verdicts) == set(self.known)

    # What a person and a machine read

    def message(self, judged: Verdict) -> str:
        """Return what a failing test prints: verdict, cell, reason, detail, way on."""
        lines = [f"{judged.name}: {judged.cell} on ExecuTorch {self.release.version}: {judged.reason}"]
        lines += [f"  {line}" for line in judged.detail]
        if judged.recordable:
            lines.append(f"  accept: {self.command(judged.cell)} --snapshot-update")
        elif self.updating:
            lines.append(
                "  not recorded: only an artifact that all variations agree on, and that is right, can be."
            )
        lines.append(f"  again:  {self.command(judged.cell)}")
        if judged.name != "crashed":
            lines.append(f"  files:  {self.sweeps / judged.cell.target / judged.cell.case}")
        return "\n".join(lines)

    def command(self, cell: Cell) -> str:
        """Return the command that runs just `cell`, as this run does."""
        extra = []
        if self.patches != patches.select("auto", self.release.patches):
            extra.append(f" --patches {','.join(self.patches) or 'none'}")
        if self.variations != variations.variations():
            extra.append(f" --hash-seeds {','.join(str(v.hash_seed) for v in self.variations)}")
        if self.settings.models != config.load().models:
            extra += [f" --models {module}" for module in self.settings.models]
        return f'nox -s "goldens({self.release.version})" -- --cell {cell}{"".join(extra)}'

    def _note(self, judged: Verdict, outcomes: Sequence[Outcome]) -> None:
        """Append the cell's line to results.jsonl."""
        digests = {
            outcome.result.result.pte_sha256
            for outcome in outcomes
            if isinstance(outcome.result, Artifact) and isinstance(outcome.result.result, Lowered)
        }
        line = {
            "release": self.release.version,
            "target": judged.cell.target,
            "case": judged.cell.case,
            "verdict": judged.name,
            "variations": [outcome.variation for outcome in outcomes],
            "seconds": [round(outcome.seconds, 3) for outcome in outcomes],
            "peak_mb": round(max(outcome.peak_mb for outcome in outcomes), 1),
            "pte_sha256": digests.pop() if len(digests) == 1 else None,
            "difference": self.differences.get(judged.cell),
            "reason": judged.reason,
            "known": judged.known,
            "pass": judged.parting.name if judged.parting else None,
        }
        with (self.sweeps / "results.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _keep(self, cell: Cell, outcomes: Sequence[Outcome]) -> None:
        """Leave the texts and payloads of every variation beside the results, for diff and decode."""
        folder = self.sweeps / cell.target / cell.case
        for outcome in outcomes:
            if isinstance(outcome.result, Casualty):
                continue
            place = folder / outcome.variation
            golden.write(place, golden.render(outcome.result, self._origin(outcome.result)))
            result = outcome.result.result
            made = result.made if isinstance(result, Failure) else result
            if made is not None:
                if made.pte:
                    (place / "program.pte").write_bytes(made.pte)
                for index, delegate in enumerate(made.delegates):
                    (place / f"delegate_{index}.bin").write_bytes(delegate.payload)

    def stale(self) -> list[Cell]:
        """Return the goldens that no cell of the zoo and the release stands for."""
        return [cell for cell in golden.recorded(self.root) if cell not in self.known]


def passes(outcome: Outcome) -> tuple[PassRun, ...]:
    """Return the runs that an export noted; none if it came to no end."""
    artifact = outcome.result
    return artifact.watched.passes if isinstance(artifact, Artifact) and artifact.watched else ()


def numerics_line(artifact: Artifact) -> str:
    """Say in one line what was checked of an artifact beyond its being the same every time."""
    lowered = artifact.result
    if not isinstance(lowered, Lowered):
        return "none: lowering fails"
    bound = f"within {lowered.bound:.2g} of the largest value" if lowered.bound else "equal to the last bit"
    if any(lowered.scales):
        bound += " or one code"
    constants = "; folded constants equal" if lowered.codes and verdict.only_holds(lowered) else ""
    return f"outputs against eager {bound}{constants}"

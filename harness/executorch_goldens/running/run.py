"""One run over the cells of one release, from what was asked for to the verdict of each cell.

It brings together what others do: `selection` finds the release and the cells, `sweep` exports, `judging.comparison`
judges, `judging.roots` and `judging.golden` keep the goldens, `results` keeps the rest, `messages` has the words.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from syrupy.assertion import SnapshotAssertion

from executorch_goldens import patches, variations
from executorch_goldens.artifact import ORIGINS, PARTITIONING, Artifact, Cell, Lowered, Outcome
from executorch_goldens.cluster.sweep import ClusterSweep
from executorch_goldens.errors import UsageError
from executorch_goldens.goldens import golden, roots
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.judging import attribution, known, omission, verdict
from executorch_goldens.judging.attribution import Attribution
from executorch_goldens.judging.diagnosis import Diagnoses
from executorch_goldens.judging.judge import Judge, Judged
from executorch_goldens.judging.updating import require_a_person
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.patches import shortcuts
from executorch_goldens.registry import load
from executorch_goldens.releases import Release
from executorch_goldens.results import evidence, origins, provenance
from executorch_goldens.results.evidence import Evidence
from executorch_goldens.results.provenance import Provenance
from executorch_goldens.results.rows import Results
from executorch_goldens.running import changed, core, messages, reporting
from executorch_goldens.running.factors import Experiment
from executorch_goldens.running.options import FULL, VARIATIONS, Options
from executorch_goldens.running.progress import Progress, Screen
from executorch_goldens.running.selection import (
    FEWEST_TO_RECORD,
    Installed,
    find_release,
    load_cells,
    of_families,
    require_cells,
    require_extensions,
    require_flatc,
    require_known,
    require_repeats,
    require_supported,
    select,
)
from executorch_goldens.settings import config
from executorch_goldens.settings.exports import Settings, cores, default_interpreter
from executorch_goldens.store.reuse import Reuse
from executorch_goldens.store.store import Store
from executorch_goldens.variations import Variation
from executorch_goldens.workers import seconds
from executorch_goldens.workers.sweep import Sweep, worth_warming


class Run:
    """A run over some cells of one release: what the fixtures, the report and the results are made of.

    Attributes
    ----------
    release
        What is installed in the exporting environment.
    root
        Directory of this release's goldens.
    compact
        Whether its goldens are compact: see `executorch_goldens.goldens.roots`.
    known
        Every cell that the zoo and the release make, selected or not.
    tier
        ``core`` or ``full``.
    left_out
        Cells that were asked for, and that are not of the tier.
    asked
        Those that are of it; `selected` are those of them that are of the shard.
    verdicts
        Of the cells that were checked.
    accuracies
        Of those of them whose program is right, how near it is to eager.
    reuse
        What the run takes from the store of artifacts; None where it uses none.
    changes
        What ``--changed-since`` chose; None where every cell may be.
    attributed
        For how many cells the factor was sought that their disagreement follows.
    omitted
        Passes that were blamed, and without which a cell was exported again.
    confirmed
        Cells whose golden's manifest now says more of how it is made.
    lacking
        Cells whose golden has not recorded yet what goldens have now.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.updating = options.updating
        require_a_person(options.updating)
        require_updating(options)
        if options.report is not None:
            reporting.require(options.report)
        require_reuse(options)
        interpreter = options.interpreter or default_interpreter()
        installed = Installed.probe(interpreter)
        self.release = find_release(installed, options.release, options.matrix)
        try:
            require_supported(self.release, options.releases)
            require_known(options.tolerances, "[tool.goldens] tolerances")
            self.known = load_cells(options.models, self.release, options.targets)
            require_cells(options.budgets, self.known)
            # A module that registers cases may register patches as well.
            self.patches = patches.select(options.patches, self.release.patches)
            named_shortcuts = shortcuts.select(options.shortcuts)
        except ValueError as error:
            raise UsageError(str(error)) from error
        self.goldens = options.goldens.resolve()
        roots.check(self.goldens, options.models, options.adopting, options.updating)
        self.root = self.goldens / self.release.version
        self.compact = roots.is_compact(self.goldens)
        if known.own(self.goldens, self.release.version):
            # The repository's file states the defects of its own zoo.
            self.release = dataclasses.replace(
                self.release,
                known=known.read(self.root, self.release.version),
                known_in=str(self.root / known.FILE),
            )
        self.judge = Judge(self.root, options.update, self.compact, options.budgets)
        chosen = select(of_families(self.known, options.families, options.models), options.cells)
        self.tier = core.tier(options, self.root, self.compact)
        self.asked = self._of_tier(chosen)
        self.left_out = chosen - self.asked
        self.variations = variations.variations(self._hash_seeds())
        require_repeats(
            options.updating,
            len(self.variations),
            "Say --variations quick, or leave --variations and --hash-seeds out.",
        )
        self.reuse = (
            Reuse(
                Store(options.store, options.store_size),
                options.sample,
                takes=options.reuse,
                keeps=options.keeping,
            )
            if options.reuse or options.keeping
            else None
        )
        self.settings = Settings(
            interpreter=interpreter,
            models=options.models,
            patches=self.patches,
            jobs=options.jobs or cores(),
            limit=options.export_timeout,
            memory=options.export_memory,
            isolation=options.isolation,
            keep=ORIGINS if options.origins else 0,
            shortcuts=named_shortcuts,
            tolerances=options.tolerances,
            reuse=self.reuse,
        )
        self.changes = (
            changed.since(
                options.changed_since,
                self.settings,
                self.known,
                self.release,
                self.goldens,
                # What exports depended on is known whether the run takes and keeps any or not.
                self.reuse or Reuse(Store(options.store)),
                self.variations,
                options.matrix,
            )
            if options.changed_since is not None
            else None
        )
        if self.changes is not None:
            self.asked &= self.changes.cells
        require_flatc(interpreter)
        require_extensions(installed, interpreter, self.asked, self.patches)
        self.results = Results(options.sweeps, self.release)
        table = seconds.committed(self.root)
        self.seconds = self.results.seconds.over(table)
        # What this machine remembers would make other shards here than elsewhere.
        in_order = [cell for cell in self.known if cell in self.asked]
        self.selected = self.asked if options.shard is None else options.shard.of(in_order, table)
        self.verdicts: dict[Cell, Verdict] = {}
        self.accuracies: dict[Cell, Accuracy] = {}
        self.confirmed: list[Cell] = []
        self.lacking: list[Cell] = []
        self.attributed = 0
        self.omitted: set[str] = set()
        self.targets: tuple[str, ...] = ()
        self.sweep: Sweep | None = None
        self.provenance: Provenance | None = None
        self._lock = roots.lock(self.goldens, self.release.version)

    def _hash_seeds(self) -> tuple[int, ...]:
        try:
            if self.options.hash_seeds is not None:
                return variations.parse_hash_seeds(self.options.hash_seeds)
            return variations.named(self.options.variations or VARIATIONS[self.tier])
        except variations.HashSeedError as error:
            raise UsageError(str(error)) from error

    def _of_tier(self, chosen: frozenset[Cell]) -> frozenset[Cell]:
        if self.tier == FULL:
            return chosen
        if self.compact:
            zoo = load(self.options.models)
            return frozenset(cell for cell in chosen if self.release.version in zoo[cell.case].core)
        within = core.within(self.root, chosen, self.known, self.release.known)
        if not within:
            raise UsageError(
                f"none of the cells chosen is in the core, {self.root / core.FILE}: say --tier full"
            )
        return within

    # Life of a run

    def longest_first(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return `cells` in the order in which they are exported and judged."""
        return self.seconds.longest_first(cells)

    def progress(self, cells: Sequence[Cell], screen: Screen, live: bool) -> Progress:
        """Return what shows on `screen` how far the run over `cells` is."""
        return Progress(cells, self.seconds, len(self.variations), self.settings.jobs, screen, live)

    def start(self, cells: Sequence[Cell]) -> None:
        """Make the folders ready, alone in those that are written, and start exporting `cells`."""
        self.results.open()
        self.targets = tuple(sorted(worth_warming(cells)))
        self.provenance = self._provenance(cells)
        self.provenance.write(self.results.root)
        if self.reuse is not None:
            self.reuse.open()
        if self.updating:
            roots.open_for_writing(self.root, self._lock)
            roots.claim(self.goldens, self.options.models)
        if self.options.cluster is None:
            self.sweep = Sweep(cells, self.variations, self.settings)
        else:
            self.sweep = ClusterSweep(
                self.options.cluster, self.release.version, cells, self.variations, self.settings
            )
        self.sweep.start()

    def _provenance(self, cells: Sequence[Cell]) -> Provenance:
        repository = config.load().root
        checked = set(cells)
        return Provenance(
            release=self.release.version,
            stack=self.release.stack(),
            models=self.options.models,
            commit=provenance.commit(repository),
            changes=provenance.changes(repository, self.goldens),
            settings=provenance.facts(self.settings),
            variations=tuple(variation.name for variation in self.variations),
            shard=str(self.options.shard) if self.options.shard else None,
            selected=tuple(str(cell) for cell in self.known if cell in self.asked),
            whole=self.asked == set(self.known),
            cells=tuple(str(cell) for cell in self.known if cell in checked),
            machines=(provenance.machine(),),
        )

    def finish(self) -> None:
        """End what is still being exported, and bring the verdicts into the zoo's order."""
        if self.sweep is not None:
            self.sweep.stop()
        self.verdicts = {cell: self.verdicts[cell] for cell in self.known if cell in self.verdicts}

    def close(self) -> None:
        """Let other runs write: nothing more is."""
        self._lock.release()
        self.results.close(self.known)
        if self.reuse is not None and self.sweep is not None:
            self.reuse.close()

    def check(self, cell: Cell, snapshot: SnapshotAssertion) -> Verdict:
        """Judge `cell`, record it where that was asked for, leave its result.

        Raises
        ------
        SweepError
            When the harness itself could not export; no further cell will do better.
        ReuseError
            When what the store had of the cell is not what an export makes now.
        GoldenError
            When its golden, or what is kept of it, cannot be written.
        """
        assert self.sweep is not None
        outcomes = self.sweep.outcomes(cell)
        found = self.judge.judge(cell, outcomes, self._judging(), snapshot)
        judged, texts, reviewed = found.verdict, found.texts, found.reviewed
        self._count(found, outcomes[0])
        if self._settles(cell, reviewed):
            judged = self._settle(judged)
        if judged.name == "stable" or judged.recorded:
            self.results.clear(cell)
        else:
            self.results.keep(cell, outcomes)
            judged = self._diagnosed(judged, outcomes, reviewed)
        if self.options.origins:
            judged = self._noting(
                "which pass made each operator",
                judged,
                lambda: origins.write(self.results.folder(cell), outcomes),
            )
        self.verdicts[cell] = judged
        wrong = self.reuse.error_of(cell) if self.reuse is not None else None
        self.results.note(judged, outcomes, self.accuracies.get(cell), str(wrong or ""))
        if wrong is not None:
            raise wrong
        # There is nothing in a compact golden that a review could show.
        if not judged.accepted and not self.compact:
            self._propose(judged, texts, reviewed)
        return judged

    def _diagnosed(
        self, judged: Verdict, outcomes: Sequence[Outcome], reviewed: golden.Texts | None
    ) -> Verdict:
        """Return a verdict with what it follows and where; leave the evidence of it. Raise what the disk does."""
        looking = Diagnoses()
        no_graphs: dict[str, str] = {}
        nowhere: tuple[str, ...] = ()
        judged = dataclasses.replace(
            judged,
            attribution=looking.of("what it follows", lambda: self._attribution(judged, outcomes), None),
            without=looking.of(
                "what it is without the pass", lambda: self._without(judged, outcomes, reviewed), ""
            ),
        )
        after = looking.of("the graphs after the pass", lambda: self._after(judged, outcomes), no_graphs)
        where = looking.of("where it diverges", lambda: tuple(self._where(judged, outcomes, after)), nowhere)
        judged = dataclasses.replace(judged, detail=(*where, *looking.failed, *judged.detail))
        return self._noting(
            "what its page in a report shows",
            judged,
            lambda: self._evidence(judged, outcomes, after).write(self.results.folder(judged.cell)),
        )

    def _noting(self, what: str, judged: Verdict, leave: Callable[[], None]) -> Verdict:
        """Leave something beside the results; return the verdict with why there is none, where that fails."""
        looking = Diagnoses()
        looking.of(what, leave, None, (OSError,))
        return dataclasses.replace(judged, detail=(*judged.detail, *looking.failed))

    def _propose(self, judged: Verdict, texts: golden.Texts | None, reviewed: golden.Texts | None) -> None:
        """Leave what a cell would be recorded as: of fewer variations than a golden takes, nothing."""
        assert self.provenance is not None
        recordable = judged.recordable and len(self.variations) >= FEWEST_TO_RECORD
        self.results.propose(judged, texts if recordable else None, reviewed, self.provenance)

    def _count(self, found: Judged, outcome: Outcome) -> None:
        """Count what the summary says of goldens, and how near a program that is right is to eager."""
        cell = found.verdict.cell
        if found.confirmed:
            self.confirmed.append(cell)
        if found.lacking:
            self.lacking.append(cell)
        made = outcome.result.result if isinstance(outcome.result, Artifact) else None
        if found.texts is not None and isinstance(made, Lowered):
            self.accuracies[cell] = Accuracy.of(made)

    def _settles(self, cell: Cell, reviewed: golden.Texts | None) -> bool:
        """Whether what is wrong with a cell may be written: to a compact root, and not in place of what is there."""
        if not self.compact or not self.updating:
            return False
        is_new = reviewed is None and str(cell) not in self.release.known
        return self.options.update.changed or is_new

    def _judging(self) -> Release:
        """Return the release that cells are judged on: what a compact root knows is not, where it is written anew."""
        anew = self.options.update.changed and self.compact
        return dataclasses.replace(self.release, known={}) if anew else self.release

    def _settle(self, judged: Verdict) -> Verdict:
        """Write what is wrong with a cell of a compact root, or that nothing is any more; raise GoldenError."""
        found = known.settled(self.release.known, judged)
        if found != self.release.known:
            known.write(self.root, self.release.version, found)
            self.release = dataclasses.replace(self.release, known=found)
        is_known = str(judged.cell) in found
        if is_known:
            # What was right of it is not its golden any more.
            golden.prune(self.root, judged.cell)
        return dataclasses.replace(judged, known=is_known)

    def _evidence(self, judged: Verdict, outcomes: Sequence[Outcome], after: Mapping[str, str]) -> Evidence:
        """Return what a report shows of a cell and its results do not hold."""
        finished = all(isinstance(outcome.result, Artifact) for outcome in outcomes)
        groups = verdict.group_by_content(outcomes) if finished else []
        return Evidence(
            message=judged.detail,
            agreeing=[[outcome.variation for outcome in group] for group in groups],
            follows=judged.attribution.line if judged.attribution is not None else "",
            commands=messages.commands(self, judged),
            diverging=judged.divergence.line if judged.divergence is not None else "",
            after=after,
            tensors=list(evidence.tensors(groups)),
        )

    def _where(self, judged: Verdict, outcomes: Sequence[Outcome], after: Mapping[str, str]) -> Iterator[str]:
        """Yield the line that names the pass, and what it made in the variations that diverge there."""
        if judged.divergence is not None:
            yield judged.divergence.line
        elif judged.name in verdict.DISAGREEING:
            one_program = verdict.have_one_program(verdict.group_by_content(outcomes))
            made = "when the program runs" if one_program else "by serialization or emission"
            yield f"no pass diverges: what differs is made {made}"
        if judged.without:
            yield judged.without
        if judged.attribution is not None:
            yield judged.attribution.line
        if judged.divergence is not None and after:
            (one, left), (other, right) = after.items()
            name = f"graph after {judged.divergence.name}"
            yield from verdict.text_difference({name: left}, {name: right}, one, other)

    def _attribution(self, judged: Verdict, outcomes: Sequence[Outcome]) -> Attribution | None:
        """Say what the verdict of a cell follows, exporting again for as many cells as were asked for."""
        if judged.name in verdict.AGREEING:
            alike = len(outcomes) > 1 and len(verdict.group_by_content(outcomes)) == 1
            return attribution.constant(len(outcomes)) if alike else None
        if judged.name not in verdict.DISAGREEING or judged.known or not self.options.factors:
            return None
        if self.options.cluster is not None:
            return Attribution(
                "the factor it follows is not sought on a cluster: run the cell without --cluster"
            )
        if self.attributed == self.options.factors:
            return Attribution(
                f"the factor it follows was sought for {self.attributed} cells of this run, and not for this one: "
                "the command below seeks it"
            )
        self.attributed += 1
        one, other = self._pair(outcomes)
        return Experiment(judged.cell, one, other, self.settings, self.targets).run()

    def _without(self, judged: Verdict, outcomes: Sequence[Outcome], reviewed: golden.Texts | None) -> str:
        """Export without the pass that made the difference, once for each; return what that proves, if anything."""
        found = judged.divergence
        if found is None or found.omission is None or judged.known or self.options.cluster is not None:
            return ""
        if found.name in self.omitted or len(self.omitted) == self.options.omissions:
            return ""
        self.omitted.add(found.name)
        pair = self._pair(outcomes) if judged.name in verdict.DISAGREEING else self.variations[:1]
        settings = dataclasses.replace(self.settings, reuse=None, omission=found.omission)
        with Sweep([judged.cell], pair, settings, targets=self.targets) as sweep:
            made = sweep.outcomes(judged.cell)
        return omission.proof(judged, found.omission, outcomes, made, reviewed, self.release)

    def _pair(self, outcomes: Sequence[Outcome]) -> list[Variation]:
        """Return two variations that disagree."""
        by_name = {variation.name: variation for variation in self.variations}
        return [by_name[group[0].variation] for group in verdict.group_by_content(outcomes)[:2]]

    def _after(self, judged: Verdict, outcomes: Sequence[Outcome]) -> dict[str, str]:
        """Export two variations again up to the pass at which they diverge; return the graph that it left in each."""
        found = judged.divergence
        if found is None or found.numbers is None or judged.name not in verdict.DISAGREEING:
            return {}
        if f"({PARTITIONING})" in found.line:
            return {}
        kept = {}
        for variation, number in zip(self._pair(outcomes), found.numbers, strict=True):
            with Sweep([judged.cell], [variation], dataclasses.replace(self.settings, keep=number)) as sweep:
                (outcome,) = sweep.outcomes(judged.cell)
            if isinstance(outcome.result, Artifact) and outcome.result.watched is not None:
                kept[variation.name] = outcome.result.watched.kept
        return kept if len(kept) == len(found.numbers) else {}

    # After the last cell

    def is_whole(self) -> bool:
        """Whether every cell of the zoo and the release was checked."""
        return set(self.verdicts) == set(self.known)

    def leftovers(self) -> roots.Leftovers:
        """Return what stands among the goldens and matches no cell of the zoo and the release."""
        return roots.leftovers(self.root, self.known)

    def prune(self, cells: Sequence[Cell]) -> None:
        """Delete the goldens of `cells`; raise GoldenError for what is none."""
        for cell in cells:
            golden.prune(self.root, cell)


def require_updating(options: Options) -> None:
    """Raise UsageError for an option that changes the root of the goldens in a run that only reads."""
    for option, asked in (("--prune", options.pruning), ("--adopt", options.adopting)):
        if asked and not options.updating:
            raise UsageError(f"{option} changes the root of the goldens: say --snapshot-update as well")


def require_reuse(options: Options) -> None:
    """Raise UsageError for a run that would check what it does not reuse, or not keep what it needs."""
    if options.sample.part and not options.reuse:
        raise UsageError("--reuse-check makes some of the reused exports again: say --reuse as well")
    if options.cluster is not None and not options.keeping:
        raise UsageError("--cluster brings artifacts back through the store: leave --no-keep out")

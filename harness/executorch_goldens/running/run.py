"""One run over the cells of one release, from its plan to the verdict of each cell.

It brings together what others do: `plan` settles what is done, `sweep.sweep` exports, `judging.judge` judges and
records, `results` keeps the rest, `explaining` looks into what is wrong, `messages` has the words.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell, Outcome
from executorch_goldens.causes.groups import (
    EditedCell,
    Group,
    Member,
    current,
    grouped,
    member,
    read_members,
    worst_first,
)
from executorch_goldens.causes.standing import Standing
from executorch_goldens.files.wording import count
from executorch_goldens.goldens import golden, roots, unchecked
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.goldens.decisions import EXPECTED, KNOWN, Decision, Misused
from executorch_goldens.goldens.golden import GoldenError
from executorch_goldens.goldens.record import Record
from executorch_goldens.goldens.rendering import decoding_once
from executorch_goldens.judging.comparison import JudgedCell
from executorch_goldens.judging.exports import Exports
from executorch_goldens.judging.judge import Judge
from executorch_goldens.judging.own_files import OwnFiles
from executorch_goldens.judging.verdict import UNEXPECTED, Acceptance, Doubt, Verdict
from executorch_goldens.results import proposals
from executorch_goldens.results.evidence import Evidence
from executorch_goldens.results.proposals import CellFile, ProposalError
from executorch_goldens.results.provenance import Provenance
from executorch_goldens.results.rows import OF_PLUGINS, Results
from executorch_goldens.running.explaining import Diagnosis, Explainer, Watch, noting, with_shown
from executorch_goldens.running.plan import Plan
from executorch_goldens.running.selection import FEWEST_TO_RECORD
from executorch_goldens.sweep import seconds
from executorch_goldens.sweep.sweep import Sweep, worth_warming
from executorch_goldens.words.verdicts import lines

T = TypeVar("T")

#: Cells that differ from their goldens: from then on a run exports every cell under each variation.
FEW_DIFFER = 3


class Run:
    """A run over the cells of a plan: shared by the fixtures, the report and the results.

    Attributes
    ----------
    release
        Release of the plan.
    verdicts
        Verdicts of the cells that were checked.
    accuracies
        Distance of each right program from eager, by its cell.
    unchecked
        Parts of the checked cells' programs that nothing checks.
    not_judged
        Why a program was not run, by its cell.
    reuse
        Use of the cache of exports; None for a run without one.
    confirmed
        Number of cells whose golden's manifest now says more of how it is made.
    lacking
        Number of cells whose golden has not recorded yet what goldens have now.
    edits
        Difference from its golden of each cell that needs a look.
    recorded
        The causes whose goldens were replaced, each with their number.
    deselected
        Cells that the command line of pytest takes away.
    alone
        Cells whose one export was enough: see `Plan.beside`.
    names
        Names by which a review knows causes, by `executorch_goldens.causes.groups.Group.cause`.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.release = plan.release
        self.reuse = plan.reuse()
        self.judge = Judge(
            plan.root,
            plan.decided,
            OwnFiles.in_repository(plan.options.repository.root, plan.listed.files),
            plan.options.update,
            holding=True,
            allow=plan.options.repository.allow,
        )
        self.results = Results(plan.options.sweeps, plan.release)
        self.seconds = self.results.seconds.over(seconds.committed(plan.root))
        self.verdicts: dict[Cell, Verdict] = {}
        self.accuracies: dict[Cell, Accuracy] = {}
        self.unchecked: dict[Cell, str] = {}
        self.not_judged: dict[Cell, str] = {}
        self.confirmed = self.lacking = 0
        self.edits: dict[Cell, EditedCell] = {}
        self.recorded: list[str] = []
        self.names: dict[str, str] = {}
        self._members: dict[Cell, Member] = {}
        self.deselected: frozenset[Cell] = frozenset()
        self._started: set[Cell] = set()
        self.alone: set[Cell] = set()
        self.sweep: Sweep | None = None
        self._lock = roots.lock(plan.goldens, plan.release.version)

    # Life of a run

    def _shared_facts(self) -> dict[str, str]:
        """Return what the goldens that it may record share, but for cells with further patches."""
        plan = self.plan
        agreeing = " ".join(variation.name for variation in plan.variations)
        patches = " ".join(plan.settings.patches) or "none"
        return {**plan.release.stack(), "patches": patches, "variations": agreeing}

    def start(self, cells: Sequence[Cell]) -> None:
        """Make the folders ready, alone in those that are written, and start exporting `cells`."""
        plan, asked = self.plan, self.plan.options
        self._started = set(cells)
        self.results.open()
        self.provenance = self._provenance()
        self.provenance.write(self.results.root)
        if self.reuse is not None:
            self.reuse.open()
        if asked.updating:
            roots.open_for_writing(plan.root, self._lock)
            roots.claim(plan.goldens, asked.models)
            roots.share(plan.root, self._shared_facts())
        warmed = tuple(sorted(worth_warming(cells)))
        self.explainer = Explainer(plan, warmed, self.seconds)
        exports = (cells, plan.variations, plan.settings)
        added = (each.sweep(plan.release.version, *exports, self.reuse) for each in asked.additions)
        self.sweep = next(filter(None, added), None) or Sweep(*exports, beside=plan.beside, reuse=self.reuse)
        self.sweep.spares_raising = True
        self.sweep.start()

    def _provenance(self) -> Provenance:
        plan, repository = self.plan, self.plan.options.repository.root
        return Provenance.here(
            *(plan.release, plan.settings, plan.variations, repository, plan.goldens),
            shard=str(plan.options.shard) if plan.options.shard else None,
            selected=tuple(str(cell) for cell in plan.zoo if cell in plan.asked),
            whole=plan.asked == set(plan.zoo),
            cells=tuple(str(cell) for cell in plan.cells if cell not in self.deselected),
        )

    def finish(self) -> None:
        """Stop pending exports, and bring what cells left into the zoo's order, whichever ended first."""
        if self.sweep is not None:
            self.sweep.stop()
        self.verdicts = self._in_order(self.verdicts)
        self.accuracies = self._in_order(self.accuracies)
        self.not_judged = self._in_order(self.not_judged)
        self.unchecked = self._in_order(self.unchecked)

    def _in_order(self, found: Mapping[Cell, T]) -> dict[Cell, T]:
        return {cell: found[cell] for cell in self.plan.zoo if cell in found}

    def close(self) -> None:
        """Let other runs write: nothing more is."""
        self._lock.release()
        self.results.close(self.plan.zoo)
        if self.reuse is not None and self.sweep is not None:
            self.reuse.close()

    # A cell

    @decoding_once()
    def check(self, cell: Cell, snapshot: SnapshotAssertion) -> Verdict:
        """Judge `cell`, record it where that was asked for, leave its result.

        Raises
        ------
        SweepError
            When the harness itself could not export; no further cell will do better.
        GoldenError
            When its golden, or what is kept of it, cannot be written.
        """
        assert self.sweep is not None
        outcomes = Exports(self.sweep.outcomes(cell))

        def under_all() -> Exports:
            nonlocal outcomes
            outcomes = Exports(self._under_all(cell, outcomes))
            return outcomes

        found = self.judge.judge(cell, outcomes, self.release, snapshot, under_all)
        self._count(found, outcomes)
        judged, made, evidence = self._explained(found, outcomes)
        self.verdicts[cell] = judged
        if cell in self.plan.beside and len(outcomes) < len(self.plan.variations):
            self.alone.add(cell)
        is_held = judged.acceptance is Acceptance.HELD
        # Held-back cells are recorded after every cell is judged.
        noted = dataclasses.replace(judged, acceptance=Acceptance.POSSIBLE) if is_held else judged
        if evidence is None:
            self.results.settle(cell, None)
        elif is_held or not (judged.accepted or judged.name == UNEXPECTED):
            self._propose(judged, found, outcomes.accuracy, made, evidence)
        else:
            self.results.settle(cell, CellFile(evidence=evidence))
        self.results.note(noted, outcomes, self.accuracies.get(cell), self.not_judged.get(cell, ""))
        return judged

    def _under_all(self, cell: Cell, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """Return the outcomes of `cell` under every variation; after some such cells, export all others so as well."""
        assert self.sweep is not None
        made = {each.variation for each in outcomes}
        further = [each for each in self.plan.variations if each.name not in made]
        if not further:
            return outcomes
        beside = self.plan.beside & self._started
        # Of the cells judged so far; this one is not yet among them.
        differing = (beside & self.verdicts.keys()) - self.alone
        if len(differing) + 1 == FEW_DIFFER:
            self.sweep.widen(beside - self.verdicts.keys() - {cell})
        return (*self.sweep.again(cell, further), *outcomes)

    def _explained(
        self, found: JudgedCell, outcomes: Exports
    ) -> tuple[Verdict, list[Record], Evidence | None]:
        """Return the verdict with its diagnosis; of a cell whose files are kept, each artifact once, and evidence."""
        judged, made, evidence = found.verdict, list[Record](), None
        if judged.name != "stable" and judged.acceptance not in (Acceptance.RECORDED, Acceptance.ALLOWED):
            made = self.results.keep(judged.cell, outcomes)
            if found.difference is not None and found.difference.in_digest:
                folder = self.results.folder(judged.cell)
                whole = (folder / outcomes[0].variation / proposals.MADE).with_suffix(golden.WHOLE)
                judged = dataclasses.replace(judged, whole=whole)
            judged, evidence = self.explainer.explain(judged, outcomes)
            if judged.acceptance is not Acceptance.HELD:
                self.explainer.suspect(judged, outcomes)
        for addition in self.plan.options.additions:
            leave = functools.partial(addition.judged, self.results.aside(judged.cell) / OF_PLUGINS, outcomes)
            judged, _ = noting(f"what {addition.option} leaves", judged, leave, None)
        return judged, made, evidence

    def _propose(
        self,
        judged: Verdict,
        found: JudgedCell,
        accuracy: Accuracy | None,
        made: Sequence[Record],
        evidence: Evidence,
    ) -> None:
        """Leave what is kept of the cell with its golden-to-be; none from too few variations."""
        recordable = judged.recordable and len(self.plan.variations) >= FEWEST_TO_RECORD
        proposed = found.record if recordable else None
        came = self.provenance
        proposal = self.results.propose(judged, proposed, found.reviewed, came, accuracy, evidence)
        self._members[judged.cell] = member(
            proposal, found.reviewed, proposed, made, difference=found.difference
        )
        if judged.acceptance is not Acceptance.HELD:
            self.edits[judged.cell] = EditedCell.from_member(self._members[judged.cell])

    def _count(self, found: JudgedCell, outcomes: Exports) -> None:
        """Count goldens for the summary, and the distance of a right program from eager."""
        cell = found.verdict.cell
        self.confirmed += found.confirmed
        self.lacking += found.lacking
        program = outcomes[0].program
        if found.record is None or program is None:
            return
        if outcomes.accuracy is not None:
            self.accuracies[cell] = outcomes.accuracy
        else:
            self.not_judged[cell] = program.not_run
        if left := found.record.facts.get(unchecked.FIELD):
            self.unchecked[cell] = left

    # After the last cell

    def conclude(self) -> list[Group]:
        """Record held-back cells whose cause makes none wrong, and return the remaining causes, worst first.

        A run that did not judge every cell does not know what its causes make wrong: it records nothing of them.
        """
        unfinished = Doubt() if self.missed() else None
        if unfinished is not None:
            self.explainer.suspects.clear()
        left, written = [], []
        # A cell that an earlier run found wrong, and nobody has run since, is wrong.
        folders = self._folders()
        for group in self._grouped() if folders else ():
            members = [each for each in group.members if each.proposal.folder in folders]
            held = [
                each for each in members if self.verdicts[each.proposal.cell].acceptance is Acceptance.HELD
            ]
            if why := unfinished or group.doubt:
                for cell in (each.proposal.cell for each in held):
                    self.verdicts[cell] = dataclasses.replace(
                        self.verdicts[cell], acceptance=Acceptance.POSSIBLE, refusal=why
                    )
                held = []
            for each in held:
                assert each.proposed is not None
                golden.write(golden.file_of(self.plan.root, each.proposal.cell), each.proposed)
                written.append(each.proposal.cell)
            if held:
                self.recorded.append(f"{group.title}: {count(len(held), 'cell')}")
            if rest := tuple(each for each in members if each not in held):
                left.append(dataclasses.replace(group, members=rest))
                whole = tuple(each for each in group.members if each not in held)
                self.names[group.cause] = dataclasses.replace(group, members=whole).name
        if written:
            self.results.recorded(written)
        return worst_first(left)

    def diagnose(self, causes: Sequence[Group], watch: Watch) -> Iterator[tuple[int, Diagnosis]]:
        """Look into causes by further exports; yield what these show, with the place of the cause, as it comes."""
        of_causes = [[member.proposal.cell for member in group.members] for group in causes]
        for shown in self.explainer.look(of_causes, watch):
            self._amend(shown)
            yield next(number for number, cells in enumerate(of_causes) if shown.cell in cells), shown

    def _amend(self, shown: Diagnosis) -> None:
        """Add what further exports show to the verdict of a cell, its result and what is kept of it."""
        cell = shown.cell
        judged = self.verdicts[cell] = with_shown(self.verdicts[cell], shown)
        folder = self.results.folder(cell)

        def leave() -> None:
            kept = CellFile.load(folder)
            evidence, proposal = kept.evidence, kept.proposal
            evidence = replace(evidence, message=[*lines(judged)], after=shown.after or evidence.after)
            if proposal is not None:
                proposal = dataclasses.replace(proposal, proof=shown.proof or proposal.proof)
            replace(kept, evidence=evidence, proposal=proposal).write(folder)

        self.verdicts[cell], _ = noting("the evidence for its page", judged, leave, None)
        if shown.factor is not None:
            self.results.amend([cell], attribution=shown.factor)

    def _folders(self) -> set[Path]:
        """Folders of the cells that this run proposes something for."""
        return {each.proposal.folder for each in self._members.values()}

    def _grouped(self) -> list[Group]:
        """Return the causes of this run's proposals and of those that a review would see beside them."""
        standing = Standing(self.plan.options.repository, self.plan.goldens, fewer=True)
        own = [current(each, standing) for each in self._members.values()]
        # Another run may write there, or have left a proposal damaged.
        with contextlib.suppress(ProposalError):
            others = proposals.find(self.plan.options.sweeps, but=self._folders())
            return grouped([*own, *read_members(others, self.plan.goldens, standing)])
        return grouped(own)

    def missed(self) -> list[Cell]:
        """Return the selected cells without a verdict, whatever took it away."""
        return [cell for cell in self.plan.cells if cell not in self.verdicts and cell not in self.deselected]

    def is_whole(self) -> bool:
        """True if every cell of the zoo and the release was checked."""
        return set(self.verdicts) == set(self.plan.zoo)

    def misused(self) -> Iterator[Misused]:
        """Yield the decisions of the release that are superfluous, which only a run of all cells can tell."""
        if self.is_whole():
            yield from self.plan.decided.misused({cell: self._met(cell) for cell in self.plan.zoo})

    def _met(self, cell: Cell) -> list[Decision]:
        """Return the decisions that a cell meets."""
        judged, decided = self.verdicts[cell], self.plan.decided
        met = [
            each
            for each in decided.about(KNOWN, cell)
            if (each.verdict, each.is_about(judged.cause)) == (judged.name, True)
        ]
        expected = [each for what in EXPECTED.values() for each in decided.about(what, cell)]
        # That a golden is damaged is the cell's verdict.
        with contextlib.suppress(GoldenError):
            if expected and (record := golden.read(golden.file_of(self.plan.root, cell))) is not None:
                met += [each for each in expected if each.expects(record)]
        return met

    def leftovers(self) -> roots.Leftovers:
        """Return files among the goldens that match no cell of the zoo and the release."""
        return roots.leftovers(self.plan.root, self.plan.zoo)

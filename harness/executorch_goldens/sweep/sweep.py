"""Schedules templates and exports over the cores, enforces limits, streams outcomes.

A sweep runs beside the tests that consume it: it owns one thread, and `Sweep.outcomes` blocks until a cell's
exports have come to an end. It imports neither torch nor executorch; the interpreter that exports may be another
environment's.
"""

from __future__ import annotations

import functools
import io
import os
import shutil
import threading
import types
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from executorch_goldens.artifact import (
    ENDED,
    HUNG,
    Artifact,
    Casualty,
    Cell,
    Failure,
    Outcome,
    Overwritten,
    decoded,
    died,
)
from executorch_goldens.errors import HarnessError
from executorch_goldens.exporting.limits import computed
from executorch_goldens.files.os_errors import explain
from executorch_goldens.settings.exports import Settings, absolute, in_checkout
from executorch_goldens.sweep import casualties
from executorch_goldens.sweep import template as templates
from executorch_goldens.sweep.keys import Wanted
from executorch_goldens.sweep.messages import Ended, ExportRequest, Ready
from executorch_goldens.sweep.reuse import Reuse
from executorch_goldens.sweep.schedule import Job, Schedule
from executorch_goldens.sweep.spool import Range, Spool
from executorch_goldens.sweep.template import RunningJob, TemplateProcess, Templates
from executorch_goldens.sweep.worker import CASE_RAISED, HARNESS_ERROR, group_of
from executorch_goldens.zoo.registry import CASES, CHANGED
from executorch_goldens.zoo.variations import Variation

#: Seconds of processor time that it is expected to take; measured 7.3 for two targets.
TEMPLATE = 8.0

#: Seconds between two looks at how far exports are.
TICK = 0.5

#: Cells of a target for which a template exports its small model before it serves; see `worth_warming`.
WORTH_WARMING = 3


class SweepError(HarnessError, RuntimeError):
    """The harness itself could not export; never a verdict of a cell. The message names the way out."""


class Sweep:
    """All exports of some cells under some variations.

    Parameters
    ----------
    cells
        Cells in the order in which they are exported, best the longest first: no core is idle at the end.
    variations
        Each cell is exported once under each.
    beside
        Cells that are exported under the last of the variations alone, until `widen` or `again` asks for the others: a
        sweep that has such lasts.
    settings
        Settings of exports.
    lasting
        Whether its templates wait for further exports (`again`) until the sweep is stopped.
    further_patches
        Names of patches that exports of a cell get after those of `settings`.
    targets
        Exports of templates before they serve; by default those that are `worth_warming` for the cells to export.
    templates
        Those that it exports in; None for its own, which end with it.
    reuse
        The store that exports are taken from and put into; None for none.
    held
        Cells that are exported only after `unhold`, unless the store has them; templates start at once.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        variations: Sequence[Variation],
        settings: Settings,
        lasting: bool = False,
        further_patches: Mapping[Cell, Sequence[str]] = types.MappingProxyType({}),
        targets: Collection[str] | None = None,
        templates: Templates | None = None,
        beside: Collection[Cell] = (),
        reuse: Reuse | None = None,
        held: Iterable[Cell] = (),
    ) -> None:
        self.settings = settings
        self.lasting = lasting or bool(beside)
        self.further_patches = further_patches
        self.variations = tuple(variations)
        self.wanted = {cell: self.variations[-1:] if cell in beside else self.variations for cell in cells}
        #: Whether a case that raised under one variation is exported under no further one.
        self.spares_raising = False
        self.chooses_targets = targets is None
        self.targets = sorted(worth_warming(cells) if targets is None else targets)
        self.pool = templates or Templates()
        # Fresh interpreters are there to prove the forks: nothing watches them.
        self.reuse = reuse if settings.isolation == "fork" else None
        self.templates = self.pool.there
        self.schedule = Schedule(held)
        self.schedule.add(
            Job(next(self.pool.numbers), cell, variation) for cell in cells for variation in self.wanted[cell]
        )
        #: Jobs that are looked for in the store, or were not found there, before any is exported.
        self.sought: list[Job] = []
        #: Variations whose template was killed before it was ready.
        self.killed: set[Variation] = set()
        #: Of exports that have ended, with their artifacts still on disk, what reads their outcome, once.
        self.results: dict[Cell, dict[Variation, Callable[[], Outcome]]] = {cell: {} for cell in cells}
        #: The cells of exports that have ended, one each, and the number of those of the store that were taken.
        self.ended: list[Cell] = []
        self.reused = 0
        #: Processor time of exports, of those that were stopped as well; and how long those with an artifact waited.
        self.core_seconds = self.waited = 0.0
        #: Templates that got ready.
        self.started = 0
        self.error: BaseException | None = None
        self.stopping = False
        #: One that runs at the same time: while both have exports to make, each has half of the cores.
        self.partner: Sweep | None = None
        self.changed = threading.Condition()
        self.directory = self.pool.folder.path
        self.spool = Spool(self.directory)
        self.thread = threading.Thread(target=self._run, name="sweep", daemon=True)

    @functools.cached_property
    def modules(self) -> Mapping[str, str]:
        """The module of each case: an export imports no other."""
        if self.settings.modules is not None:
            return self.settings.modules
        return {name: case.module for name, case in CASES.within(self.settings.models).items()}

    def _case(self, name: str) -> tuple[str, list[str]]:
        """Return the case that a name is of, and what is changed of it."""
        if self.settings.changing is None or name in self.modules:
            return name, []
        case, *changes = name.split(CHANGED)
        return case, changes

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        """End the sweep, finished or not; no child survives it."""
        with self.changed:
            self.stopping = True
        if self.thread.ident is not None:
            self.thread.join()
        self.spool.close()
        self.pool.let_go()

    def again(
        self,
        cell: Cell,
        variations: Sequence[Variation],
        settings: Settings | None = None,
        tick: Callable[[], None] | None = None,
    ) -> tuple[Outcome, ...]:
        """Export `cell` once more, in templates that are warm already, and wait; raises as `outcomes` does.

        Parameters
        ----------
        settings
            Settings from now on; they may differ in what a request to a template names.
        """
        self.settings = settings or self.settings
        self.add(cell, variations, awaited=True)
        return self.outcomes(cell, variations, tick)

    def add(self, cell: Cell, variations: Sequence[Variation], awaited: bool = False) -> None:
        """Let exports of `cell` wait, before those that nobody waits for if `awaited`; `outcomes` has their results."""
        with self.changed:
            self.results[cell] = {}
            self.schedule.add(
                Job(next(self.pool.numbers), cell, variation, awaited=awaited) for variation in variations
            )

    def unhold(self, cell: Cell) -> None:
        """Let a cell that is held be exported."""
        with self.changed:
            self.schedule.release(cell)

    def widen(self, cells: Iterable[Cell]) -> None:
        """Export `cells`, whose outcomes nobody has asked for yet, under every variation."""
        with self.changed:
            for cell in cells:
                had, self.wanted[cell] = self.wanted[cell], self.variations
                further = [each for each in self.variations if each not in had]
                self.schedule.add(Job(next(self.pool.numbers), cell, variation) for variation in further)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def outcomes(
        self,
        cell: Cell,
        variations: Sequence[Variation] | None = None,
        tick: Callable[[], None] | None = None,
    ) -> tuple[Outcome, ...]:
        """Wait for every export of `cell` and return them in the order of the variations, the sweep's by default.

        Artifacts stay on disk until then, and are handed out once: a sweep that is ahead of what judges its exports
        takes no memory for it.

        Parameters
        ----------
        tick
            Called every half second meanwhile.

        Raises
        ------
        SweepError
            When the harness itself failed: a template did not start, a request could not be carried out.
        """
        while not self._wait(cell, variations, TICK if tick is not None else None):
            if tick is not None:
                tick()
        with self.changed:
            if self.error is not None:
                raise self.error
            ended, self.results[cell] = self.results[cell], {}
            wanted = self.wanted[cell] if variations is None else variations
        found = tuple(ended[variation]() for variation in wanted)
        self.reused += sum(outcome.reused for outcome in found)
        return found

    def ready(self, cell: Cell, seconds: float) -> bool:
        """Wait at most `seconds` for the exports of `cell`; return whether `outcomes` has an answer at once."""
        return self._wait(cell, None, seconds)

    def _wait(self, cell: Cell, variations: Sequence[Variation] | None, seconds: float | None) -> bool:
        def is_there() -> bool:
            wanted = self.wanted[cell] if variations is None else variations
            return self.error is not None or len(self.results[cell]) == len(wanted)

        with self.changed:
            return self.changed.wait_for(is_there, seconds)

    def running(self) -> list[Job]:
        """Return the exports that are being made."""
        return [job for template in list(self.templates.values()) for job in template.jobs()]

    def work(self, expected: Callable[[Cell], float]) -> Iterator[tuple[float, float, bool]]:
        """Yield of each export that was asked for, and of each template, its expected seconds of processor time.

        Beside them are those that it has taken, all where it has ended, and whether it is begun or awaited.
        """
        waiting, templates = [*self.sought, *self.schedule.waiting()], list(self.templates.values())
        lacking = {job.variation for job in waiting}.difference(each.variation for each in templates)
        yield from ((seconds, seconds, True) for seconds in map(expected, list(self.ended)))
        yield from ((expected(job.cell), 0.0, job.awaited) for job in waiting)
        yield TEMPLATE * self.started, TEMPLATE * self.started, True
        yield TEMPLATE * len(lacking), 0.0, True
        for template in templates:
            if not template.ready:
                yield TEMPLATE, computed(template.process.pid), True
            for each in list(template.running.values()):
                yield expected(each.job.cell), computed(each.process) if each.process else 0.0, True

    def doing(self) -> str:
        """Return the current exports, and the interpreters that still import torch and ExecuTorch."""
        running = ", ".join(map(str, self.running()))
        starting = ", ".join(
            variation.name for variation, template in list(self.templates.items()) if not template.ready
        )
        states = [f"running: {running}" if running else "", f"starting: {starting}" if starting else ""]
        return "; ".join(filter(None, states)) or "waiting"

    # The methods below run in the sweep's thread.

    def _run(self) -> None:
        try:
            self._take_stored()
            for variation in self.schedule.held():
                self._start_template(variation)
            while not self.stopping and (self.lasting or self.schedule or self._taken()):
                self._dispatch()
                self._end_idle()
                self._hear()
                self._check_answering()
            self._part()
        except BaseException as error:
            self._fail(error)
            self._end_all()

    def _part(self) -> None:
        """Part with the templates after the last export."""
        self._end_all()

    def _hear(self) -> None:
        """Take what templates say, or wait a moment for it."""
        for template in self.pool.heard(0.1):
            self._receive(template)

    def _end_all(self) -> None:
        self._count(*self.templates.values())
        self.pool.end_all()

    def _count(self, *ending: TemplateProcess) -> None:
        """Count what the exports of templates that are ended have taken so far."""
        running = (each.process for template in ending for each in template.running.values())
        self.core_seconds += sum(map(computed, filter(None, running)))

    def _take_stored(self) -> None:
        """Deliver stored exports; the rest is exported, and templates are started only for those."""
        if self.reuse is None or not self.schedule:
            with self.changed:
                self.schedule.add_unheld(self.schedule.empty())
            return
        self.sought = self.schedule.empty()
        wanted = [*map(self._wanted, self.sought)]
        for job, stored in zip([*self.sought], self.reuse.take(self.settings, wanted), strict=True):
            if self.stopping:
                return
            if stored is None:
                continue
            with self.changed:
                self.sought.remove(job)
                self.results[job.cell][job.variation] = stored
                self.changed.notify_all()
        if self.chooses_targets:
            self.targets = sorted(worth_warming({job.cell for job in self.sought}))
        left, self.sought = self.sought, []
        with self.changed:
            self.schedule.add_unheld(left)
            for cell in {job.cell for job in left} if self.spares_raising else ():
                if any(outcome().case_failure for outcome in self.results[cell].values()):
                    self._spare(cell)
            self.changed.notify_all()

    def _wanted(self, job: Job) -> Wanted:
        return (job.cell, job.variation, tuple(self.further_patches.get(job.cell, ())))

    def _slots(self) -> int:
        """Return how many exports may be made at a time now."""
        shared = self.partner is not None and (self.partner.schedule or self.partner._taken())
        return -(-self.settings.jobs // 2) if shared else self.settings.jobs

    def _taken(self) -> int:
        """Return how many slots are taken; a template that starts takes one, too."""
        templates = list(self.templates.values())
        return sum(len(template.running) + (not template.ready) for template in templates)

    def _fail(self, error: BaseException) -> None:
        with self.changed:
            message = str(error) if isinstance(error, HarnessError) else f"sweep: {error!r}"
            if isinstance(error, OSError):
                message = explain(error) or message
            self.error = error if isinstance(error, SweepError) else SweepError(message)
            self.changed.notify_all()

    def _dispatch(self) -> None:
        """Hand out jobs and start templates until every slot is taken.

        Once a template is ready, others start one at a time: what is ready exports meanwhile.
        """
        while self._taken() < self._slots():
            # One export at a time in a directory that variations share.
            taken = {job.variation.directory for job in self.running()} - {None}
            ready = [
                variation
                for variation, template in self.templates.items()
                if template.ready and variation.directory not in taken and self._may_take(template)
            ]
            lacking = self.schedule.lacking(self.templates)
            starts_beside = bool(ready) and len(ready) < len(self.templates)
            job = self.schedule.take(ready) if lacking is None or starts_beside else None
            if job is not None:
                self._request(self.templates[job.variation], job)
            elif lacking is not None:
                self._start_template(lacking)
            else:
                break

    def _may_take(self, template: TemplateProcess) -> bool:
        """Return whether a template may start its next export now; a job that killed a template runs alone."""
        following = self.schedule.first(template.variation)
        again = following is not None and following.again
        return not template.running or not (again or any(job.again for job in template.jobs()))

    def _end_idle(self) -> None:
        if not self.lasting:
            self.pool.end_idle(self.schedule)

    def _start_template(self, variation: Variation) -> None:
        how = replace(self.settings, modules=None)
        try:
            self.pool.start(variation, how, self.targets, recorded=self.reuse is not None)
        except OSError as error:
            raise SweepError(f"{absolute(how.interpreter)} cannot be run: {error.strerror}") from error

    def _request(self, template: TemplateProcess, job: Job) -> None:
        scratch = self._scratch(job)
        # Never their parents: what is made again where somebody deleted it is open to everybody.
        for folder in (scratch, self._working_directory(job)):
            try:
                folder.mkdir()
            except FileNotFoundError as error:
                raise SweepError(
                    f"{folder.parent} was deleted while exports ran: run again; TMPDIR names another place"
                ) from error
        template.running[job.number] = RunningJob(job, template.process.pid)
        case, changes = self._case(job.cell.case)
        patches = (*self.settings.patches, *self.further_patches.get(job.cell, ()))
        template.send(
            ExportRequest(
                id=job.number,
                target=job.cell.target,
                case=case,
                # What its template has taken on, or it is told by its module, is left out: it may be long.
                settings=replace(self.settings, patches=patches, modules=None, instrument=None),
                scratch=str(scratch),
                log=str(scratch / "log"),
                cwd=str(self._working_directory(job)),
                module=self.modules.get(case),
                others=tuple(sorted(set(self.modules.values()))),
                changes=tuple(changes),
                record=str(scratch / "record") if self.reuse is not None else None,
            )
        )

    def _receive(self, template: TemplateProcess) -> None:
        try:
            answer = template.receive()
        except ValueError as error:
            raise SweepError(
                f"the template of {template.variation.name} answered {str(error)!r}, which is no answer; does a module "
                f"of --models {' '.join(self.settings.models)} write to files that it did not open?"
            ) from error
        if answer is None:
            self._template_died(template)
        elif isinstance(answer, Ready):
            self.started += 1
        elif isinstance(answer, Ended):
            running = template.running.pop(answer.id)
            assert running.result is not None
            with running.result as result:
                self._deliver(running.job, answer, self._end(running.job, answer, result))

    def _end(self, job: Job, ended: Ended, result: io.FileIO) -> Casualty | Range:
        """Return an export's artifact on disk, or why there is none; raise SweepError for what concerns the run."""
        whole = ended.status in (0, CASE_RAISED) and not ended.timed_out
        if whole and os.fstat(result.fileno()).st_size > 0:
            return self.spool.add(result)
        log = self._scratch(job) / "log"
        if ended.status == HARNESS_ERROR and not ended.timed_out:
            self._require_environment()
            raise SweepError(f"{job}: {self._in_checkout(casualties.last_word(log))}")
        found = casualties.casualty(ended, self.settings, log, result)
        if found.of_harness:
            self._require_environment()
        return found

    def _deliver(self, job: Job, answer: Ended, end: Casualty | Range) -> None:
        if job.variation.directory is not None:
            # The next export there must find it as this one did.
            shutil.rmtree(job.variation.directory, ignore_errors=True)
        with self.changed:
            if self.spares_raising and isinstance(end, Range) and answer.status == CASE_RAISED:
                self._spare(job.cell)
            self.ended.append(job.cell)
            self.core_seconds += answer.core_seconds
            self.waited += answer.seconds - answer.core_seconds if isinstance(end, Range) else 0.0
            self.results[job.cell][job.variation] = functools.partial(self._outcome, job, answer, end)
            self.changed.notify_all()

    def _spare(self, cell: Cell) -> None:
        """Export a cell under no variation that still waits."""
        spared = self.schedule.drop(cell)
        self.wanted[cell] = tuple(each for each in self.wanted[cell] if each not in spared)

    def _outcome(self, job: Job, answer: Ended, ended: Casualty | Range) -> Outcome:
        """Return the outcome of an export, and delete its files."""
        result = ended if isinstance(ended, Casualty) else self._artifact(ended)
        if isinstance(result, Casualty) or isinstance(result.result, Failure):
            self._require_environment()
        outcome = Outcome(
            cell=job.cell,
            variation=job.variation.name,
            result=result,
            seconds=answer.seconds,
            peak_mb=answer.peak_mb,
            core_seconds=answer.core_seconds,
        )
        if self.reuse is not None:
            self.reuse.put(self.settings, self._wanted(job), outcome, self._scratch(job) / "record")
        shutil.rmtree(self._scratch(job), ignore_errors=True)
        return outcome

    def _artifact(self, ended: Range) -> Artifact | Casualty:
        """Return the artifact that an export left; where it is none, something in its process wrote to its file."""
        try:
            return decoded(self.spool.take(ended))
        except ValueError as error:
            return Overwritten(str(error))

    def _require_environment(self) -> None:
        """Raise SweepError where the environment is gone: a failing export then says nothing about its cell."""
        if not absolute(self.settings.interpreter).exists():
            raise SweepError(
                f"{self.settings.interpreter} was deleted while its exports were made: make its environment again, "
                "and run again"
            )

    def _scratch(self, job: Job) -> Path:
        """Return the folder of an export: its log, its artifact, its working directory where it has its own."""
        return self.directory / f"export-{job.number}"

    def _working_directory(self, job: Job) -> Path:
        return job.variation.directory or self._scratch(job) / "cwd"

    def _in_checkout(self, text: str) -> str:
        return in_checkout(text, self.settings.interpreter, self.settings.checkout)

    def _template_died(self, template: TemplateProcess) -> None:
        """Export again, once, the jobs of a template that died: somebody else may have killed it."""
        status = self.pool.end(template, templates.PATIENCE)
        if template.finished:
            return
        if not template.ready:
            # Who kills it before it is ready did not mean what it exports. What it raises, another raises as well.
            if status >= 0 or template.variation in self.killed:
                why = casualties.not_started(
                    self.settings.interpreter, status, casualties.raised(template.log)
                )
                raise SweepError(self._in_checkout(why))
            self.killed.add(template.variation)
        self._lose_or_repeat(template, status, ENDED)

    def _lose_or_repeat(self, template: TemplateProcess, status: int, how: str) -> None:
        """Export the jobs of a template that is gone again; one that was alone in it the second time may be why."""
        silent = templates.ANSWER_LIMIT if how == HUNG else 0.0
        for job in template.jobs():
            if job.again:
                tail = casualties.last_lines(self._scratch(job) / "log")
                lost = died(status, template=how, silent=silent, tail=tail)
                self._deliver(job, Ended(job.number, status), lost)
        self._export_again([job for job in template.jobs() if not job.again])

    def _check_answering(self) -> None:
        for template in list(self.templates.values()):
            if template.is_hung():
                self._count(template)
                self._lose_or_repeat(template, self.pool.end(template, 0), HUNG)
            elif template.is_stuck():
                last = "\n".join(casualties.last_lines(template.log))
                limit = templates.TEMPLATE_LIMIT
                raise SweepError(
                    f"{self.settings.interpreter} did not get ready: it computed for {limit:g} s, or was idle for as "
                    f"long:\n{last}"
                )

    def _export_again(self, jobs: Sequence[Job]) -> None:
        """Let `jobs`, whose template is gone, come next; their files are deleted."""
        for job in jobs:
            for folder in (self._working_directory(job), self._scratch(job)):
                shutil.rmtree(folder, ignore_errors=True)
        self.schedule.add(
            Job(next(self.pool.numbers), job.cell, job.variation, again=True) for job in reversed(jobs)
        )


def worth_warming(cells: Collection[Cell]) -> set[str]:
    """Return the targets of `cells` that a template exports its small model for before it serves.

    That of a target takes as long as the export of a small cell. What it spares the target's own exports is little once
    a target of the same group was exported: of few cells it is not worth it. One target of each group always is.
    """
    counts = Counter(cell.target for cell in cells)
    found = {target for target, count in counts.items() if count >= WORTH_WARMING}
    groups: dict[str, list[str]] = {}
    for target in sorted(counts):
        groups.setdefault(group_of(target), []).append(target)
    return found.union(
        max(targets, key=counts.__getitem__) for targets in groups.values() if found.isdisjoint(targets)
    )

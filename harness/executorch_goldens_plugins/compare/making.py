"""Exports both sides of a comparison, judges them, and keeps their results: ``build/compare``.

Both sides export at the same time, so that the first difference is reported early. Results of the base are stored like
goldens, and those of the head like a run that was compared with them: causes, evidence and reports are those of runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import filelock
import msgspec

from executorch_goldens.artifact import Artifact, Cell, Failure, Outcome
from executorch_goldens.causes.groups import Group, Member, grouped, member
from executorch_goldens.errors import HarnessError, UsageError
from executorch_goldens.files import untrusted
from executorch_goldens.files.os_errors import as_user_error
from executorch_goldens.files.wording import count
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.labels import OF_TOOLCHAINS
from executorch_goldens.goldens.rendering import decoding_once
from executorch_goldens.results.compared import ARTIFACTS, DATA, KINDS, MARK, RESULTS, SAME, Tally
from executorch_goldens.results.provenance import Provenance
from executorch_goldens.results.rows import Results
from executorch_goldens.running.progress import LIVE_INTERVAL, MOST_LINES, Progress, Pulse, duration, forever
from executorch_goldens.settings import config
from executorch_goldens.sweep.reuse import Reuse
from executorch_goldens.sweep.seconds import Seconds
from executorch_goldens.sweep.store import Store
from executorch_goldens.sweep.sweep import Sweep, worth_warming
from executorch_goldens.words.kinds import WORDS
from executorch_goldens.zoo.variations import MOST, Variation, named, variations
from executorch_goldens_plugins.compare.outcome import (
    NO_WORSE,
    RIGHT,
    Made,
    decided,
    kind_of,
    may_be_luck,
    shown,
)
from executorch_goldens_plugins.compare.searching import ENOUGH, Search, Try, lines_run
from executorch_goldens_plugins.compare.sides import Side, Sides, side_by_side

#: Part of the time after which no cell is waited for as long as none differs: the rest is for a search.
SHARE = 0.75
#: Models that differ and are no worse, after which a search ends.
MOST_NO_WORSE = 3
#: Cells that fail on both sides in one way, and are most of those compared, after which a comparison ends.
MOST_ALIKE_FAILING = 10


@dataclass(frozen=True)
class Compared:
    """A cell on both sides."""

    cell: Cell
    kind: str
    base: Made
    head: Made


class _Exports:
    """The exports of a cell on one side: those that the sweep makes by itself, until more are asked for."""

    def __init__(
        self, sweep: Sweep, cell: Cell, variations: Sequence[Variation], tick: Callable[[], None]
    ) -> None:
        self.sweep = sweep
        self.cell = cell
        self.variations = variations
        self.tick = tick
        self.made = list(sweep.outcomes(cell))
        self.asked: list[Variation] = []

    def ask(self, variations: Sequence[Variation]) -> None:
        """Let those of some variations that are missing be exported; this waits for none."""
        names = {each.variation for each in self.made}
        self.variations = variations
        self.asked = [each for each in variations if each.name not in names]
        self.sweep.add(self.cell, self.asked, awaited=True)

    def outcomes(self) -> Sequence[Outcome]:
        """Return the outcomes in the order of the variations, once those that were asked for have come."""
        if self.asked:
            self.made.extend(self.sweep.outcomes(self.cell, self.asked, self.tick))
            self.asked = []
        places = {each.name: place for place, each in enumerate(self.variations)}
        return sorted(self.made, key=lambda each: places[each.variation])


@dataclass
class Comparison:
    """Two sides over some cells.

    Attributes
    ----------
    beside
        Whether one export on each side is enough for a cell that is identical: the base's is made under the first
        variation, the head's under the last. Others are exported under every variation on both sides.
    store
        The store that exports are taken from and put into; None for none.
    known
        Seconds of an export of each cell on an idle machine.
    seconds, started
        Wall time, in seconds, after which no further cell is compared, and no further model tried; since when.
    found
        The cells that were compared, in the order of the zoo.
    opening
        Seconds until the first exports of both sides had come.
    has_time
        Whether there was as much time again for a search.
    ran
        Lines that exports of the head ran, by the cell and the file's path below site-packages: of the files that
        `Settings.instrument` names.
    further
        Cells that are compared, while time is left, where the head's probes decide something.
    last
        Those of them that are also compared where the others went no new way through the edited files.
    enough
        Kinds of difference of which one ends the comparison.
    undecided
        Cells that were not compared, because the edited functions gave the same in them; with whether any ran.
    """

    sides: Sides
    cells: tuple[Cell, ...]
    variations: tuple[Variation, ...]
    folder: Path
    store: Store | None = None
    beside: bool = False
    known: Seconds = field(default_factory=lambda: Seconds({}))
    seconds: float = math.inf
    started: float = field(default_factory=time.monotonic)
    found: list[Compared] = field(default_factory=list)
    ran: dict[Cell, dict[str, set[int]]] = field(default_factory=dict)
    further: tuple[Cell, ...] = ()
    last: frozenset[Cell] = frozenset()
    enough: frozenset[str] = frozenset()
    undecided: dict[Cell, bool] = field(default_factory=dict, init=False)
    searched: Search | None = field(default=None, init=False)
    opening: float = field(default=0.0, init=False)
    has_time: bool = field(default=True, init=False)
    model: Try | None = field(default=None, init=False)
    reported: int = field(default=0, init=False)
    sweeps: list[Sweep] = field(default_factory=list, init=False)
    _begun: set[Cell] = field(default_factory=set, init=False)
    #: The ways of undecided cells through the edited files, and how many cells went no new one since.
    _ways: set[frozenset[tuple[object, ...]]] = field(default_factory=set, init=False)
    _repeating: int = field(default=0, init=False)
    _members: list[Member] = field(default_factory=list, init=False)

    @property
    def exports(self) -> Tally:
        """The exports of both sides."""
        return tally(self.sweeps, self.searched.sweeps if self.searched is not None else ())

    @functools.cached_property
    def reuses(self) -> tuple[Reuse, ...]:
        """The use of the store by the base, and by the head; none without a store."""
        return () if self.store is None else (Reuse(self.store), Reuse(self.store))

    @functools.cached_property
    def came(self) -> Provenance:
        """The origin of the head's results."""
        side = self.sides.head
        names = tuple(map(str, self.cells))
        return Provenance.here(
            *(side.release, side.settings, self.variations, config.load().root, self.folder),
            shard=None,
            selected=names,
            whole=False,
            cells=names,
        )

    def run(
        self,
        wanted: Callable[[Made, Sequence[Outcome]], bool],
        further: Callable[[Comparison], Search | None] = lambda _: None,
    ) -> None:
        """Export and judge both sides, a cell on both before the next.

        Parameters
        ----------
        wanted
            Whether what the base made of a cell makes it one to compare.
        further
            Returns what to search in the time that is left: see `MOST_NO_WORSE`.

        Raises
        ------
        SweepError
            Where the harness itself cannot export.
        UsageError
            Where the base hardly lowers anything.
        """
        with alone(self.folder), nothing_on_error(self.folder):
            clear(self.folder)
            results = Results(self.folder / RESULTS, self.sides.head.release)
            results.open()
            for reuse in self.reuses:
                reuse.open()
            try:
                with as_user_error():
                    self.came.write(results.root)
                    probing = self.beside and self.sides.probes
                    cells = (*self.cells, *self.further) if probing else self.cells
                    for cell, base, head in self._exported(self.sides, cells, self.left_for_cells, probing):
                        self._begun.add(cell)
                        self._compare(cell, base, head, results, wanted)
                        self._require_lowering()
                        if self.has_enough:
                            break
                    self.has_time = self.left() > self.opening
                    if self.has_time and (search := further(self)) is not None:
                        self._search(search, self.left(), results)
                    names = tuple(str(each.cell) for each in self.found)
                    dataclasses.replace(self.came, selected=names, cells=names).write(results.root)
            finally:
                results.close(list(dict.fromkeys((*self.cells, *(each.cell for each in self.found)))))
                for reuse in self.reuses:
                    reuse.close()
        places = {cell: place for place, cell in enumerate(self.sides.cells)}
        self.found.sort(key=lambda each: places.get(each.cell, len(places)))

    def left(self, part: float = 1.0) -> float:
        """Return how many seconds are left of a part of its time."""
        return part * self.seconds - (time.monotonic() - self.started)

    def left_for_cells(self) -> float:
        """Return how many seconds are left for cells: as long as none differs, the last ones are for a search."""
        return self.left(1.0 if self.differing() else SHARE)

    @property
    def reached(self) -> dict[str, set[int]]:
        """The lines that exports of any cell ran."""
        found: dict[str, set[int]] = {}
        for file, lines in itertools.chain.from_iterable(each.items() for each in self.ran.values()):
            found.setdefault(file, set()).update(lines)
        return found

    @property
    def late(self) -> list[Cell]:
        """The cells that were not compared because the time was over, or because there was enough."""
        return [cell for cell in self.cells if cell not in self._begun and cell not in self.undecided]

    def left_of(self, cells: Iterable[Cell]) -> Iterator[Cell]:
        """Yield those of some cells that are worth an export: of further ones none that goes a way of the last ones.

        So many of these gave the same.
        """
        repeats = self._repeating >= ENOUGH
        wanted = {*self.cells, *self.last}
        yield from (cell for cell in cells if not repeats or cell in wanted)

    def differing(self) -> list[Compared]:
        """Return the cells that are not identical."""
        return [each for each in self.found if each.kind != SAME]

    @property
    def has_enough(self) -> bool:
        """True if a cell differs in a way that ends the comparison."""
        return any(each.kind in self.enough for each in self.found)

    def causes(self) -> list[Group]:
        """Return the causes of the differences."""
        return grouped(self._members)

    @contextlib.contextmanager
    def again(self, cell: Cell, zoo: str, environment: Mapping[str, str]) -> Iterator[Callable[[], str]]:
        """Yield what exports, runs and judges a cell of another zoo on both sides, and returns its kind of difference.

        Parameters
        ----------
        environment
            Further variables of exporting processes, by which the zoo knows what its case is.
        """
        variation = self.variations[-1]

        def sweep_of(side: Side) -> Sweep:
            machine = side.settings.machine
            machine = dataclasses.replace(machine, environment={**machine.environment, **environment})
            settings = dataclasses.replace(side.settings, models=(zoo,), machine=machine)
            return Sweep((), (variation,), settings, lasting=True, targets=(cell.target,))

        def kind() -> str:
            for sweep in sweeps:
                sweep.add(cell, (variation,))
            of_base, of_head = (sweep.outcomes(cell, (variation,)) for sweep in sweeps)
            return kind_of(*self.sides.judged(of_base, of_head))

        sweeps = sweep_of(self.sides.base), sweep_of(self.sides.head)
        with side_by_side(*sweeps):
            yield kind

    def _search(self, search: Search, seconds: float, results: Results) -> None:
        """Judge models that differ until one is worse, a few are no worse, or the time is over; keep the worst one."""
        known, members, sweeps = len(self.found), len(self._members), len(self.sweeps)
        models: dict[Cell, Try] = {}
        found: list[Compared] = []
        self.searched = search
        pulse = Pulse(_Screen(), sys.stderr.isatty())
        for model in search.differing(seconds, self.variations[-1], pulse.beat):
            pulse.erase()
            models[model.cell] = model
            for cell, base, head in self._exported(search.sides, (model.cell,)):
                self._compare(cell, base, head, results, lambda made, _: made.is_right)
            found = [each for each in self.found[known:] if each.kind != SAME]
            worse = any(each.kind not in NO_WORSE for each in found)
            if worse or self.has_enough or len(found) == MOST_NO_WORSE:
                break
        pulse.erase()
        search.sweeps += self.sweeps[sweeps:]
        del self.sweeps[sweeps:]
        worst = min(found, key=lambda each: KINDS.index(each.kind), default=None)
        self.found[known:] = [worst] if worst is not None else []
        if worst is not None:
            self.model = models[worst.cell]
            self._members[members:] = [
                each for each in self._members[members:] if each.proposal.cell == worst.cell
            ]

    def _require_lowering(self) -> None:
        """Raise UsageError where the base is no release as published, and most cells fail on both sides in one way."""
        base = self.sides.base
        failing = [each.base for each in self.found if RIGHT not in (each.base.state, each.head.state)]
        if base.toolchain.is_declared or len(failing) < MOST_ALIKE_FAILING:
            return
        by_cause: dict[bytes, list[Made]] = {}
        for made in failing:
            by_cause.setdefault(msgspec.json.encode(made.cause, order="sorted"), []).append(made)
        alike = max(by_cause.values(), key=len)
        if len(alike) >= MOST_ALIKE_FAILING and 2 * len(alike) > len(self.found):
            raise UsageError(
                f"{base.toolchain.name!r} lowers too little: {len(alike)} of {count(len(self.found), 'cell')} fail "
                f"alike on both sides, e.g. {alike[0].verdict.cell} {alike[0].result}; name a release that is nearer "
                "to the sources, or other cells by --cell"
            )

    @decoding_once()
    def _compare(
        self,
        cell: Cell,
        base: _Exports,
        head: _Exports,
        results: Results,
        wanted: Callable[[Made, Sequence[Outcome]], bool],
    ) -> None:
        """Judge a cell on both sides, and keep what differs."""

        def judged(*variations: Variation) -> tuple[Sequence[Outcome], Made, Made]:
            """Judge both sides, under further variations if there are any: both export at the same time."""
            for each in (base, head) if variations else ():
                each.ask(variations)
            of_base, of_head = base.outcomes(), head.outcomes()
            return of_head, *self.sides.judged(of_base, of_head)

        of_head, old, new = judged()
        if not wanted(old, base.outcomes()):
            return
        if self.beside and kind_of(old, new) != SAME:
            of_head, old, new = judged(*self.variations)
        if may_be_luck(old, new):
            of_head, old, new = judged(*twice(self.variations))
        compared = Compared(cell, kind_of(old, new), old, new)
        self.found.append(compared)
        self._note_lines(of_head)
        if old.record is not None:
            # The head is compared with it as with goldens of its own release.
            root = self.folder / ARTIFACTS / self.sides.head.release.version
            golden.write(golden.file_of(root, cell), old.record, kept=True)
        if compared.kind != SAME:
            self._say_at_once(f"{WORDS[compared.kind]}: {cell}: {shown(old, new)}".rstrip(": "))
            made = results.keep(cell, of_head)
            proposal = results.propose(new.verdict, new.record, old.record, self.came, new.accuracy)
            records = (old.record, new.record, made)
            self._members.append(member(proposal, *records, difference=new.difference, labels=OF_TOOLCHAINS))
        if compared.kind != SAME or cell in self.cells:
            # Of a model that a search tried in vain, nobody wants a line.
            results.note(new.verdict, of_head, new.accuracy, new.not_run)
        for side in (old.record, new.record):
            if side is not None:
                side.outlines.forget()

    def _note_lines(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            for file, lines in lines_run(outcome).items():
                self.ran.setdefault(outcome.cell, {}).setdefault(file, set()).update(lines)

    def _leave_out(self, made: _Exports) -> None:
        """Note a cell that need not be compared, because edited functions gave the same in it."""
        self.undecided[made.cell] = any(outcome.result.probes for outcome in made.made)  # type: ignore[union-attr]
        self._note_lines(made.made)
        way = frozenset((file, *sorted(lines)) for file, lines in self.ran.get(made.cell, {}).items())
        self._repeating = 0 if way not in self._ways else self._repeating + 1
        self._ways.add(way)

    def _say_at_once(self, line: str) -> None:
        """Say what is known of a cell that differs, while others are exported; of many, of the first alone."""
        self.reported += 1
        if self.reported <= MOST_LINES:
            if sys.stderr.isatty():
                _Screen().rewrite("")
            _Screen().write_line(line)

    def _exported(
        self,
        sides: Sides,
        cells: Sequence[Cell],
        left: Callable[[], float] = forever,
        probing: bool = False,
    ) -> Iterator[tuple[Cell, _Exports, _Exports]]:
        """Export cells on both sides, and yield them as they come, while time is left; the first one in any case.

        Parameters
        ----------
        probing
            Whether the base exports only those in which the head's probes decide something, or do not know.
        """
        if not cells:
            return
        exports = 1 if self.beside else len(self.variations)
        screen = _Screen()
        how = "under another variation on each side" if self.beside else f"{exports} variations each"
        most = "" if math.isinf(left()) else f"; {duration(max(self.left(), 0.0))} in all at most"
        where = " where the edit decides" if probing else ""
        screen.write_line(f"comparing {count(len(cells), 'cell')}{where}, {how}{most}")
        beside = cells if self.beside else ()
        base, head = (
            # More variations of a cell may be asked for.
            Sweep(
                cells,
                varied,
                side.settings,
                lasting=True,
                targets=worth_warming(self.cells or cells) if probing else None,
                beside=beside,
                reuse=reuse,
                held=cells if probing and side is sides.base else (),
            )
            for side, varied, reuse in zip(
                (sides.base, sides.head),
                (self.variations[::-1], self.variations),
                self.reuses or (None, None),
                strict=True,
            )
        )
        self.sweeps += base, head
        jobs, live = sides.head.settings.jobs, sys.stderr.isatty()
        progress = Progress(cells, (base, head), self.known, jobs, screen, live, left=left)
        began = time.monotonic()

        def exports_of(sweep: Sweep, cell: Cell) -> _Exports:
            return _Exports(sweep, cell, self.variations, functools.partial(progress.show, sweep))

        of_head, of_base = deque(cells), deque[_Exports]()
        with side_by_side(base, head):
            while of_head or of_base:
                if self.opening and left() <= 0:
                    break
                of_head = deque(self.left_of(of_head))
                # What both have comes first; what the head has meanwhile may not need the base.
                if of_base and base.ready(of_base[0].cell, 0.0 if of_head else LIVE_INTERVAL):
                    made = of_base.popleft()
                    self.opening = self.opening or time.monotonic() - began
                    yield made.cell, exports_of(base, made.cell), made
                    progress.passed(head, made.cell)
                elif of_head and head.ready(of_head[0], LIVE_INTERVAL):
                    made = exports_of(head, of_head.popleft())
                    if probing and all(decided(outcome) is False for outcome in made.made):
                        self._leave_out(made)
                        self.opening = self.opening or time.monotonic() - began
                        progress.passed(head, made.cell)
                    else:
                        of_base.append(made)
                        base.unhold(made.cell)
                else:
                    progress.show(head)
        progress.erase()


def tally(sweeps: Sequence[Sweep], searching: Sequence[Sweep]) -> Tally:
    """Return the exports of all sweeps, the ones of a search among them."""
    every = (*sweeps, *searching)
    computed, waited = sum(each.core_seconds for each in every), sum(each.waited for each in every)
    return Tally(
        sum(len(each.ended) + each.reused for each in every),
        sum(each.reused for each in every),
        sum(len(each.ended) + each.reused for each in searching),
        round(computed, 1),
        round(1.0 + max(waited, 0.0) / computed, 1) if computed else 1.0,
    )


def twice(varied: Sequence[Variation]) -> tuple[Variation, ...]:
    """Return some variations, and about as many more."""
    further = variations(named(str(min(2 * len(varied), MOST))))
    return (*varied, *(each for each in further if each not in varied))


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other comparisons out of a folder; raise UsageError where one is at work there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder.with_name(f"{folder.name}.lock"))
    try:
        held = lock.acquire(timeout=0)
    except filelock.Timeout as error:
        raise UsageError(
            f"a different comparison works in {folder}: wait for it, or name another --sweeps"
        ) from error
    with held:
        yield


@contextlib.contextmanager
def nothing_on_error(folder: Path) -> Iterator[None]:
    """Leave nothing of a comparison that ends with an error."""
    try:
        yield
    except HarnessError:
        if (folder / MARK).is_file():
            clear(folder)
        raise


def clear(folder: Path) -> None:
    """Make the folder of a comparison, with nothing of an earlier one; raise UsageError for one of somebody else's."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise UsageError(
            f"--sweeps {folder} has files that are of no comparison: name one that is empty, or none"
        )
    (folder / DATA).unlink(missing_ok=True)
    for name in (ARTIFACTS, RESULTS):
        shutil.rmtree(folder / name, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("Files of goldens compare; the next comparison in this folder deletes them.\n")


class _Screen:
    """Standard error, as the progress of a run writes to a terminal."""

    def rewrite(self, line: str, **markup: bool) -> None:
        self.write(f"\r\x1b[K{untrusted.escape_controls(line)}")

    def write_line(self, line: str, **markup: bool) -> None:
        print(line, file=sys.stderr, flush=True)

    def write(self, content: str, **markup: bool) -> None:
        # Past what escapes the control characters of all other output.
        stream = getattr(sys.stderr, "stream", sys.stderr)
        stream.write(content)
        stream.flush()


def changed_by(name: str) -> Callable[[Made, Sequence[Outcome]], bool]:
    """Return whether a pass of this name changed the graph of a cell, by the trace of its exports, or failed."""

    def wanted(_: Made, outcomes: Sequence[Outcome]) -> bool:
        made = [outcome.result for outcome in outcomes if isinstance(outcome.result, Artifact)]
        traces = (each.watched.passes for each in made if each.watched is not None)
        return any(run.changed and run.name == name for trace in traces for run in trace) or any(
            isinstance(each.result, Failure) and each.result.pass_name == name for each in made
        )

    return wanted

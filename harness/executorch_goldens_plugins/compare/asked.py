"""What a comparison is asked for: the edits between two toolchains, and the cells that reach them."""

from __future__ import annotations

import argparse
import difflib
import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.errors import UsageError
from executorch_goldens.files.wording import count
from executorch_goldens.settings.config import Config
from executorch_goldens.sweep.seconds import Seconds, committed
from executorch_goldens.toolchains.toolchain import Toolchain
from executorch_goldens.zoo.targets import BUILD
from executorch_goldens_plugins.compare.candidates import search
from executorch_goldens_plugins.compare.making import SHARE, Comparison
from executorch_goldens_plugins.compare.reach import map as maps
from executorch_goldens_plugins.compare.reach.answer import Answer, answer
from executorch_goldens_plugins.compare.reach.choice import Choice, choose, choose_pass
from executorch_goldens_plugins.compare.reach.edits import Edits, between
from executorch_goldens_plugins.compare.reach.map import ReachMap
from executorch_goldens_plugins.compare.reach.unused import unused
from executorch_goldens_plugins.compare.searching import Search

#: Words for the core, which is compared where there is no map.
UNMAPPED = "the core is compared, or all cells where none is committed"
#: Why a cell was not chosen.
OVER, WRONG = "over the budget", "not right on the base"
#: Cells that are not right on the base and come before those that are over the budget.
EARLY = 8
#: Files that are not Python and are named.
SHOWN = 3


@dataclass(frozen=True)
class Asked:
    """The cells that a comparison is to have, and why.

    Attributes
    ----------
    edits
        The edits that lead from the base to the head; None where these are not one release.
    choice
        The cells that reach the edits; None where they are chosen in another way.
    known
        The map that the choice is from.
    why
        Why they are chosen in another way, though nobody asked for it; empty otherwise.
    of_pass
        The pass whose cells were asked for; empty for those of the edits.
    """

    zoos: tuple[str, ...]
    head: Path
    edits: Edits | None = None
    choice: Choice | None = None
    known: ReachMap | None = None
    why: str = ""
    of_pass: str = ""

    @classmethod
    def parse(
        cls, base: Toolchain, head: Toolchain, arguments: argparse.Namespace, repository: Config
    ) -> Asked:
        """Return what was asked for; raise UsageError for a pass that no cell reaches, and `MapError`."""
        edits = between(base.site_packages, head.site_packages) if is_edit(base, head) else None
        by_hand = arguments.cell or arguments.tier or arguments.models
        name, zoos = arguments.of_pass or "", repository.zoos(arguments.models)
        if by_hand or (edits is None and not name):
            return cls(zoos, head.site_packages, edits)
        if edits is not None and edits.others and not name:
            first = ", ".join(edits.others[:SHOWN])
            why = f"nothing says which cells reach what is not Python ({first}); the core is compared"
            return cls(zoos, head.site_packages, edits, why=why)
        place = repository.goldens / base.release.version / maps.FILE
        if not place.is_file():
            why = f"no map of reach for {base.release.version}: {UNMAPPED}"
            return cls(zoos, head.site_packages, edits, why=why)
        known, budget = maps.read(place), 60 * arguments.budget * SHARE
        if name:
            choice = choose_pass(name, known, budget, arguments.jobs)
        else:
            assert edits is not None
            choice = choose(edits, base.site_packages, known, budget, arguments.jobs)
        if name and not choice.cells:
            raise _without_cells(name, known, choice, arguments.budget)
        sources = dict.fromkeys(known.cells[cell].source for cell in choice.cells)
        named = tuple(known.sources[number] for number in sources)
        return cls(named or zoos, head.site_packages, edits, choice, known, of_pass=name)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that were chosen, in the order in which they are exported."""
        return self._named(self.choice.cells) if self.choice is not None else ()

    @property
    def left_out(self) -> dict[Cell, str]:
        """The cells that reach the edits and were not chosen, in the order in which they are tried, with why."""
        if self.choice is None:
            return {}
        over = dict.fromkeys(self._named(self.choice.left_out), OVER)
        wrong = dict.fromkeys(self._named(self.choice.wrong), WRONG)
        # What only a failing program shows is not to wait for many that give the same.
        return dict(itertools.islice(wrong.items(), EARLY)) | over | wrong

    def searches(self, comparison: Comparison) -> bool:
        """Return whether new models are to be tried: nothing differs yet, and one may run the edit."""
        edited = self.known is not None and self.edits is not None and bool(self.edits.every)
        return edited and not comparison.differing() and not self.not_searched

    def search(self, comparison: Comparison) -> Search | None:
        """Return what to search; None where nothing is to be tried, or can be."""
        if not self.searches(comparison) or self.known is None or self.edits is None:
            return None
        chosen = self.choice.cells if self.choice is not None else ()
        return search(comparison.sides, self.known, self.edits, self.head, chosen, comparison.ran)

    @functools.cached_property
    def not_searched(self) -> str:
        """Why no model can run the edits, in words; empty where one may."""
        if self.known is None or self.edits is None:
            return ""
        if names := unused(self.edits, self.known, self.head):
            return f"no code that lowers a cell uses {', '.join(names)}, so that no model can run the edit"
        if self.cells and all(cell.target == BUILD for cell in (*self.cells, *self.left_out)):
            return "only programs of build functions reach the edit: they set what no target sets"
        return ""

    @property
    def files(self) -> tuple[str, ...]:
        """The files whose lines are recorded on the head, by their paths below site-packages."""
        if self.edits is None:
            return ()
        users = (file for edit in self.edits.every for file, _ in edit.users)
        named = dict.fromkeys((*self.edits.files, *users))
        return tuple(file for file in named if file.endswith(".py") and (self.head / file).is_file())

    def seconds(self, root: Path) -> Seconds:
        """Return the seconds of an export of each cell: those of the map, else those of a release's goldens."""
        known = {cell.cell: cell.seconds for cell in self.known.cells} if self.known is not None else {}
        return Seconds({**committed(root).measured, **known})

    def facts(self) -> Iterator[str]:
        """Yield how the cells were chosen."""
        if self.choice is not None and self.known is not None:
            several = len({self.known.cells[cell].source for cell in self.choice.cells})
            rest = "".join(f"; {words}" for words in left_out(self.left_out.values(), "more cell"))
            what = self.of_pass or "the edit"
            yield f"cells: {len(self.cells)} that reach {what}, from {count(several, 'source')}{rest}"
            if self.known.lock != maps.lock_of(self.known.release):
                old = f"the map of {self.known.made} is older than the lock of {self.known.release}"
                yield f"cells: {old}; make it again by: {maps.UPDATE}"
        if self.why:
            yield f"cells: {self.why}"

    def answer(self, reached: dict[str, set[int]]) -> Answer | None:
        """Return which edited lines the head's exports ran; None where nothing was edited."""
        if self.edits is None or not self.edits.every:
            return None
        return answer(self.edits, reached, self.head)

    def _named(self, numbers: tuple[int, ...]) -> tuple[Cell, ...]:
        assert self.known is not None
        return tuple(self.known.cells[number].cell for number in numbers)


def left_out(why: Iterable[str], what: str) -> Iterator[str]:
    """Yield how many cells were not chosen, in words.

    >>> list(left_out([OVER, WRONG, WRONG], "cell"))
    ['1 cell over the budget', '2 cells not right on the base']
    """
    yield from (f"{count(number, what)} {each}" for each, number in Counter(why).items())


def is_edit(base: Toolchain, head: Toolchain) -> bool:
    """Return whether two toolchains have the same distributions, so that only sources laid over them may differ."""
    sides = [each.site_packages for each in (base, head)]
    installed = [sorted(path.name for path in side.glob("*.dist-info")) for side in sides]
    return installed[0] == installed[1] and all((side / "executorch").is_dir() for side in sides)


def _without_cells(name: str, known: ReachMap, choice: Choice, budget: float) -> UsageError:
    """Return the error for a pass that no cell of a map reaches, with names near it, or none within the budget."""
    if choice.left_out:
        cells = count(len(choice.left_out), "cell")
        return UsageError(
            f"--pass {name}: --budget {budget:g} is too short for any of the {cells} that reach it: pass a longer one"
        )
    classes = {each.name.partition(".")[0] for each in known.functions if each.situations}
    near = difflib.get_close_matches(name, classes, n=3)
    like = f"; near: {', '.join(near)}" if near else ""
    return UsageError(f"--pass {name}: no cell of the map of {known.release} reaches it{like}")

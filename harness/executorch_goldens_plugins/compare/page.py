"""Reports of a comparison for a terminal, a pull request and other programs: worst first, by cause."""

from __future__ import annotations

import functools
import math
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from executorch_goldens.artifact import Cell
from executorch_goldens.causes.groups import Group
from executorch_goldens.files.untrusted import markdown
from executorch_goldens.files.wording import aligned, count
from executorch_goldens.goldens.quantities import QUANTITIES, measured
from executorch_goldens.results.compared import (
    BOTH,
    KINDS,
    SAME,
    Column,
    ComparedCell,
    ComparedReach,
    ComparedSide,
    ComparedSides,
)
from executorch_goldens.running.counting import not_judged
from executorch_goldens.words.findings import NOT_JUDGED
from executorch_goldens.words.kinds import WORDS
from executorch_goldens_plugins.compare import outcome
from executorch_goldens_plugins.compare.asked import Asked, left_out
from executorch_goldens_plugins.compare.making import Compared, Comparison
from executorch_goldens_plugins.compare.outcome import ALLOWED, UNREACHED, extent, shown
from executorch_goldens_plugins.compare.reach.answer import Answer
from executorch_goldens_plugins.compare.searching import SEED

#: Cells that are named of a cause, and causes of a kind.
SHOWN_CELLS, SHOWN_CAUSES = 4, 12
#: Lines and cells that are named of a requirement that is not met.
SHOWN_MISSING = 20
#: How many times as long as on an idle machine exports take from which a busy one shows.
BUSY = 1.5
#: Lines that name tensors and operators of one cell of a cause, and characters of each.
SHOWN_DETAILS, DETAIL = 3, 200
#: Kinds whose cells have no cause: what was wrong and is not, nobody has to look into.
WITHOUT_CAUSE = ("better",)
#: Quantities of the table of an upgrade, and their columns.
TABLE = {"memory": "memory", "program": "bytes", "outside": "operators outside"}
#: Marks a comment, so that the next one replaces it.
MARK = "<!-- executorch-goldens: compare -->"

#: A line, and how deep it is under others.
Item = tuple[int, str]


#: A module of a zoo with one case.
OWN_CASE = (
    "  import torch",
    "  from executorch_goldens import Data, Example, case",
    "",
    '  @case(guards="what the edit changes")',
    "  def mine(data: Data) -> Example:",
    '      return Example(torch.nn.Conv2d(2, 4, 3), (data.tensor("x", 1, 2, 8, 8),))',
)
#: Operators of a search that are named.
MOST_FAMILIES = 12


def tried(by_family: Mapping[str, Sequence[int]]) -> str:
    """Return how many models of each operator, or of cases of each family, were tried, those that reached more first.

    >>> tried({"relu.default": [2, 0], "convolution.default": [9, 7]})
    'convolution.default 9 (7 ran an edited line), relu.default 2'
    """
    ordered = sorted(by_family.items(), key=lambda each: (-each[1][1], -each[1][0], each[0]))
    named = [
        f"{name} {number}{f' ({ran} ran an edited line)' * bool(ran)}" for name, (number, ran) in ordered
    ]
    more = f" and {len(named) - MOST_FAMILIES} more" if len(named) > MOST_FAMILIES else ""
    return f"{', '.join(named[:MOST_FAMILIES])}{more}"


@dataclass(frozen=True)
class ComparisonPage:
    """A comparison in words.

    Attributes
    ----------
    allowed
        Kinds that are no difference: see `outcome.ALLOWED`.
    columns
        Columns of plugins; with one that has a title, there is a table.
    asked
        The edit, and the cells that reach it; None where that is not known.
    required
        Names of `outcome.REQUIRED`.
    """

    comparison: Comparison
    allowed: Collection[str] = ()
    columns: Sequence[Column] = ()
    asked: Asked | None = None
    required: Collection[str] = ()

    @functools.cached_property
    def answer(self) -> Answer | None:
        """Which of the edited lines ran; None where nothing was edited."""
        return self.asked.answer(self.comparison.reached) if self.asked is not None else None

    @property
    def is_red(self) -> bool:
        """True if something differs, or no edited line ran, and that is not allowed; or if a requirement is not met."""
        void = self.answer is not None and self.answer.is_void
        return self.differs or (void and UNREACHED not in self.allowed) or any(self.missing.values())

    @functools.cached_property
    def missing(self) -> dict[str, tuple[str, ...]]:
        """What is missing of each requirement: places in edited files, and cells."""
        others = self.asked.edits.others if self.asked is not None and self.asked.edits is not None else ()
        unreached = self.answer.unreached if self.answer is not None else ()
        lacking = {outcome.REACHED: (*unreached, *others), outcome.ALL: tuple(map(str, self._left_out()))}
        return {name: lacking[name] for name in outcome.REQUIRED if name in self.required}

    def _left_out(self) -> dict[Cell, str]:
        """Return the cells that were left out for time, with why."""
        done = {*self.comparison.undecided, *(each.cell for each in self.comparison.found)}
        left = self.asked.left_out if self.asked is not None else {}
        chosen = {cell: why for cell, why in left.items() if cell not in done}
        return chosen | dict.fromkeys(self.comparison.late, self._why_late())

    def _why_late(self) -> str:
        return (
            "a cell differs, and --first asks for one" if self.comparison.has_enough else "the time was over"
        )

    @property
    def differs(self) -> bool:
        """True if there is a difference that is not allowed."""
        return any(each.kind not in self.allowed for each in self.comparison.differing())

    def head(self) -> str:
        """Return the first line: whether both are identical, and how many cells differ in which way."""
        found = self.comparison.found
        number = Counter(each.kind for each in found)
        bad = len(self.bad_on_both())
        same = number.pop(SAME, 0) - bad
        edited = self.answer.line() if self.answer is not None else ""
        if not found and self.is_same_code:
            return "identical: no code differs"
        same_code = "; ".join(self._undecided())
        if not found and same_code:
            return "; ".join(filter(None, (f"identical: {same_code}", edited)))
        if not found:
            why = "no cell is known that reaches the edit" if edited else "no cell that was chosen is in both"
            if self.asked is not None and self.asked.left_out:
                why = ", ".join(left_out(self.asked.left_out.values(), "cell"))
            return "; ".join(filter(None, (f"nothing was compared: {why}", edited)))
        ways = ", ".join(f"{number[kind]} {WORDS[kind]}" for kind in KINDS if kind in number)
        where = (" where it decides" if same_code else " where reached") if edited and not number else ""
        part = f"{same} of " if number or bad else "" if where else "all "
        same_cells = f"identical{where}: {part}{count(len(found), 'cell')}"
        alike = f"{bad} {WORDS[BOTH]}" if bad else ""
        unjudged = f"of these, {len(self.unjudged())} {NOT_JUDGED}" if self.unjudged() else ""
        return "; ".join(filter(None, (same_cells, ways, alike, same_code, edited, unjudged)))

    def _undecided(self) -> Iterator[str]:
        """Yield what is known of the cells that were not compared."""
        ran = Counter(self.comparison.undecided.values())
        cell = "more cell" if self.comparison.found else "cell"
        for did, words in (
            (True, "the edited code ran and gave the same"),
            (False, "the edited code did not run"),
        ):
            if ran[did]:
                yield f"in {count(ran[did], cell)} {words}"

    @property
    def is_same_code(self) -> bool:
        """True if both sides are one release with the same code."""
        edits = self.asked.edits if self.asked is not None else None
        return edits is not None and not edits.every and not edits.others

    def bad_on_both(self) -> list[Compared]:
        """Return the cells that are the same on both sides, and right on neither."""
        return [each for each in self.comparison.found if each.kind == SAME and not each.head.is_right]

    def unjudged(self) -> dict[Cell, str]:
        """Return the cells whose program was not run on a side, with why: there only what was made is compared."""
        both = ((each.cell, each.head.not_run or each.base.not_run) for each in self.comparison.found)
        return {cell: why for cell, why in both if why}

    def facts(self) -> Iterator[str]:
        """Yield the two sides and their settings."""
        sides = self.comparison.sides
        yield sides.base.line
        yield sides.head.line
        yield f"variations: {' '.join(each.name for each in self.comparison.variations)}, on both sides"
        yield f"patches: {', '.join(sides.base.settings.patches) or 'none'}, on both sides"
        yield from sides.left_out
        if self.asked is not None:
            yield from self.asked.facts()
        if (search := self.comparison.searched) is not None:
            yield f"searched: {search.words()}"
            if search.by_family:
                yield f"tried: {tried(search.by_family)}"
            if not search.reaching:
                yield from self._own_case()
        elif why := self._not_searched():
            yield f"not searched: {why}"
        if (model := self.comparison.model) is not None:
            yield f"keep {model.cell} in a module of a zoo: {model.line}"
        if late := self.comparison.late:
            yield f"not compared: {count(len(late), 'cell')}, because {self._why_late()}"
        exports, is_limited = self.comparison.exports, math.isfinite(self.comparison.seconds)
        if is_limited and exports.slowness >= BUSY:
            yield f"exports took {exports.slowness:g} times as long as on an idle machine"
        for word, number in sides.alone.items():
            if number:
                yield f"not compared: {count(number, 'cell')} that the {word} alone has"
        if words := ", ".join(WORDS[kind] for kind in KINDS if kind in self.allowed):
            yield f"allowed: {words}"
        yield from not_judged(self.unjudged())
        yield from self.missing_lines()
        if exports.made:
            of_search = f", {exports.searched} for the search" if exports.searched else ""
            yield f"exports: {exports.made}, {exports.reused} of them from the cache{of_search}"
            yield f"processor time of exports: {exports.core_seconds:.0f} s"

    def _own_case(self) -> Iterator[str]:
        """Yield how a case of one's own is compared, where no model ran an edited line."""
        sides = self.comparison.sides
        target = next((each.target for each in (*self.comparison.cells, *sides.cells)), "tosa-fp")
        words = ("goldens", "compare", sides.base.toolchain.name, sides.head.toolchain.name)
        command = shlex.join((*words, "--models", "my_case", "--cell", f"{target}/mine"))
        yield f"no model ran the edit; with one of your own in my_case.py: {command}"
        yield from OWN_CASE

    def missing_lines(self) -> Iterator[str]:
        """Yield a line for each requirement that is not met."""
        for name, lacking in self.missing.items():
            more = f" and {len(lacking) - SHOWN_MISSING} more" if len(lacking) > SHOWN_MISSING else ""
            if lacking:
                yield f"missing for --require {name}: {', '.join(lacking[:SHOWN_MISSING])}{more}"

    def sections(self) -> Iterator[tuple[str, Sequence[Item]]]:
        """Yield the kinds of difference that there are, worst first: a heading, and what is under it.

        A cause is listed under each of its kinds, with the cells and amounts of that kind. Cells that are the same on
        both sides, and right on neither, come last, all by name.
        """
        by_cell = {each.cell: each for each in self.comparison.differing()}
        causes = [
            (group, [by_cell[m.proposal.cell] for m in group.members if m.proposal.cell in by_cell])
            for group in self.comparison.causes()
        ]
        causes.sort(key=lambda cause: (-len(cause[1]), cause[0].title))
        said: set[str] = set()
        for kind in KINDS:
            cells = [each for each in by_cell.values() if each.kind == kind]
            if not cells:
                continue
            items: list[Item] = []
            of_kind = [each for each in causes if any(cell.kind == kind for cell in each[1])]
            if kind in WITHOUT_CAUSE:
                of_kind = []
            for group, members in of_kind[:SHOWN_CAUSES]:
                items += self._cause(group, members, kind, again=group.cause in said)
            if len(of_kind) > SHOWN_CAUSES:
                items.append((0, f"… {count(len(of_kind) - SHOWN_CAUSES, 'more cause')}"))
            said.update(group.cause for group, _ in of_kind)
            caused = {cell.cell for _, members in of_kind for cell in members}
            others = [each for each in cells if each.cell not in caused]
            items += ((0, line) for line in of_cells(largest_first(others)))
            yield f"{WORDS[kind]}: {count(len(cells), 'cell')}", items
        if bad := self.bad_on_both():
            lines = of_cells(bad, most=len(bad))
            yield f"{WORDS[BOTH]}: {count(len(bad), 'cell')}", [(0, line) for line in lines]

    def _cause(self, group: Group, members: Sequence[Compared], kind: str, again: bool) -> Iterator[Item]:
        """Yield a cause under one of its kinds, with the cells of that kind; `again` where a worse one has named it."""
        number = Counter(each.kind for each in members)
        ways = ", ".join(f"{number[each]} {WORDS[each]}" for each in KINDS if each in number)
        yield 0, f"{group.title}, as above" if again else f"{group.title} ({ways})"
        here = [each for each in members if each.kind == kind]
        of_kind = {each.cell for each in here}
        counted = replace(group, members=tuple(m for m in group.members if m.proposal.cell in of_kind))
        yield from ((1, line) for line in counted.amounts())
        if not again:
            yield from ((1, line) for line in _details(counted))
        yield from ((1, line) for line in of_cells(largest_first(here)))

    def lines(self) -> Iterator[str]:
        """Yield it for a terminal."""
        yield self.head()
        yield from (f"  {line}" for line in self.facts())
        for heading, items in self.sections():
            yield from ("", heading)
            yield from (f"{'  ' * (depth + 1)}{line}" for depth, line in items)
        if self.tabled:
            yield ""
            yield from aligned(self.table())
        yield from (line for column in self.columns for line in column.lines)

    def markdown(self) -> Iterator[str]:
        """Yield it as Markdown, for a comment."""
        yield from (MARK, f"**{markdown(self.head())}**", "")
        yield from (f"- {markdown(line)}" for line in self.facts())
        for number, (heading, items) in enumerate(self.sections()):
            yield from ("", "<details>" if number else "<details open>")
            yield from (f"<summary>{markdown(heading)}</summary>", "")
            yield from (f"{'  ' * depth}- {markdown(line)}" for depth, line in items)
            yield from ("", "</details>")
        if self.tabled:
            head, *rows = self.table()
            yield from ("", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}")
            yield from (f"| {' | '.join(map(markdown, row))} |" for row in rows)
        if any(column.lines for column in self.columns):
            yield ""
            yield from (f"- {markdown(line)}" for column in self.columns for line in column.lines)

    @property
    def tabled(self) -> list[Column]:
        """The columns of the table."""
        return [column for column in self.columns if column.title]

    def table(self) -> Iterator[Sequence[str]]:
        """Yield a table of an upgrade's effect: a head, and the figures of each cell."""
        yield (
            "model",
            *(TABLE[name] for name in TABLE),
            "SQNR, dB",
            "error, of the tolerance",
            *(column.title for column in self.tabled),
        )
        for each in self.comparison.found:
            found = quantities(each)
            figures = [_change(*found.get(name, (None, None)), ",") for name in TABLE]
            ratios = _change(each.base.sqnr, each.head.sqnr, ".1f")
            errors = _change(each.base.used, each.head.used, ".3g")
            of_plugins = (column.words.get(each.cell, "none") for column in self.tabled)
            yield str(each.cell), *figures, ratios, errors, *of_plugins

    def data(self) -> ComparedSides:
        """Return it for other programs."""
        sides = self.comparison.sides
        causes = {
            member.proposal.cell: group.title
            for group in self.comparison.causes()
            for member in group.members
        }
        return ComparedSides(
            head=self.head(),
            facts=(*self.facts(), *(line for column in self.columns for line in column.lines)),
            same=not self.differs,
            sides={
                side.word: ComparedSide(side.toolchain.name, side.release.stack(), side.toolchain.source)
                for side in (sides.base, sides.head)
            },
            variations=tuple(each.name for each in self.comparison.variations),
            patches=tuple(sides.base.settings.patches),
            left_out=tuple(sides.left_out),
            alone=sides.alone,
            allowed=tuple(self.allowed),
            missing=self.missing,
            cells={
                str(each.cell): ComparedCell(
                    each.kind,
                    shown(each.base, each.head) if each.kind != SAME or not each.head.is_right else "",
                    causes.get(each.cell),
                    each.base.found,
                    each.head.found,
                    quantities(each),
                )
                for each in self.comparison.found
            },
            reach=self._reach(),
            search=self._search(),
            exports=self.comparison.exports,
            columns={
                column.key: {str(cell): word for cell, word in column.words.items()}
                for column in self.columns
            },
        )

    def _search(self) -> dict[str, Any] | None:
        """Return what a search tried and found, or why nothing was searched, as JSON values."""
        search, model = self.comparison.searched, self.comparison.model
        if search is None:
            why = self._not_searched()
            return {"tried": 0, "why": why} if why else None
        found = {"cell": str(model.cell), "keep": model.line} if model is not None else {}
        by_family = {name: {"tried": each[0], "reaching": each[1]} for name, each in search.by_family.items()}
        return {
            "tried": search.tried,
            "reaching": search.reaching,
            "undecided": search.undecided,
            "of": by_family,
            "seed": SEED,
            **found,
        }

    def _not_searched(self) -> str:
        """Return why no model was tried, in words; empty where that was not to be."""
        if self.asked is None:
            return ""
        late = not self.comparison.has_time and self.asked.searches(self.comparison)
        return "too little time was left" if late else self.asked.not_searched

    def _reach(self) -> ComparedReach | None:
        """Return what of the edit was reached, and the cells that were left out."""
        if self.answer is None or self.asked is None:
            return None
        return ComparedReach(
            reached=self.answer.reached,
            unreached=self.answer.unreached,
            raising=self.answer.raising,
            unmapped=tuple(self.asked.choice.unmapped) if self.asked.choice is not None else (),
            left_out={str(cell): why for cell, why in self._left_out().items()},
            gave_the_same=sum(self.comparison.undecided.values()),
            not_run=sum(not ran for ran in self.comparison.undecided.values()),
        )


def largest_first(cells: Sequence[Compared]) -> list[Compared]:
    """Return cells in the order in which a person looks at them: by kind, then by how large the difference is."""
    return sorted(cells, key=lambda each: (KINDS.index(each.kind), -extent(each.base, each.head)))


def _details(group: Group) -> Iterator[str]:
    """Yield which tensors and operators of the cause's specimen differ, where that says more than its title."""
    member = group.specimen
    details = [edit.line for edit in member.edits if edit.detail]
    if details:
        yield f"in {member.proposal.cell}:"
        yield from (f"  {detail:.{DETAIL}}" for detail in details[:SHOWN_DETAILS])
        if len(details) > SHOWN_DETAILS:
            yield f"  … {count(len(details) - SHOWN_DETAILS, 'more difference')}"


def of_cells(cells: Sequence[Compared], most: int = SHOWN_CELLS) -> Iterator[str]:
    """Yield a line for each of the first of some cells, and how many more there are."""
    for each in cells[:most]:
        yield f"{each.cell}: {shown(each.base, each.head)}".rstrip(": ")
    if len(cells) > most:
        yield f"… {len(cells) - most} more"


def _change(old: float | None, new: float | None, form: str) -> str:
    """Return a figure before and after; once where it is the same.

    >>> _change(4068, 3940, ","), _change(0, 0, ","), _change(None, 12.345, ".1f")
    ('4,068 -> 3,940', '0', '- -> 12.3')
    """
    before, after = ("-" if value is None else format(value, form) for value in (old, new))
    return before if before == after else f"{before} -> {after}"


def quantities(each: Compared) -> Mapping[str, tuple[int | None, int | None]]:
    """Return the quantities of a cell on both sides; None where there is no program."""
    old, new = (measured(side.record.inventory) if side.record else {} for side in (each.base, each.head))
    return {name: (old.get(name), new.get(name)) for name in QUANTITIES if name in old or name in new}


def asked_for(allow: str, require: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Read ``--allow renames,order`` and ``--require reached``; raise ValueError."""
    allowed, required = (tuple(filter(None, map(str.strip, each.split(",")))) for each in (allow, require))
    for option, named, names in (("allow", allowed, ALLOWED), ("require", required, outcome.REQUIRED)):
        if unknown := [name for name in named if name not in names]:
            raise ValueError(f"--{option}: {unknown[0]!r} is not one of {', '.join(names)}")
    if UNREACHED in allowed and outcome.REACHED in required:
        raise ValueError("--allow unreached contradicts --require reached: leave one of them out")
    return tuple(ALLOWED[name] for name in allowed), required

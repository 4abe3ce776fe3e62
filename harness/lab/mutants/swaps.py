"""``python -m lab swaps``: what `goldens compare` says of names that are swapped, by two names and nothing else.

In one function, one read of a name becomes that of another name of its type (`lab.mutants.swapping`). A seed draws the
functions, with the same share for each kind of owner, of those that the map of reach has. What was drawn is
``swaps.tsv``, where a person has read which swaps can change no program. Each is laid over its release and
compared as `lab.mutants.recall` does: ``goldens compare 1.5.1 "1.5.1 + DIR" --first``.
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import itertools
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from executorch_goldens.cli import SAME
from executorch_goldens.errors import UsageError
from executorch_goldens.settings.config import load
from executorch_goldens.toolchains.toolchain import Toolchain
from executorch_goldens_plugins.compare.reach import code
from executorch_goldens_plugins.compare.reach import map as maps
from executorch_goldens_plugins.compare.reach.map import ReachMap
from lab import GOLDENS, markdown, tables
from lab.mutants import recall
from lab.mutants.mechanical import PLACES, drawing
from lab.mutants.mutant import Edit
from lab.mutants.recall import REACHED, SEEN, UNREACHED
from lab.mutants.swapping import Use, uses

#: Of the drawing, and how many swaps each place has in it.
SEED = 1
SHARE = 20
#: The release that is edited, and what was drawn of it.
RELEASE = "1.5.1"
DRAWN = Path(__file__).with_name("swaps.tsv")
KEPT = Path("build/swaps")
SAID = (SEEN, REACHED, UNREACHED)
#: Committed results, of which a part of docs/history.md is made.
COMMITTED = Path(__file__).parent / "history" / "kept" / "swaps"


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("swaps", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these swaps; wildcards")
    parser.add_argument("--draw", action="store_true", help="write what the seed draws, and compare nothing")
    recall.add_session(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare each swap that has no result yet and is not equivalent; print what became of all."""
    packages = Toolchain.from_name(RELEASE, load()).site_packages
    if options.draw:
        write(packages)
        return SAME
    names, every = options.names or ["*"], [each for each in read() if not each.equivalent]
    wanted = [each for each in every if any(fnmatch.fnmatch(each.name, name) for name in names)]
    if not wanted:
        raise UsageError(f"no swap is named {' or '.join(names)}")
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = KEPT / f"{RELEASE}.jsonl"
    laid = {swap.name: functools.partial(recall.lay, [swap.edit(packages)], packages) for swap in wanted}
    recall.laid_over(laid, RELEASE, KEPT / RELEASE, kept, options)
    comparable = [each.name for each in every]
    number = Counter(each["result"] for each in recall.results(kept) if each["name"] in comparable)
    print(", ".join(f"{number[each]} {each}" for each in SAID), f"of {len(every)}")
    if options.update:
        recall.accept(kept, COMMITTED, comparable)
    return SAME


@dataclass(frozen=True)
class Swap:
    """A name that is read where another was.

    Attributes
    ----------
    name
        Its place, one of `PLACES`, and its number there.
    function
        ``module:qualified.name``.
    line, column
        Of the name in its file, from 1 and from 0.
    code
        The line, with its spaces as one each.
    old, new
        The names.
    cells
        How many cells of the map run the statement.
    equivalent
        Why no program can change by it; empty where one can.
    """

    name: str
    function: str
    line: int
    column: int
    code: str
    old: str
    new: str
    cells: int
    equivalent: str = ""

    @property
    def place(self) -> str:
        return self.name.partition("-")[0]

    def edit(self, packages: Path) -> Edit:
        """Return the edit of installed sources: of the line, and of those after it until its text is there once.

        Raises
        ------
        UsageError
            Where the line is not what was drawn.
        """
        module, _, name = self.function.partition(":")
        file = packages.joinpath(*module.split("."))
        text = (file / "__init__.py" if file.is_dir() else file.with_suffix(".py")).read_text(
            encoding="utf-8"
        )
        lines = text.splitlines(keepends=True)
        line = lines[self.line - 1]
        if " ".join(line.split()) != self.code:
            raise UsageError(f"{file} has in line {self.line} not {self.code!r}")
        function = code.module(text).functions[name]
        after = f"{line[: self.column]}{self.new}{line[self.column + len(self.old) :]}"
        for last in range(self.line, function.last + 1):
            rest = "".join(lines[self.line : last])
            if "".join(lines[function.first - 1 : function.last]).count(line + rest) == 1:
                return Edit(self.function, line + rest, after + rest)
        raise UsageError(f"{self.function} has the lines from {self.line} on twice")


COLUMNS = tuple(Swap.__dataclass_fields__)


#: A line of code, the place of a name in it, and how many cells of the map run its statement.
Found = tuple[str, Use, int]


def every_use(packages: Path, known: ReachMap) -> dict[str, list[Found]]:
    """Return what can be swapped in functions that the map has, by place."""
    found: dict[str, list[Found]] = {place: [] for place in PLACES}
    for file in drawing.files(packages / "executorch"):
        found[drawing.place_of(file)] += _lowering(file, packages, known)
    return found


def draw(every: Mapping[str, Sequence[Found]], seed: int = SEED, share: int = SHARE) -> list[Swap]:
    """Return the swaps of a seed, one of each place in turn; no function has two."""
    by_place = [list(itertools.islice(_drawn(place, found, seed), share)) for place, found in every.items()]
    return [each for row in itertools.zip_longest(*by_place) for each in row if each is not None]


def _lowering(file: str, packages: Path, known: ReachMap) -> Iterator[Found]:
    text = (packages / "executorch" / file).read_text(encoding="utf-8")
    functions, lines = code.module(text).functions, text.splitlines()
    for use in uses(text):
        function = functions[use.function]
        mapped = known.function(f"executorch/{file}", use.function, function.digest)
        *_, statement = [None, *(each for each in function.statements if each.first <= use.line <= each.last)]
        if mapped is not None and statement is not None and not statement.raises:
            first = statement.first - function.first + mapped.first
            module = f"executorch.{file.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__")
            where = replace(use, function=f"{module}:{use.function}")
            yield " ".join(lines[use.line - 1].split()), where, len(known.cells_at(mapped, {first}))


def _drawn(place: str, found: Sequence[Found], seed: int) -> Iterator[Swap]:
    chance = random.Random(f"{seed} {place}")
    taken: set[str] = set()
    for line, use, cells in chance.sample(found, len(found)):
        new = chance.choice(use.others)
        if use.function not in taken:
            taken.add(use.function)
            name = f"{place}-{len(taken):02}"
            yield Swap(name, use.function, use.line, use.column, line, use.old, new, cells)


def read() -> list[Swap]:
    """Return what was drawn, and read."""
    return [msgspec.convert(row, Swap, strict=False) for row in tables.read(DRAWN, COLUMNS)]


def write(packages: Path) -> None:
    """Write what the seed draws; what a person has read of it stays."""
    was = {(each.function, each.code, each.old, each.new): each.equivalent for each in read()}
    drawn = draw(every_use(packages, maps.read(GOLDENS / RELEASE / maps.FILE)))
    kept = (
        replace(each, equivalent=was.get((each.function, each.code, each.old, each.new), ""))
        for each in drawn
    )
    tables.write(DRAWN, COLUMNS, map(asdict, kept))


def lines() -> Iterator[str]:
    """Yield the part of docs/history.md about swaps."""
    drawn, found = read(), {each["name"]: each for each in recall.results(COMMITTED / f"{RELEASE}.jsonl")}
    yield "## Swapped names"
    yield ""
    yield f"In {len(drawn)} functions of {RELEASE}, drawn by a seed with the same share for each place, one read of a"
    yield "name becomes that of another name of its type, which is bound there, as one dimension for the other. Each is"
    yield "compared by two names, but for those that can change no program: `harness/lab/mutants/swaps.tsv` has why."
    yield "Written by `nox -s lab -- swaps --update`."
    if found:
        yield ""
        yield f"{'; '.join(recall.minutes([*found.values()]))}."
    yield ""
    yield from markdown.head(("place", "drawn", "in no cell of the map", "equivalent", *SAID, "not compared"))
    for place in (*PLACES, ""):
        yield _row(place, [each for each in drawn if each.place == (place or each.place)], found)
    unseen = [each for each in drawn if found.get(each.name, {"result": SEEN})["result"] != SEEN]
    if unseen:
        yield ""
        yield from markdown.head(("not seen", "in", "line", "read instead", "said", "cells", "seconds"))
    for each in unseen:
        result = found[each.name]
        cells, seconds = str(result.get("cells", 0)), str(result["seconds"])
        name = each.function.rpartition(":")[2]
        yield markdown.row(
            (
                each.name,
                name,
                f"`{each.code}`",
                f"`{each.new}`, not `{each.old}`",
                result["result"],
                cells,
                seconds,
            )
        )


def _row(place: str, drawn: Sequence[Swap], found: Mapping[str, Mapping[str, Any]]) -> str:
    said = Counter(found[each.name]["result"] for each in drawn if each.name in found)
    equivalent = sum(bool(each.equivalent) for each in drawn)
    unmapped = sum(not each.cells for each in drawn)
    numbers = (len(drawn), unmapped, equivalent, *(said[each] for each in SAID))
    return markdown.row((place or "all", *map(str, numbers), str(len(drawn) - equivalent - said.total())))

"""Words for many cells: how many have each verdict, how exact they are, and what was not checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.files.wording import count, some
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.results.rows import ALLOWED, KNOWN
from executorch_goldens.words.findings import NOT_JUDGED, NOT_RUN
from executorch_goldens.zoo.registry import FAILS, UNDELEGATED

#: Cells that a line names, and those that a count does.
SHOWN_CELLS, COUNTED_CELLS = 20, 3


def exactness(found: Mapping[Cell, Accuracy], of: str = "exactness") -> Iterator[str]:
    """Yield one line: how near to eager the worst of the right programs is, and the least SQNR.

    >>> one, other = Cell("tosa-int", "a"), Cell("tosa-fp", "b")
    >>> list(exactness({one: Accuracy(0.007, 0.01, 0.7, 41.25), other: Accuracy(2e-8, 1e-6, 0.02)}))
    ['exactness: at worst 0.7 of the tolerance (tosa-int/a: 0.007 of the largest value), SQNR 41.2 dB (tosa-int/a)']
    """
    if not found:
        return
    worst = max(found, key=lambda cell: found[cell].used)
    most = f"{worst}: {found[worst].error:.2g} of the largest value"
    ratios = {cell: each.sqnr for cell, each in found.items() if each.sqnr is not None}
    least = min(ratios, key=lambda cell: ratios[cell], default=None)
    sqnr = f", SQNR {ratios[least]:.1f} dB ({least})" if least is not None else ""
    yield f"{of}: at worst {found[worst].used:.2g} of the tolerance ({most}){sqnr}"


def counts(found: Iterable[tuple[str, str]]) -> str:
    """Return how many cells have each verdict, of (verdict, `kind_of_new`); kinds of new cells come last.

    >>> counts([("stable", ""), ("new", ""), ("stable", "")])
    '2 stable, 1 new'
    >>> counts([("new", ""), ("new", "FAILURE"), ("stable", ""), ("new", "NO DELEGATE")])
    '1 stable, 3 new (1 FAILURE, 1 NO DELEGATE)'
    """
    pairs = list(found)
    number = Counter(verdict for verdict, _ in pairs)
    kinds = Counter(kind for _, kind in pairs)
    named = ", ".join(f"{kinds[kind]} {kind}" for kind in (FAILS, UNDELEGATED) if kinds[kind])
    if named:
        number["new"] = number.pop("new")
    # A verdict is an adjective, these are nouns.
    words = [
        count(each, name) if name in (KNOWN, ALLOWED) else f"{each} {name}" for name, each in number.items()
    ]
    counted = ", ".join(words) or "no cell was checked"
    return f"{counted} ({named})" if named else counted


def named(cells: Iterable[Cell]) -> str:
    """Return the cells behind their count; -v lists those of each reason.

    >>> named([Cell("tosa-fp", "one")]), named(Cell("tosa-fp", name) for name in "abcde")
    ('(tosa-fp/one)', '(tosa-fp/a, tosa-fp/b, tosa-fp/c and 2 more: -v lists all)')
    """
    names = list(map(str, cells))
    return f"({some(names, COUNTED_CELLS)}{': -v lists all' if len(names) > COUNTED_CELLS else ''})"


def not_judged(why: Mapping[Cell, str], most: int = SHOWN_CELLS) -> Iterator[str]:
    """Yield a line per reason for which programs were not run: nothing says that these are right.

    >>> cells = [Cell("tosa-fp", name) for name in ("one", "two")]
    >>> list(not_judged(dict.fromkeys(cells, "nothing runs a delegate")))
    ['not judged: 2 cells, not run: nothing runs a delegate (tosa-fp/one, tosa-fp/two)']
    """
    for reason in dict.fromkeys(why.values()):
        cells = [str(cell) for cell, its in why.items() if its == reason]
        yield f"{NOT_JUDGED}: {count(len(cells), 'cell')}, {NOT_RUN} {reason} ({some(cells, most)})"


def looked_into(unseen: Mapping[Cell, str | None]) -> Iterator[str]:
    """Yield the cells whose operators are to be judged one by one, and were not all seen.

    >>> cells = [Cell("tosa-fp", name) for name in ("one", "two", "three")]
    >>> list(looked_into(dict(zip(cells, ("", "lowered_module_0: it ends", None)))))
    ['operators: not all seen in 1 of 2 cells that need it: tosa-fp/two (lowered_module_0: it ends)']
    """
    asked = {cell: why for cell, why in unseen.items() if why is not None}
    if named := [f"{cell} ({why})" for cell, why in asked.items() if why]:
        yield f"operators: not all seen in {len(named)} of {len(asked)} cells that need it: {', '.join(named)}"


def held_to_nothing(found: Mapping[Cell, str], most: int = SHOWN_CELLS) -> Iterator[str]:
    """Yield what of each program nothing checks.

    >>> list(held_to_nothing({Cell("built", "app"): "method decode"}))
    ['unchecked: built/app: method decode']
    """
    yield from (f"unchecked: {cell}: {what}" for cell, what in [*found.items()][:most])
    if len(found) > most:
        yield f"unchecked: {count(len(found) - most, 'more cell')}; their manifests say what"


def stale(path: Path) -> str:
    return f"stale: {path}: a golden with no matching cell; if its case is gone, delete the file"

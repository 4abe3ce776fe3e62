"""What exports of a release reach, from its map: harness/lab/docs/coverage/<release>-reach.md."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from executorch_goldens.artifact import Cell
from executorch_goldens.running import core
from executorch_goldens.settings import releases
from executorch_goldens_plugins.compare.reach import map as maps
from executorch_goldens_plugins.compare.reach.map import MappedFunction, ReachMap
from lab import GOLDENS
from lab.pages import Part
from lab.reach import why
from lab.reach.owners import Counts, Owner, bits, owned
from lab.reach.why import OPEN, Explained, Reasons

#: The kind of what has no reason.
UNREAD = "not read"
CORRECTED = "; the reasons like theirs were corrected"
#: The sources of a release.
UPSTREAM = "https://github.com/pytorch/executorch/blob/v{release}/{file}"


def parts() -> Iterator[Part]:
    """Yield the page of each release that has a map."""
    for release in releases.load().releases:
        if (GOLDENS / release / maps.FILE).exists():
            yield Part(
                f"harness/lab/docs/coverage/{release}-reach.md", "", functools.partial(_committed, release)
            )


def _committed(release: str) -> Iterator[str]:
    folder = GOLDENS / release
    return page(maps.read(folder / maps.FILE), core.read(folder / core.FILE), _reasons())


@functools.cache
def _reasons() -> Reasons:
    reading = why.read()
    read_from = maps.read(GOLDENS / reading.release / maps.FILE)
    return Reasons(reading, read_from, left_of(read_from))


def page(known: ReachMap, of_core: Collection[Cell], reasons: Reasons) -> Iterator[str]:
    """Yield the lines of the page.

    Parameters
    ----------
    of_core
        Cells of the release's core.
    """
    owners, left = owned(known), left_of(known)
    explained = {owner: reasons.by_reason(owner, counts) for owner, counts in left.items()}
    cannot = {owner: _cannot(by_reason) for owner, by_reason in explained.items()}
    every = [function for functions in owners.values() for function in functions]
    by_core = bits(number for number, each in enumerate(known.cells) if each.cell in of_core)
    by_any = bits(range(len(known.cells)))
    yield from (
        f"# Reach of exports of ExecuTorch {known.release}",
        "",
        f"Made from the [map](../instruments.md#reach) of {known.made}, by `nox -s lab -- pages --update`: statements",
        "of functions that partition, quantize, rewrite and serialize, which a program that lowers may run. An `if`",
        "without `else` counts once more, where it is false. Of files outside of the two backends, those count of",
        "which something ran.",
        "",
        "| exports of | cells | statements reached |",
        "|---|---:|---:|",
        f"| the core | {by_core.bit_count()} | {Counts(every, by_core)} |",
    )
    for number, source in enumerate(known.sources):
        cells = bits(at for at, each in enumerate(known.cells) if each.source == number)
        yield f"| `{source}` | {cells.bit_count()} | {Counts(every, cells)} |"
    whole = Counts(every, by_any)
    yield f"| any of these, of {whole.statements} | {by_any.bit_count()} | {whole} |"
    can = whole.statements - sum(cannot.values())
    yield f"| any of these, of {can} that can run | {by_any.bit_count()} | {whole.share(can)} |"
    yield from ("", "| backend | what | statements | core | any cell | can run | any cell, of these |")
    yield "|---|---|---:|---:|---:|---:|---:|"
    groups = _groups(owners)
    for (backend, kind), within in groups.items():
        functions = [function for owner in within for function in owners[owner]]
        counts = Counts(functions, by_any)
        can = counts.statements - sum(cannot[owner] for owner in within)
        core_of = Counts(functions, by_core)
        yield f"| {backend} | {kind} | {counts.statements} | {core_of} | {counts} | {can} | {counts.share(can)} |"
    yield from _kinds(known.release, reasons, explained)
    yield from _longest(known.release, explained)
    for (backend, kind), within in groups.items():
        yield from ("", f"## {backend}: {kind}", "")
        yield from (
            "| owner | statements | core | any | functions without a cell |",
            "|---|---:|---:|---:|---|",
        )
        for owner in within:
            counts = left[owner]
            without = ", ".join(
                f"`{_short(each)}`" for each, missing in counts.missing.items() if missing == each.statements
            )
            by = Counts(owners[owner], by_core).reached
            yield f"| {owner.name} | {counts.statements} | {by} | {counts.reached} | {without} |"


def _groups(owners: Iterable[Owner]) -> dict[tuple[str, str], list[Owner]]:
    found: dict[tuple[str, str], list[Owner]] = {}
    for owner in sorted(owners, key=lambda each: (each.backend, each.kind, each.file, each.name)):
        found.setdefault((owner.backend, owner.kind), []).append(owner)
    return found


def left_of(known: ReachMap) -> dict[Owner, Counts]:
    """Return what any cell reaches of each owner."""
    by_any = bits(range(len(known.cells)))
    return {owner: Counts(functions, by_any) for owner, functions in owned(known).items()}


def _cannot(by_reason: Explained) -> int:
    """Return the number of statements of an owner that cannot run."""
    return sum(_count(of) for reason, of in by_reason.items() if reason is not None and reason.kind != OPEN)


def _count(functions: Mapping[MappedFunction, Sequence[int]]) -> int:
    return sum(map(len, functions.values()))


def _kinds(release: str, reasons: Reasons, explained: Mapping[Owner, Explained]) -> Iterator[str]:
    """Yield what no cell reaches by the kind of its reason."""
    kinds: Counter[str] = Counter()
    for by_reason in explained.values():
        for reason, functions in by_reason.items():
            kinds[reason.kind if reason is not None else UNREAD] += _count(functions)
    yield from ("", "## Why no cell reaches them", "")
    yield f"Read by hand from the sources of {reasons.release}; [the reasons](../../reach/why.toml)."
    if release != reasons.release:
        yield "Here, one counts for a function that no cell reaches, and for lines of a function with the same code."
    for seed, found in why.verdicts().items() if release == reasons.release else ():
        yield (
            f"[{found.total()}](../../reach/sample.tsv) of those that cannot run, drawn with the seed {seed}, were "
            f"read by hand: {found['cannot']} cannot run, {found['can']} can{CORRECTED if found['can'] else ''}."
        )
    yield from ("", "| kind | what | statements |", "|---|---|---:|")
    for kind, says in {**why.KINDS, UNREAD: "no reason was read"}.items():
        yield f"| {kind} | {says} | {kinds[kind]} |"


def _longest(release: str, explained: Mapping[Owner, Explained]) -> Iterator[str]:
    """Yield the owners with many statements that no cell reaches, a row for each reason."""
    missing = {owner: sum(map(_count, by_reason.values())) for owner, by_reason in explained.items()}
    yield from ("", f"## Owners with more than {why.FEW} statements that no cell reaches", "")
    yield from (
        "Lines are those of the release; at `12-` a condition is never false. A function without lines never runs.",
        "",
    )
    yield from ("| owner | not reached | kind | why | which |", "|---|---:|---|---|---|")
    for owner in sorted(missing, key=lambda each: (-missing[each], each.file, each.name)):
        if missing[owner] <= why.FEW:
            break
        link = UPSTREAM.format(release=release, file=owner.file)
        for reason, functions in sorted(explained[owner].items(), key=lambda each: -_count(each[1])):
            kind, says = (reason.kind, reason.why) if reason is not None else (UNREAD, "")
            which = "; ".join(_missing(each, lines) for each, lines in functions.items())
            yield f"| [{owner.name}]({link}) | {_count(functions)} of {missing[owner]} | {kind} | {says} | {which} |"


def _missing(function: MappedFunction, lines: Sequence[int]) -> str:
    """Return a function's name with the lines that no cell reaches; alone where it reaches none."""
    ordered = sorted(lines, key=lambda each: (each if each >= 0 else -each - 1, each < 0))
    places = (why.place(function, line) for line in ordered if len(lines) < len(function.statements))
    return " ".join((f"`{_short(function)}`", ", ".join(places))).strip()


def _short(function: MappedFunction) -> str:
    return function.name.rpartition(".")[2]

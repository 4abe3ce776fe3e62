"""Groups the differences of all cells by change, and writes the report."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.diff.difference import of_inventories
from executorch_goldens.diff.edits import KINDS, Constants, Operators
from executorch_goldens.files.wording import count
from executorch_goldens.goldens import accuracy, golden
from executorch_goldens.goldens.decisions import Decisions
from executorch_goldens.goldens.golden import GoldenError
from executorch_goldens.goldens.inventory import Inventory, InventoryError
from executorch_goldens.goldens.quantities import QUANTITIES, measured, sqnr

#: An entry names at most this many of its cells.
SHOWN_CELLS = 4


@dataclass
class Entry:
    """One thing that changed.

    Attributes
    ----------
    kind
        The section it belongs to, see `KINDS`.
    cells
        Each cell that shows it, with what it shows of it.
    operator
        The operator that it is of; empty for none.
    """

    kind: str
    what: str
    cells: dict[Cell, str] = field(default_factory=dict)
    operator: str = ""


@dataclass
class Drift:
    """Differences between two releases.

    Attributes
    ----------
    entries
        Entries by section, those with most cells first.
    common, same
        Cells that both releases have, and those of them that differ in nothing but names and order.
    quantities
        Cell to its quantities before and after; see `executorch_goldens.goldens.quantities`.
    sqnr
        Cell to its ratio of signal to quantization noise before and after, in dB, where both goldens have recorded it.
    outside
        Nodes outside of delegates, and operators in them, before and after, over the cells that lower on both.
    versions
        Changed versions of formats and serializers, with the number of cells.
    """

    before: str
    after: str
    entries: list[Entry]
    common: list[Cell]
    same: list[Cell]
    quantities: dict[Cell, tuple[dict[str, int], dict[str, int]]]
    outside: tuple[Counter[str], Counter[str]]
    versions: Counter[str]
    sqnr: dict[Cell, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def between(cls, root: Path, before: str, after: str, pattern: str = "*") -> Drift:
        """Compare the goldens of two releases under `root`."""
        found = []
        for version in (before, after):
            defects = Decisions.of_root(root, version).defects
            known = {name: str(defect) for name, defect in defects.items()}
            found.append((version, inventories(root / version, known, pattern)))
        return cls.from_inventories(*found)

    @classmethod
    def from_inventories(
        cls, one: tuple[str, Mapping[Cell, Inventory]], other: tuple[str, Mapping[Cell, Inventory]]
    ) -> Drift:
        """Compare the inventories of two releases, each given with its version."""
        (before, old), (after, new) = one, other
        common = [cell for cell in old if cell in new]
        entries = _entries(one, other)
        changed = {cell for entry in entries for cell in entry.cells}
        lowering = [cell for cell in common if not (old[cell].failure or new[cell].failure)]
        ratios = {cell: (sqnr(old[cell]), sqnr(new[cell])) for cell in lowering}
        return cls(
            before,
            after,
            sorted(_merged(entries), key=lambda e: (list(KINDS).index(e.kind), -len(e.cells), e.what)),
            common,
            [cell for cell in common if cell not in changed],
            {cell: (measured(old[cell]), measured(new[cell])) for cell in lowering},
            (_placed(old[cell] for cell in lowering), _placed(new[cell] for cell in lowering)),
            Counter(change for cell in lowering for change in _versions(old[cell], new[cell])),
            {cell: (had, has) for cell, (had, has) in ratios.items() if had is not None and has is not None},
        )

    def markdown(self) -> Iterator[str]:
        """Yield the lines of the report; the summary comes first."""
        yield f"# From ExecuTorch {self.before} to {self.after}"
        yield ""
        yield (
            f"{len(self.common)} cells in both releases: {len(self.same)} are the same apart from names and order, "
            f"{len(self.common) - len(self.same)} differ."
        )
        yield ""
        sections = {
            each.section: entries
            for kind, each in KINDS.items()
            if (entries := [entry for entry in self.entries if entry.kind == kind])
        }
        for title, entries in sections.items():
            cells = {cell for entry in entries for cell in entry.cells}
            first = f"; most common: {entries[0].what}" if len(entries) > 1 else f": {entries[0].what}"
            entered = "" if len(entries) == 1 else f", {len(entries)} entries"
            yield f"- **{title}**: {count(len(cells), 'cell')}{entered}{first}"
        yield from (f"- {line}" for line in self._figures())
        for title, entries in sections.items():
            yield from ("", f"## {title}", "")
            yield from (f"- {entry.what} ({_cells(entry)})" for entry in entries)

    def _figures(self) -> Iterator[str]:
        if not self.quantities:
            return
        for key, words in QUANTITIES.items():
            yield f"{words}: {_summed(self.both(key))}"
        if self.sqnr:
            yield f"SQNR of the worst output: {_ratios(self.sqnr)}"
        shares = [100 * placed["delegated"] / max(1, placed.total()) for placed in self.outside]
        yield f"operators in delegates: {shares[0]:.1f}% before, {shares[1]:.1f}% after"
        for change, cells in sorted(self.versions.items()):
            yield f"version in payloads: {change} ({count(cells, 'cell')})"

    def summed(self, key: str) -> tuple[int, int]:
        """Return a quantity before and after, over the cells that lower on both: one of `QUANTITIES`."""
        old, new = (sum(pair[side] for pair in self.both(key).values()) for side in (0, 1))
        return old, new

    def both(self, key: str) -> dict[Cell, tuple[int, int]]:
        """Return a quantity of each cell before and after, where both goldens have recorded it."""
        pairs = self.quantities.items()
        return {cell: (old[key], new[key]) for cell, (old, new) in pairs if key in old and key in new}


def inventories(folder: Path, known: Mapping[str, str], pattern: str = "*") -> dict[Cell, Inventory]:
    """Read every golden in a release's folder; `known` says what is wrong with cells that have none."""
    found = {}
    for cell in golden.recorded(folder):
        place = golden.file_of(folder, cell)
        try:
            if Path(str(cell)).match(pattern) and (record := golden.read(place)) is not None:
                found[cell] = record.inventory
        except InventoryError as error:
            raise GoldenError(place, str(error), "Record it again.") from error
    defects = {Cell.named(name): Inventory(defect) for name, defect in known.items()}
    found |= {cell: defect for cell, defect in defects.items() if Path(str(cell)).match(pattern)}
    return dict(sorted(found.items()))


def _entries(
    one: tuple[str, Mapping[Cell, Inventory]], other: tuple[str, Mapping[Cell, Inventory]]
) -> Collection[Entry]:
    """Return the differences between the inventories of two releases, in the order of discovery."""
    (before, old), (after, new) = one, other
    found: dict[object, Entry] = {}
    for cell in old:
        for edit in of_inventories(old[cell], new[cell]) if cell in new else ():
            what, shown = edit.entry
            operator = edit.operator if isinstance(edit, Operators | Constants) else ""
            key = (edit, edit.own if edit.by_values else ())
            found.setdefault(key, Entry(edit.kind, what, operator=operator)).cells[cell] = shown
    for version, ones, others in ((before, old, new), (after, new, old)):
        alone = {cell: "" for cell in ones if cell not in others}
        if alone:
            found[version] = Entry("cells", f"only on {version}", alone)
    return found.values()


def _versions(old: Inventory, new: Inventory) -> Iterator[str]:
    """Yield the versions of formats and serializers that differ."""
    for name, version in old.versions.items():
        if new.versions.get(name, version) != version:
            yield f"{name} {version} -> {new.versions[name]}"


def _placed(readings: Iterable[Inventory]) -> Counter[str]:
    placed: Counter[str] = Counter()
    for each in readings:
        placed["delegated"] += each.operators.total()
        placed["outside"] += each.outside.total()
    return placed


def _summed(quantity: Mapping[Cell, tuple[int, int]]) -> str:
    """Say how a quantity changed over all cells, in how many, and where most.

    >>> _summed({Cell("tosa-fp", "a"): (10, 30), Cell("tosa-fp", "b"): (90, 90)})
    '100 -> 120 (+20.0%): more in 1 cell, most in tosa-fp/a (10 -> 30)'
    """
    old, new = (sum(pair[side] for pair in quantity.values()) for side in (0, 1))
    ways = []
    for way, sign in (("more", 1), ("less", -1)):
        moved = {cell: sign * (after - before) for cell, (before, after) in quantity.items()}
        moved = {cell: by for cell, by in moved.items() if by > 0}
        if moved:
            furthest = max(moved, key=lambda cell: (moved[cell] / max(1, quantity[cell][0]), str(cell)))
            before, after = quantity[furthest]
            ways.append(f"{way} in {count(len(moved), 'cell')}, most in {furthest} ({before:,} -> {after:,})")
    change = f" ({100 * (new / old - 1):+.1f}%)" if old and old != new else ""
    return f"{old:,} -> {new:,}{change}" + (f": {'; '.join(ways)}" if ways else "")


def _ratios(sqnr: Mapping[Cell, tuple[float, float]]) -> str:
    """Say in how many cells a ratio in dB fell or rose by more than a machine may change it, and where most.

    >>> _ratios({Cell("tosa-int", "a"): (41.3, 20.0), Cell("tosa-int", "b"): (30.0, 30.4)})
    'lower by more than 0.5 dB in 1 cell of 2, most in tosa-int/a (41.3 -> 20.0 dB)'
    """
    ways = []
    for way, sign in (("lower", -1), ("higher", 1)):
        moved = {
            cell: sign * (new - old)
            for cell, (old, new) in sqnr.items()
            if accuracy.fell(*((old, new) if sign < 0 else (new, old)))
        }
        if moved:
            furthest = max(moved, key=lambda cell: (moved[cell], str(cell)))
            old, new = sqnr[furthest]
            ways.append(
                f"{way} by more than {accuracy.STEP:g} dB in {count(len(moved), 'cell')} of {len(sqnr)}, most in "
                f"{furthest} ({old:.1f} -> {new:.1f} dB)"
            )
    return "; ".join(ways) or f"within {accuracy.STEP:g} dB in {count(len(sqnr), 'cell')}"


def _cells(entry: Entry) -> str:
    named = [f"{cell}{f': {shown}' if shown else ''}" for cell, shown in entry.cells.items()]
    rest = len(named) - SHOWN_CELLS
    more = f"; {rest} more" if rest > 0 else ""
    number = f"{count(len(named), 'cell')}: " if len(named) > 1 else ""
    return f"{number}{'; '.join(named[:SHOWN_CELLS])}{more}"


def _merged(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield entries, merging those of one kind that the same cells show: they have one cause."""
    groups: dict[tuple[str, frozenset[Cell]], list[Entry]] = defaultdict(list)
    for entry in entries:
        separate = entry.what if KINDS[entry.kind].separate else ""
        groups[entry.kind + separate, frozenset(entry.cells)].append(entry)
    for group in groups.values():
        first = group[0]
        if len(group) == 1:
            yield first
        else:
            group.sort(key=lambda entry: entry.what)
            shown = {
                cell: ", ".join(f"{each.operator} {each.cells[cell]}" for each in group if each.cells[cell])
                for cell in first.cells
            }
            yield Entry(first.kind, "; ".join(entry.what for entry in group), shown)

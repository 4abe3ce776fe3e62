"""``python -m harness drift``: what changed from one release to another, from the goldens alone.

Every cell that both releases have is read into facts: whether it lowers, its delegates, their operators, attributes and
constants, what stays outside of them, the program's size. What differs is gathered by what it is, not by where: one
cause is one entry with the cells that show it.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import golden, releases
from harness.artifact import Cell
from harness.cli import SAME, CommandError
from harness.failures import GOLDENS, cause
from harness.structure import AttributeChanged, BoundaryChanged, EdgeRewired, compare
from harness.structure.changes import Change
from harness.structure.outline import Outline, OutlineGraph, outline

EXAMPLES = """\
examples:
  python -m harness drift 1.3.1 1.4.1
  python -m harness drift 1.3.1 1.4.1 --json | jq '.entries[0]'
  python -m harness drift 1.3.1 1.4.1 --cell 'tosa-int/*'
"""
#: Kinds whose entries stay apart, whatever cells show them: each is a cause of its own.
SEPARATE = frozenset({"fails", "lowers", "gone", "delegates", "wiring", "cells"})
#: Cells that an entry names.
SHOWN_CELLS = 4
#: Values of an attribute, and entries of a kind, that are shown.
SHOWN_VALUES = 4
#: Attributes that number things: another numbering is no change.
NUMBERS = frozenset({"constant_data", "external_id", "debug_handle", "quantization.scale_buffer_idx"})

_CALLED = re.compile(r"call_function\[target=([\w.]+)\]")
#: What the graph around delegates is made of in any case.
_GLUE = ("executorch_call_delegate", "operator.getitem")
_PTE = re.compile(r"pte: (\d+) bytes")


#: Operator, operand and dtype that a constant is for.
_Use = tuple[str, str, str]
#: Type, digest and first values of a constant.
_Held = tuple[str, str, str]
#: Kind, what changed, and what one cell shows of it.
_Difference = tuple[str, str, str]


@dataclass(frozen=True)
class Reading:
    """What a golden says of a cell.

    Attributes
    ----------
    failure
        Why there is no program: the failure to lower, or the known defect; None if there is one.
    delegates
        Their number, by backend.
    operators
        Of all delegates, by type.
    attributes
        (operator, attribute) to how often it has which value.
    constants
        What they are for, to what they are and hold.
    outside
        Operators of the lowered graph that no delegate took.
    size
        Of the ``.pte``, in bytes.
    payloads
        Text of each delegate, by the name of its file.
    versions
        What payloads say of the format and the serializer that they are written in and with.
    """

    failure: str | None
    delegates: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    attributes: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    constants: dict[_Use, Counter[_Held]] = field(default_factory=dict)
    outside: Counter[str] = field(default_factory=Counter)
    size: int = 0
    payloads: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


@dataclass
class Entry:
    """One thing that changed.

    Attributes
    ----------
    kind
        Section it stands in, see `KINDS`.
    what
        The change, in one line.
    cells
        Each cell that shows it, with what it shows of it.
    """

    kind: str
    what: str
    cells: dict[Cell, str] = field(default_factory=dict)


#: Sections in the order of a reader's interest, with their titles.
KINDS = {
    "fails": "Begins to fail, or to be wrong",
    "lowers": "Ceases to fail, or to be wrong",
    "gone": "Nothing delegated any more",
    "delegates": "Delegates merged or split",
    "outside": "Left to the portable kernels",
    "taken": "Taken into delegates",
    "constants": "Constants of other values",
    "operators": "Operators gained and lost",
    "attributes": "Attributes and shapes",
    "wiring": "The same parts, put together otherwise",
    "cells": "Cells of one release only",
}


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "drift",
        help="tell what changed from one release to another, from the goldens",
        description="Say what changed from release A to release B for the zoo: an entry per cause, with its cells.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("before", metavar="A", help="a release that has goldens")
    parser.add_argument("after", metavar="B", help="another")
    parser.add_argument(
        "--goldens", type=Path, default=GOLDENS, help="root of the goldens (default: the project's)"
    )
    parser.add_argument("--cell", metavar="TARGET/CASE", default="*", help="only these cells; wildcards")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the drift."""
    for version in (arguments.before, arguments.after):
        if not (arguments.goldens / version).is_dir():
            found = sorted(path.name for path in arguments.goldens.glob("*") if path.is_dir())
            raise CommandError(
                f"no goldens of {version!r} under {arguments.goldens}: it has {', '.join(found)}"
            )
    drift = Drift.between(arguments.goldens, arguments.before, arguments.after, arguments.cell)
    if arguments.json:
        print(json.dumps(drift.as_json(), indent=2))
    else:
        print("\n".join(drift.markdown()))
    return SAME


# Reading goldens


def read(folder: Path, known: Mapping[str, releases.KnownDefect], pattern: str = "*") -> dict[Cell, Reading]:
    """Read every golden in a release's folder, and the release's known defects, which have none."""
    readings = {}
    for cell in golden.recorded(folder):
        texts = golden.read(golden.directory(folder, cell))
        if texts is not None:
            readings[cell] = reading(texts)
    for name, defect in known.items():
        target, _, case = name.partition("/")
        readings[Cell(target, case)] = Reading(f"{defect.verdict}: {defect.reason}")
    return {cell: found for cell, found in sorted(readings.items()) if Path(str(cell)).match(pattern)}


def reading(texts: golden.Texts) -> Reading:
    """Return the facts of one golden."""
    if golden.FAILURE in texts:
        where, error = cause(texts[golden.FAILURE])
        return Reading(f"{where}: {error}")
    size = _PTE.search(texts[golden.MANIFEST])
    called = Counter(_CALLED.findall(texts["graph.txt"]))
    found = Reading(
        None,
        outside=Counter({_short(name): count for name, count in called.items() if not name.endswith(_GLUE)}),
        size=int(size[1]) if size else 0,
    )
    for name, text in texts.items():
        if name.startswith("delegate_"):
            found.payloads[name] = text
            _add(found, outline(text))
    return found


def _short(target: str) -> str:
    """Return an operator without the place where its dialect lives.

    >>> _short("executorch.exir.dialects.edge._ops.aten.add.Tensor")
    'aten.add.Tensor'
    """
    return target.removeprefix("executorch.exir.dialects.edge._ops.").removeprefix("torch.ops.")


def _add(found: Reading, delegate: Outline) -> None:
    found.delegates[delegate.kind] += 1
    found.versions.update(
        {f"{delegate.kind} {name}": value for name, value in delegate.facts.items() if "version" in name}
    )
    for graph in delegate.graphs:
        for operator in graph.operators:
            found.operators[operator.type] += 1
            for name, value in operator.attributes.items():
                if name not in NUMBERS:
                    found.attributes.setdefault((operator.type, name), Counter())[value] += 1
        for use, held in _constants(graph):
            found.constants.setdefault(use, Counter())[held] += 1


def _constants(graph: OutlineGraph) -> Iterator[tuple[_Use, _Held]]:
    """Yield what each constant of a graph is for, once for each operand, and what it is and holds."""
    for operator in graph.operators:
        for place, (role, name) in enumerate(operator.inputs):
            value = graph.values.get(name)
            if value is not None and value.contents is not None:
                facts = value.contents.facts
                operand = role if role != "input" else f"input {place}"
                yield (
                    (operator.type, operand, value.type.partition("[")[0]),
                    (value.type, value.contents.sha256, facts.get("values", facts.get("first", ""))),
                )


# Comparing


@dataclass
class Drift:
    """What changed between two releases.

    Attributes
    ----------
    entries
        By section, those with most cells first.
    common, same
        Cells that both releases have, and those of them that differ in names, order or nothing.
    sizes
        Cell to the sizes of its ``.pte`` before and after.
    outside
        Nodes outside of delegates, and operators in them, before and after, over the cells that lower on both.
    versions
        Changes of formats and serializers, with the number of cells.
    """

    before: str
    after: str
    entries: list[Entry]
    common: list[Cell]
    same: list[Cell]
    sizes: dict[Cell, tuple[int, int]]
    outside: tuple[Counter[str], Counter[str]]
    versions: Counter[str]

    @classmethod
    def between(cls, root: Path, before: str, after: str, pattern: str = "*") -> Drift:
        """Compare the goldens of two releases under `root`."""
        matrix = releases.load().releases
        return cls.of(
            *(
                (version, read(root / version, matrix[version].known if version in matrix else {}, pattern))
                for version in (before, after)
            )
        )

    @classmethod
    def of(cls, one: tuple[str, Mapping[Cell, Reading]], other: tuple[str, Mapping[Cell, Reading]]) -> Drift:
        """Compare what was read of two releases, each with its version."""
        (before, old), (after, new) = one, other
        common = [cell for cell in old if cell in new]
        found: dict[tuple[str, str], Entry] = {}
        for cell in common:
            for kind, what, shown in differences(old[cell], new[cell]):
                found.setdefault((kind, what), Entry(kind, what)).cells[cell] = shown
        for version, ones, others in ((before, old, new), (after, new, old)):
            for cell in ones:
                if cell not in others:
                    what = f"only on {version}"
                    found.setdefault(("cells", what), Entry("cells", what)).cells[cell] = ""
        changed = {cell for entry in found.values() for cell in entry.cells}
        lowering = [cell for cell in common if not (old[cell].failure or new[cell].failure)]
        return cls(
            before,
            after,
            sorted(_merged(found.values()), key=lambda e: (list(KINDS).index(e.kind), -len(e.cells), e.what)),
            common,
            [cell for cell in common if cell not in changed],
            {cell: (old[cell].size, new[cell].size) for cell in lowering},
            (_placed(old[cell] for cell in lowering), _placed(new[cell] for cell in lowering)),
            Counter(
                f"{name} {version} -> {new[cell].versions[name]}"
                for cell in lowering
                for name, version in old[cell].versions.items()
                if new[cell].versions.get(name, version) != version
            ),
        )

    def markdown(self) -> Iterator[str]:
        """Yield the report; what matters most stands in its first lines."""
        yield f"# From ExecuTorch {self.before} to {self.after}"
        yield ""
        yield (
            f"{len(self.common)} cells on both: {len(self.same)} hold the same, names and order aside; "
            f"{len(self.common) - len(self.same)} do not."
        )
        yield ""
        for kind, title in KINDS.items():
            entries = [entry for entry in self.entries if entry.kind == kind]
            cells = {cell for entry in entries for cell in entry.cells}
            if entries:
                first = f"; most: {entries[0].what}" if len(entries) > 1 else f": {entries[0].what}"
                count = "" if len(entries) == 1 else f", {len(entries)} entries"
                yield f"- **{title}**: {_number(len(cells))}{count}{first}"
        yield from (f"- {line}" for line in self._figures())
        for kind, title in KINDS.items():
            entries = [entry for entry in self.entries if entry.kind == kind]
            if entries:
                yield from ("", f"## {title}", "")
                yield from (f"- {entry.what} ({_cells(entry)})" for entry in entries)

    def _figures(self) -> Iterator[str]:
        if not self.sizes:
            return
        ratios = {cell: after / before for cell, (before, after) in self.sizes.items()}
        least, most = min(ratios, key=lambda c: ratios[c]), max(ratios, key=lambda c: ratios[c])
        yield (
            f"`.pte` size: median {_percent(statistics.median(ratios.values()))}, from {_percent(ratios[least])} "
            f"({least}) to {_percent(ratios[most])} ({most})"
        )
        shares = [100 * placed["delegated"] / max(1, placed.total()) for placed in self.outside]
        yield f"operators in delegates: {shares[0]:.1f}% before, {shares[1]:.1f}% after"
        for change, count in sorted(self.versions.items()):
            yield f"written in payloads: {change} ({_number(count)})"

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "before": self.before,
            "after": self.after,
            "common": len(self.common),
            "same": [str(cell) for cell in self.same],
            "entries": [
                {
                    "kind": entry.kind,
                    "what": entry.what,
                    "cells": {str(cell): shown for cell, shown in entry.cells.items()},
                }
                for entry in self.entries
            ],
            "pte_bytes": {str(cell): list(sizes) for cell, sizes in self.sizes.items()},
            "placed": [dict(placed) for placed in self.outside],
            "versions": dict(self.versions),
        }


def _placed(readings: Iterable[Reading]) -> Counter[str]:
    placed: Counter[str] = Counter()
    for each in readings:
        placed["delegated"] += each.operators.total()
        placed["outside"] += each.outside.total()
    return placed


def _number(cells: int) -> str:
    return "1 cell" if cells == 1 else f"{cells} cells"


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f}%"


def _cells(entry: Entry) -> str:
    named = [f"{cell}{f': {shown}' if shown else ''}" for cell, shown in entry.cells.items()]
    rest = len(named) - SHOWN_CELLS
    more = f"; {rest} more" if rest > 0 else ""
    count = f"{_number(len(named))}: " if len(named) > 1 else ""
    return f"{count}{'; '.join(named[:SHOWN_CELLS])}{more}"


def differences(old: Reading, new: Reading) -> Iterator[_Difference]:
    """Yield (kind, what, what this cell shows of it) for all in which two readings differ."""
    parts = list(_parts(old, new))
    yield from parts or _wiring(old, new)


def _parts(old: Reading, new: Reading) -> Iterator[_Difference]:
    """Yield the differences of what there is, however it is put together."""
    if old.failure or new.failure:
        if old.failure != new.failure:
            if new.failure:
                yield "fails", new.failure, f"was {old.failure}" if old.failure else ""
            else:
                yield "lowers", str(old.failure), ""
        return
    if old.delegates != new.delegates:
        kind = "delegates" if new.delegates else "gone"
        yield kind, f"{old.delegates.total()} -> {new.delegates.total()} delegates", ""
    for name, change in _changes(old.outside, new.outside):
        yield ("outside" if change > 0 else "taken"), name, f"{change:+d}"
    changes = dict(_changes(old.operators, new.operators))
    for name, change in changes.items():
        yield "operators", f"{name} {'gained' if change > 0 else 'lost'}", f"{change:+d}"
    none: Counter[str] = Counter()
    for key in sorted(old.attributes.keys() | new.attributes.keys()):
        had, has = old.attributes.get(key, none), new.attributes.get(key, none)
        # Where there are more or fewer of an operator, that is told, and not the attributes of those.
        if key[0] not in changes and had != has:
            gone, come = had - has, has - had
            yield "attributes", f"{key[0]}.{key[1]}: {_values(gone)} -> {_values(come)}", ""
    for use in sorted(old.constants.keys() | new.constants.keys()):
        held, holds = old.constants.get(use, Counter()), new.constants.get(use, Counter())
        if held.total() == holds.total() and held != holds:
            yield _constant(use, sorted((held - holds).elements()), sorted((holds - held).elements()))
        elif held != holds and use[0] not in changes:
            yield "attributes", " ".join(use), f"{held.total()} -> {holds.total()} constants"


def _constant(use: _Use, old: Sequence[_Held], new: Sequence[_Held]) -> _Difference:
    """Return how as many constants for one use differ: in their types, or in the first value that does."""
    types, new_types = [type_ for type_, _, _ in old], [type_ for type_, _, _ in new]
    if types != new_types:
        gone, come = Counter(types) - Counter(new_types), Counter(new_types) - Counter(types)
        return "attributes", " ".join(use), f"{min(gone)} -> {min(come)}"
    # TOSA gives as a constant of this type what is an attribute elsewhere: no weight has changed.
    kind = "attributes" if use[2] == "SHAPE" else "constants"
    values = zip(old[0][2].split(), new[0][2].split(), strict=False)
    changed = (f" {before} -> {after}" for before, after in values if before != after)
    return kind, " ".join(use), f"{types[0]}{next(changed, '')}"


def _wiring(old: Reading, new: Reading) -> Iterator[_Difference]:
    """Yield how payloads differ that have the same parts."""
    for name in sorted(old.payloads.keys() & new.payloads.keys()):
        ours, theirs = old.payloads[name], new.payloads[name]
        changes = [change for change in compare(ours, theirs).changes if change.content]
        changes = [change for change in changes if getattr(change, "owner", "") != "payload"]
        if changes:
            ends = {end for graph in outline(theirs).graphs for end in (*graph.inputs, *graph.outputs)}
            if all(_is_of_ends(change, ends) for change in changes):
                yield "wiring", "a delegate's inputs or outputs in another order", ""
            else:
                rewired = [change.operator for change in changes if isinstance(change, EdgeRewired)]
                yield "wiring", "operands from elsewhere", (rewired or [""])[0]
            return


def _is_of_ends(change: Change, ends: set[str]) -> bool:
    """Whether a change is one of the order of a graph's inputs and outputs `ends`."""
    if isinstance(change, EdgeRewired):
        return {change.before, change.after} <= ends
    if isinstance(change, AttributeChanged):
        return change.owner in ends
    return isinstance(change, BoundaryChanged) and change.order_only


def _changes(old: Counter[str], new: Counter[str]) -> Iterator[tuple[str, int]]:
    for name in sorted({*old, *new}):
        if old[name] != new[name]:
            yield name, new[name] - old[name]


def _values(counter: Counter[str]) -> str:
    names = sorted(counter)
    return ", ".join(names[:SHOWN_VALUES]) + (", …" if len(names) > SHOWN_VALUES else "") or "not there"


def _merged(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield entries, those of one kind that the same cells show made one: they have one cause."""
    groups: dict[tuple[str, frozenset[Cell]], list[Entry]] = defaultdict(list)
    for entry in entries:
        separate = entry.what if entry.kind in SEPARATE else ""
        groups[entry.kind + separate, frozenset(entry.cells)].append(entry)
    for group in groups.values():
        first = group[0]
        if len(group) == 1:
            yield first
        else:
            group.sort(key=lambda entry: entry.what)
            shown = {
                cell: ", ".join(f"{e.what.split()[0]} {e.cells[cell]}" for e in group if e.cells[cell])
                for cell in first.cells
            }
            yield Entry(first.kind, "; ".join(entry.what for entry in group), shown)

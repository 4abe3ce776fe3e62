"""Says what the zoo reaches of a release: passes that change a graph, node visitors, operators and their attributes.

``python -m lab coverage`` exports every cell of the installed release once and compares what it saw with two
committed files: the table ``docs/coverage/<release>.md``, and ``<release>-visitors.tsv``, the node visitors of each
cell. ``--update`` writes them. ``nox -s lab -- coverage`` runs it.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import jinja2

from executorch_goldens.artifact import STAGE, Artifact, Cell, Lowered, Outcome
from executorch_goldens.errors import HarnessError
from executorch_goldens.files import untrusted
from executorch_goldens.goldens.golden import decode_delegates
from lab import REPOSITORY

TABLES = REPOSITORY / "docs" / "coverage"
#: Beside the table of a release: the node visitors of each cell.
VISITORS = "{}-visitors.tsv"
#: Why a pass or a visitor is reached on no release, by its name.
UNREACHED = Path(__file__).resolve().parent / "unreached.toml"
#: What `table` fills in.
TEMPLATE = Path(__file__).resolve().parent / "coverage.md.jinja"
#: An attribute with more values than this has them counted, not listed.
SHOWN_VALUES = 6


class CoverageError(HarnessError, ValueError):
    """A committed file of coverage that cannot be read; the message names the line, and the way out."""


@dataclass
class Coverage:
    """What some exports reached.

    Attributes
    ----------
    entered, changed
        (pipeline, pass) to the cells in which it ran, and in which it changed the graph.
    visitors
        ``backend target`` to the cells in which it serialized a node.
    attributes
        (``tosa`` or ``xnnpack``, operator) to attribute to the values it had.
    """

    entered: dict[tuple[str, str], set[Cell]] = field(default_factory=lambda: defaultdict(set))
    changed: dict[tuple[str, str], set[Cell]] = field(default_factory=lambda: defaultdict(set))
    visitors: dict[str, set[Cell]] = field(default_factory=lambda: defaultdict(set))
    attributes: dict[tuple[str, str], dict[str, set[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )

    def add(self, outcome: Outcome) -> None:
        """Count what one export reached; a crash reports nothing that it reached."""
        artifact = outcome.result
        if not isinstance(artifact, Artifact) or artifact.watched is None:
            return
        for run in (run for run in artifact.watched.passes if run.pipeline != STAGE):
            self.entered[run.pipeline, run.name].add(outcome.cell)
            if run.changed:
                self.changed[run.pipeline, run.name].add(outcome.cell)
        for visitor in artifact.watched.visitors:
            self.visitors[visitor].add(outcome.cell)
        if isinstance(artifact.result, Lowered):
            for decoded in decode_delegates(artifact.result):
                for operator in (operator for graph in decoded.graphs for operator in graph.operators):
                    seen = self.attributes[decoded.kind, operator.type]
                    for name, value in operator.attributes.items():
                        seen[name].add(str(value))


def reasons() -> dict[str, str]:
    """Return why a pass or a visitor is not reached, by its name."""
    return {
        name: reason
        for group in tomllib.loads(UNREACHED.read_text(encoding="utf-8")).values()
        for name, reason in group.items()
    }


@dataclass(frozen=True)
class Row:
    """A pass in its pipeline, or a visitor of a backend.

    Attributes
    ----------
    entered, changed
        Number of cells in which a pass ran, and in which it changed the graph; for a visitor, both are the number of
        cells in which it serialized a node.
    example
        One of the cells counted by `changed`, or why there is none.
    """

    name: str
    entered: int
    changed: int
    example: str


@dataclass(frozen=True)
class Section:
    """The passes of a pipeline, or the visitors of a backend."""

    name: str
    rows: tuple[Row, ...]

    @property
    def reached(self) -> str:
        """How many of the rows are reached."""
        return share([row.name for row in self.rows if row.changed], [row.name for row in self.rows])


def table(
    version: str, coverage: Coverage, visitors: Mapping[str, Iterable[str]], why_not: Mapping[str, str]
) -> str:
    """Return the Markdown text of a release's table.

    Parameters
    ----------
    visitors
        The targets that each backend has a visitor for.
    why_not
        Name of a pass or a visitor to the reason that is given where it was not reached.
    """
    entered, changed = (
        {name for pipeline, name in seen if pipeline.startswith("arm ")}
        for seen in (coverage.entered, coverage.changed)
    )
    template = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATE.parent),
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    ).get_template(TEMPLATE.name)
    return template.render(
        version=version,
        arm_passes=share(changed, entered),
        pipelines=_pipelines(coverage, why_not),
        backends=_backends(coverage, visitors, why_not),
        serialized=_serialized(coverage),
    )


#: In a table: a section of passes or of visitors, and a row whose last number is that of the cells.
_SECTION = re.compile(r"^## (?:Passes|Node (?P<visitors>visitors)): (?P<owner>.*)$", re.MULTILINE)
_ROW = re.compile(
    r"^\| (?P<name>\S+) \|(?: \d+ \|)? [1-9]\d* \| (?P<target>\S+)/(?P<case>\S+) \|$", re.MULTILINE
)


def examples(text: str) -> dict[str, Cell]:
    r"""Return the cell that a table names for each pass that changes a graph, and for each visitor that serializes.

    >>> examples("## Passes: exir\n\n| OpReplacePass | 9 | 8 | tosa-fp/linear |\n")
    {'pass exir: OpReplacePass': Cell(target='tosa-fp', case='linear')}
    """
    found = {}
    for section in text.split("\n\n## "):
        head = _SECTION.match(section if section.startswith("#") else f"## {section}")
        if head is not None:
            kind = "visitor" if head["visitors"] else "pass"
            for row in _ROW.finditer(section):
                found[f"{kind} {head['owner']}: {row['name']}"] = Cell(row["target"], row["case"])
    return found


def visits(coverage: Coverage, visitors: Mapping[str, Iterable[str]]) -> str:
    """Return a line for each cell in which one of `visitors` serialized a node: the cell and these, apart by tabs.

    Parameters
    ----------
    visitors
        As for `table`: a patch may bring others.
    """
    by_cell: dict[Cell, list[str]] = defaultdict(list)
    for visitor in sorted(f"{backend} {name}" for backend, names in visitors.items() for name in names):
        for cell in coverage.visitors.get(visitor, ()):
            by_cell[cell].append(visitor)
    return "".join("\t".join((str(cell), *by_cell[cell])) + "\n" for cell in sorted(by_cell))


def committed(file: Path) -> str:
    """Return the text of a file of coverage, empty where a repository has none; raise CoverageError."""
    try:
        return untrusted.text(file)
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise CoverageError(
            f"{file} cannot be read ({error}); bring it back with 'git checkout -- {file}'"
        ) from error


def visited(file: Path) -> dict[str, set[Cell]]:
    """Return the cells of each visitor, ``backend target``, from the text that `visits` made; none without a file.

    Raises
    ------
    CoverageError
        Where the file cannot be read, or a line names no cell.
    """
    found: dict[str, set[Cell]] = defaultdict(set)
    for number, line in enumerate(committed(file).splitlines(), 1):
        name, *visitors = line.split("\t")
        try:
            cell = Cell.named(name)
        except ValueError:
            raise CoverageError(
                f"{file}: line {number} begins with {name!r:.80}, which is no cell; bring it back with "
                f"'git checkout -- {file}'"
            ) from None
        for visitor in visitors:
            found[visitor].add(cell)
    return dict(found)


def _pipelines(coverage: Coverage, why_not: Mapping[str, str]) -> list[Section]:
    """Return the passes of each pipeline, in the order in which they were first entered: that in which they run."""
    return [
        Section(
            pipeline,
            tuple(
                _pass_row(coverage, pipeline, name, why_not)
                for owner, name in coverage.entered
                if owner == pipeline
            ),
        )
        for pipeline in sorted({pipeline for pipeline, _ in coverage.entered})
    ]


def _pass_row(coverage: Coverage, pipeline: str, name: str, why_not: Mapping[str, str]) -> Row:
    changed = coverage.changed.get((pipeline, name), set())
    elsewhere = [cells for (_, other), cells in coverage.changed.items() if other == name and cells]
    if changed:
        example = str(min(changed))
    elif elsewhere:
        example = f"none here; in another pipeline {min(elsewhere[0])}"
    else:
        example = why_not.get(name, "-")
    return Row(name, len(coverage.entered[pipeline, name]), len(changed), example)


def _backends(
    coverage: Coverage, visitors: Mapping[str, Iterable[str]], why_not: Mapping[str, str]
) -> list[Section]:
    """Return the visitors of each backend, by name."""
    return [
        Section(backend, tuple(_visitor_row(coverage, backend, name, why_not) for name in sorted(targets)))
        for backend, targets in visitors.items()
    ]


def _visitor_row(coverage: Coverage, backend: str, name: str, why_not: Mapping[str, str]) -> Row:
    cells = coverage.visitors.get(f"{backend} {name}", set())
    return Row(name, len(cells), len(cells), str(min(cells)) if cells else why_not.get(name, "-"))


def _serialized(coverage: Coverage) -> dict[str, dict[str, str]]:
    """Return, for each kind of payload, its operators with their attributes and the values these had."""
    return {
        kind: {
            operator: "; ".join(
                f"{name}: {values(seen)}" for name, seen in coverage.attributes[kind, operator].items()
            )
            for owner, operator in sorted(coverage.attributes)
            if owner == kind
        }
        for kind in sorted({kind for kind, _ in coverage.attributes})
    }


def share(some: Collection[object], of: Collection[object]) -> str:
    """Return how many of a collection are in a part of it, also as a percentage.

    >>> share(["a"], ["a", "b", "c"])
    '1 of 3 (33.3%)'
    """
    return f"{len(some)} of {len(of)} ({100 * len(some) / len(of):.1f}%)" if of else "none"


def values(seen: set[str]) -> str:
    """Return the values of an attribute, or their number if they are many."""
    if len(seen) > SHOWN_VALUES:
        return f"{len(seen)} values"
    return ", ".join(sorted(seen)).replace("|", "\\|")

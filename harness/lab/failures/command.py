"""``python -m lab failures``: which cells fail to lower, on which release and why, from the goldens alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from executorch_goldens import releases
from executorch_goldens.cli import prints_table
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.causes import Cause, cause
from executorch_goldens.judging import known


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "failures",
        description="Print a Markdown table of the goldens that are failures, and of the defects that releases.toml "
        "or known.toml declares: a line per cause.",
    )
    prints_table(parser, table)


def table(root: Path) -> Iterator[str]:
    """Yield the Markdown table of the failures under `root`, most frequent cause first."""
    found: dict[Cause, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    declared = {version: release.known for version, release in releases.load().releases.items()}
    for version in declared:
        for cell in golden.recorded(root / version):
            texts = golden.read(golden.directory(root / version, cell))
            if texts is not None and golden.FAILURE in texts:
                found[cause(texts[golden.FAILURE])][str(cell)].append(version)
        for name, defect in known.of(root, version, declared).items():
            found[Cause(f"known: {defect.verdict}", defect.reason)][name].append(version)
    yield "| where | why | cells and releases |"
    yield "|---|---|---|"
    for found_cause in sorted(found, key=lambda key: (-sum(map(len, found[key].values())), key)):
        cells = "; ".join(
            f"{cell} ({', '.join(versions)})" for cell, versions in sorted(found[found_cause].items())
        )
        yield f"| {found_cause.where} | {found_cause.error} | {cells} |"

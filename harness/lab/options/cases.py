"""Makes the rows of the matrix of options cases: each makes its program by itself, on the releases that can."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

from executorch_goldens.zoo.registry import CASES, Case
from executorch_goldens.zoo.targets import BUILD
from lab.options import factors, rows
from lab.options.factors import OPTIONS, PLAIN, RELEASES, Row
from lab.options.rows import Array

_FOLDER = Path(__file__).parent
ARRAYS = (
    Array(
        "xnnpack", _FOLDER / "xnnpack.tsv", factors.XNNPACK_FACTORS, factors.XNNPACK_RULES, row=factors.row
    ),
    Array("tosa", _FOLDER / "tosa.tsv", factors.TOSA_FACTORS, factors.TOSA_RULES, row=factors.row),
)
#: Every so many a row is of the core.
CORE = 4


def all_rows() -> dict[str, Row]:
    """Return the rows of the matrix by the names of their programs."""
    return {name: row for array in ARRAYS for name, row in rows.read(array).items()}


def releases_of(row: Row) -> tuple[str, ...]:
    """Return the releases that have all options of a row."""
    chosen = [OPTIONS[name][value] for name, value in row._asdict().items() if name in OPTIONS]
    return tuple(release for release in RELEASES if all(release in option.releases for option in chosen))


def changed(row: Row) -> dict[str, str]:
    """Return the options of a row that are not as the release has them."""
    return {name: value for name, value in row._asdict().items() if name in PLAIN and value != PLAIN[name]}


def in_words(row: Row) -> str:
    """Return the description of a row, in one line."""
    return (
        f"{row.model}: {', '.join(f'{name} {value}' for name, value in changed(row).items()) or 'no option'}"
    )


def core(release: str) -> frozenset[str]:
    """Return the names of the core on a release: every `CORE`-th that it can."""
    return frozenset([name for name, row in all_rows().items() if release in releases_of(row)][::CORE])


def build(row: Row, build: Any) -> Any:
    """Build the program of a row."""
    # A run that takes everything from the store needs no ExecuTorch.
    from lab.options.programs import program

    return program(row, build)


def register(module: str) -> None:
    """Register the programs of the matrix as cases of `module`."""
    for name, row in all_rows().items():
        builder = functools.update_wrapper(functools.partial(build, row), build)
        # A case is of the module of its builder.
        builder.__module__ = module
        CASES.add(
            Case(
                name=name,
                family="options",
                guards=in_words(row),
                build=builder,
                releases=releases_of(row),
                # Nobody chose its values so that quantization leaves something of them.
                sqnr={BUILD: -math.inf},
                is_build=True,
            )
        )

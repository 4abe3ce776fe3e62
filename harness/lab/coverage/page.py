"""Makes harness/lab/docs/coverage/<release>.md from the tables of the zoo's coverage."""

from __future__ import annotations

import functools
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import jinja2

from executorch_goldens.goldens.golden import MANIFEST
from executorch_goldens.judging.verdict import NOT_RUN
from executorch_goldens.settings import config, releases
from lab import markdown
from lab.coverage.visits import PassRow, Reached
from lab.pages import Part

#: Why a pass or a visitor is reached on no release, by its name.
UNREACHED = Path(__file__).resolve().parent / "unreached.toml"
#: Template for `lines`.
TEMPLATE = Path(__file__).resolve().parent / "coverage.md.jinja"
#: What the ``numerics:`` line of a manifest begins with, by what became of the program.
STATES = {"not judged: not run": NOT_RUN, "no program: lowering fails": "none:", "run and judged": ""}
#: Text for an unknown reason.
NO_REASON = "-"


@dataclass(frozen=True)
class Section:
    """The passes of a pipeline, or the visitors of a backend.

    Attributes
    ----------
    rows
        Each with the cells that it is in, those that it changes, and why there are none.
    """

    name: str
    rows: tuple[tuple[str, int, int, str], ...]

    @property
    def reached(self) -> str:
        """Return the number of rows that are reached."""
        return share([row for row in self.rows if row[2]], self.rows)

    @property
    def unreached(self) -> list[tuple[str, int, int, str]]:
        """The others."""
        return [row for row in self.rows if not row[2]]


def parts() -> Iterator[Part]:
    """Yield the page of each release."""
    for version in releases.load().releases:
        yield Part(f"harness/lab/docs/coverage/{version}.md", "", functools.partial(_committed, version))


def _committed(version: str) -> list[str]:
    return lines(version, Reached.read(version), reasons())


def reasons() -> dict[str, str]:
    """Return why a pass or a visitor is not reached, by its name."""
    return {
        name: reason
        for group in tomllib.loads(UNREACHED.read_text(encoding="utf-8")).values()
        for name, reason in group.items()
    }


def lines(version: str, reached: Reached, why_not: Mapping[str, str]) -> list[str]:
    """Return the lines of a release's page.

    Parameters
    ----------
    why_not
        Name of a pass or a visitor to the reason that is given where it was not reached.
    """
    of_arm = [row for row in reached.passes if row.pipeline.startswith("arm ")]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATE.parent),
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return (
        environment.get_template(TEMPLATE.name)
        .render(
            version=version,
            arm_passes=share({row.name for row in of_arm if row.changed}, {row.name for row in of_arm}),
            pipelines=_pipelines(reached, why_not),
            backends=_backends(reached, why_not),
            judged=judged(version, config.load().goldens),
            row=markdown.row,
        )
        .splitlines()
    )


def judged(version: str, goldens: Path) -> list[tuple[str, list[int]]]:
    """Return for each target, then for all, how many kept cells of a release are in each of `STATES`.

    Parameters
    ----------
    goldens
        The folder with all goldens: those of other zoos than this one's are below it.
    """
    counted: dict[str, Counter[str]] = {}
    for path in sorted(goldens.rglob("*")):
        of_release = version in path.relative_to(goldens).parts
        if of_release and (path.name == MANIFEST or path.name.endswith(".cells.txt")):
            target = path.parent.parent.name if path.name == MANIFEST else path.name.partition(".")[0]
            lines = map(str.strip, path.read_text(encoding="utf-8").splitlines())
            counted.setdefault(target, Counter()).update(
                next(state for state, begins in STATES.items() if line.startswith(f"numerics: {begins}"))
                for line in lines
                if line.startswith("numerics: ")
            )
    counted["all"] = sum(counted.values(), Counter())
    return [(target, [of[state] for state in STATES]) for target, of in counted.items()]


def _pipelines(reached: Reached, why_not: Mapping[str, str]) -> list[Section]:
    by_pipeline: dict[str, list[tuple[str, int, int, str]]] = {}
    for row in reached.passes:
        why = "" if row.example else _why_none(row, reached, why_not)
        by_pipeline.setdefault(row.pipeline, []).append((row.name, row.entered, row.changed, why))
    return [Section(pipeline, tuple(rows)) for pipeline, rows in by_pipeline.items()]


def _why_none(row: PassRow, reached: Reached, why_not: Mapping[str, str]) -> str:
    for other in reached.passes:
        if other.name == row.name and other.example:
            return f"none here; in another pipeline {other.example}"
    return why_not.get(row.name, NO_REASON)


def _backends(reached: Reached, why_not: Mapping[str, str]) -> list[Section]:
    found = []
    for backend, names in reached.visitors.items():
        rows = []
        for name in names:
            cells = len(reached.visited.get(f"{backend} {name}", ()))
            rows.append((name, cells, cells, "" if cells else why_not.get(name, NO_REASON)))
        found.append(Section(backend, tuple(rows)))
    return found


def share(some: Collection[object], of: Collection[object]) -> str:
    """Return how many of a collection are in a part of it, also as a percentage.

    >>> share(["a"], ["a", "b", "c"])
    '1 of 3 (33.3%)'
    """
    return f"{len(some)} of {len(of)} ({100 * len(some) / len(of):.1f}%)" if of else "none"

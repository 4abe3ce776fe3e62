"""Puts a report together: one HTML file with its script, its style and its pages.

Names and texts come from models of strangers. Jinja2 escapes them in the pages, and the pages and the data of the grid
are in the file compressed and in base64, which cannot end a script. A content security policy forbids the file
to load anything, and to run any script but its own, by digest.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import itertools
import json
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import jinja2
from markupsafe import Markup
from packaging.version import Version

from executorch_goldens.causes.groups import Group, Member
from executorch_goldens.diff.edits import KINDS
from executorch_goldens.errors import CommandError
from executorch_goldens.files import durable
from executorch_goldens.files.wording import count
from executorch_goldens.goldens.quantities import QUANTITIES
from executorch_goldens.results.compared import SAME
from executorch_goldens.results.rows import KNOWN
from executorch_goldens.review import listing
from executorch_goldens.review.decisions import ACCEPTED, REJECTED, THREAD, TRACKER
from executorch_goldens.words.drift import Drift
from executorch_goldens.words.errors import times
from executorch_goldens.words.findings import reason
from executorch_goldens_plugins.report import cell
from executorch_goldens_plugins.report.gathering import CellResult, Gathered
from executorch_goldens_plugins.report.grid import counted, grid, legend

TEMPLATES = Path(__file__).resolve().parent / "templates"


#: The end of a page's address, and what renders its HTML.
Page = tuple[str, Callable[[], str]]


def document(gathered: Gathered) -> Iterator[str]:
    """Yield the report in pieces, each page when it is asked for.

    Raises
    ------
    executorch_goldens.errors.HarnessError
        For files that cannot be read; also while pieces are asked for.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["difference"] = lambda member: "\n".join(listing.difference(gathered.whole(member)))
    environment.filters["linked"] = linked
    signs, words = legend(gathered)
    environment.globals.update(
        signs=signs,
        words=words,
        compared=gathered.compared,
        found_on=cell.found_on,
        kind=gathered.kind_of,
        states=listing.STATE_WORDS,
        quantities=QUANTITIES,
        count=count,
        times=times,
        reason=lambda member: reason(member.proposal.found, member.proposal.target, member.labels),
        rejected=gathered.decided.reasons,
        kinds=lambda group: counted(map(gathered.kind_of, group.members), signs),
    )
    pages = list(_pages(environment, gathered))
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    yield from environment.get_template("report.html.jinja").generate(
        data=_packed(json.dumps(grid(gathered) | {"pages": [name for name, _ in pages]})),
        pages=(_packed(render()) for _, render in pages),
        script=script,
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        gathered=gathered,
        name=" → ".join(each.toolchain for each in gathered.compared.sides.values())
        if gathered.compared is not None
        else "Goldens",
    )


def _pages(environment: jinja2.Environment, gathered: Gathered) -> Iterator[Page]:
    rejected = gathered.decided.reasons
    order = [*legend(gathered)[0]]

    def place(group: Group) -> tuple[bool, int]:
        """Return those that are decided last; of a comparison, the worst kind first."""
        kinds = map(gathered.kind_of, group.members if gathered.compared is not None else ())
        return group.cause in rejected, min(map(order.index, kinds), default=0)

    groups = sorted(gathered.groups, key=place)
    wrong = counted((found.kind for found in gathered.found if not found.row.accepted), order)
    yield (
        "home",
        partial(
            environment.get_template("home.html.jinja").render,
            groups=groups,
            undecided=sum(group.cause not in rejected for group in groups),
            wrong={kind: number for kind, number in wrong.items() if kind not in (ACCEPTED, REJECTED)},
            decided={kind: number for kind, number in wrong.items() if kind in (ACCEPTED, REJECTED)},
            declared=[(found, gathered.defect(found)) for found in gathered.found if found.kind == KNOWN],
            cells=len(gathered.found),
            unchecked=gathered.unchecked,
        ),
    )
    yield "causes", partial(environment.get_template("causes.html.jinja").render, groups=groups)
    cause = environment.get_template("cause.html.jinja")
    yield from ((f"cause/{group.name}", partial(_cause, cause, group, gathered)) for group in groups)
    of_member = {member.proposal.folder: group for group in gathered.groups for member in group.members}
    of_cell = environment.get_template("cell.html.jinja")
    for found in gathered.found:
        if found.kind not in (SAME, "stable") or not (gathered.compared or found.row.accepted):
            yield f"cell/{found.name}", partial(_cell, of_cell, found, of_member.get(found.folder), gathered)
    drifts = list(_drifts(gathered))
    releases = environment.get_template("releases.html.jinja")
    yield "releases", partial(releases.render, drifts=drifts)
    drift = environment.get_template("drift.html.jinja")
    for each in drifts:
        yield f"drift/{each.before}..{each.after}", partial(drift.render, drift=each, kinds=KINDS)


def _drifts(gathered: Gathered) -> Iterator[Drift]:
    """Yield the drift between the goldens of the cells that are checked, of each release and the next.

    The goldens of two releases are held at a time; those of a single one are not read.
    """
    versions = sorted(gathered.releases, key=Version)
    old = gathered.readings(versions[0]) if len(versions) > 1 else {}
    for before, after in itertools.pairwise(versions):
        new = gathered.readings(after)
        drift = Drift.from_inventories((before, old), (after, new))
        if drift.common:
            yield drift
        old = new


def _cause(template: jinja2.Template, group: Group, gathered: Gathered) -> str:
    return template.render(
        group=group,
        facts=list(listing.facts(group, gathered.decided.reasons)),
        members=sorted(group.members, key=partial(_severity, gathered)),
        actions=listing.actions(group),
    )


def _cell(template: jinja2.Template, found: CellResult, group: Group | None, gathered: Gathered) -> str:
    page = cell.page(found, group, gathered)
    # A template's macros and its context refer to each other, and so to all that it is given, until the garbage
    # collector comes: a page would outlive its rendering.
    return template.render(page=weakref.proxy(page))


def _severity(gathered: Gathered, member: Member) -> tuple[int, float, str]:
    order, its = [*legend(gathered)[0]], gathered.kind_of(member)
    return order.index(its) if its in order else -1, -member.error, member.proposal.name


def linked(text: str) -> Markup:
    """Return a reason with the threads of upstream's tracker in it as links.

    >>> str(linked("freed (#21480) & more"))
    'freed (<a href="https://github.com/pytorch/executorch/issues/21480" rel="noreferrer">#21480</a>) &amp; more'
    """
    link = Markup('<a href="{}/{}" rel="noreferrer">#{}</a>')
    parts = THREAD.split(text)
    shown = [link.format(TRACKER, part, part) if at % 2 else part for at, part in enumerate(parts)]
    return Markup("").join(shown)


def _packed(text: str) -> str:
    """Return a text compressed, in base64; the same each time."""
    return base64.b64encode(gzip.compress(text.encode(errors="backslashreplace"), mtime=0)).decode()


def write(file: Path, pieces: Iterable[str]) -> None:
    """Write a report whole, or nothing; raise CommandError, and errors of its pieces."""
    try:
        if not file.parent.is_dir():
            raise NotADirectoryError(f"{file.parent} is no folder")
        durable.replace(file, pieces)
    except OSError as error:
        raise CommandError(
            f"{file} cannot be written ({error}): name a file in a folder that is there"
        ) from error

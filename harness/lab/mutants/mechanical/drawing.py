"""The mechanical mutants of a seed: drawn from every site of a release by chance alone."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from executorch_goldens.patches import Patch
from lab.mutants import installing
from lab.mutants.mechanical import PLACES
from lab.mutants.mechanical.sites import Site, sites
from lab.mutants.mutant import UNGUARDED

#: Defaults of the drawing.
SEED = 1
COUNT = 300


@dataclass(frozen=True)
class Mechanical:
    """A mutant that nobody chose.

    Attributes
    ----------
    name
        Its name in ``--patches``.
    """

    name: str
    site: Site

    @property
    def place(self) -> str:
        return place_of(self.site.file)

    @property
    def does(self) -> str:
        """One line: the line of the function, and the replacement."""
        return f"{self.site.function}: {one_line(self.site.old)} -> {one_line(self.site.new)}"

    def patch(self, release: str) -> Patch:
        """Return the mutant as something that ``--patches`` can name on `release`, whose code it edits."""
        return Patch(self.name, None, self.does, {release: {}}, lambda _: install(self.site), UNGUARDED)


def install(site: Site) -> None:
    """Make the edit of a site in this process, and forget what its package has computed before; raise EditError."""
    installing.install(site.module, site.function, site.line, site.applied)
    installing.forget(site.module.partition(".")[0])


def one_line(code: str) -> str:
    return " ".join(code.split())


def place_of(file: str) -> str:
    """Return the name that `PLACES` has for a file relative to the package ``executorch``; empty for none."""
    found = (
        place
        for place, within in PLACES.items()
        if any(file == path or file.startswith(f"{path}/") for path in within)
    )
    return next(found, "")


def files(package: Path) -> Iterator[str]:
    """Yield the names, relative to the package ``executorch``, of the sources that are mutated; no tests."""
    found: set[Path] = set()
    for path in (path for within in PLACES.values() for path in within):
        there = package / path
        found.update([there] if there.suffix == ".py" else there.rglob("*.py"))
    for file in sorted(file.relative_to(package) for file in found if file.exists()):
        if "test" not in file.parts:
            yield file.as_posix()


def every_site(package: Path) -> list[Site]:
    return [site for file in files(package) for site in sites(file, (package / file).read_bytes())]


def draw(every: Sequence[Site], seed: int = SEED, count: int = COUNT) -> list[Mechanical]:
    """Return `count` mutants, each site as likely as any; the first ones of a larger number are the same."""
    order = list(every)
    random.Random(seed).shuffle(order)
    return [
        Mechanical(f"mechanical-{seed}-{number:04}-{site.operator}", site)
        for number, site in enumerate(order[:count])
    ]


def digest(drawn: Sequence[Mechanical]) -> str:
    """Return the identity of a drawing."""
    return hashlib.sha256(_sites(drawn).encode()).hexdigest()[:12]


def text(release: str, drawn: Sequence[Mechanical]) -> str:
    """Return the drawing from a release's sources as a file has it, for `read`."""
    return f"{release}\n{_sites(drawn)}"


def read(file: Path) -> tuple[str, list[Mechanical]]:
    """Return the release and the drawing."""
    release, _, sites_of = file.read_text(encoding="utf-8").partition("\n")
    return release, [Mechanical(name, Site(**site)) for name, site in json.loads(sites_of).items()]


def _sites(drawn: Sequence[Mechanical]) -> str:
    return json.dumps({mutant.name: asdict(mutant.site) for mutant in drawn}, indent=0)

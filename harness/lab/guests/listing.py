"""The listing of a guest zoo: which cases it has on which release, and which tests are left out, with the reason.

``harness/lab/guests/listings/<zoo>.txt`` is reviewed like a golden. ``python -m lab guests --update`` writes it, by
running upstream's tests up to the point of `lab.guests.capture`. A line is a case::

    abs-randn-1d  test_abs.py::test_abs_tosa_FP[randn_1d]  float quantized  1.3.1 1.4.1

or a test that is left out::

    -  test_resnet18.py  needs the package torchvision  1.3.1 1.4.1

Names of cases follow the tests'. A test's further models end with ``#1``, ``#2``.
"""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import itertools
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from executorch_goldens.errors import HarnessError
from lab.guests import ZOOS

FOLDER = Path(__file__).parent / "listings"
#: Cases that no core has, for what an export of them costs: by zoo, a pattern of names and the reason.
LARGE = FOLDER / "large.toml"
#: The command that writes them.
UPDATE = "nox -s lab -- guests --update"
#: In the place of a case's name.
LEFT_OUT = "-"
#: Upstream's lowerings of a case: float, quantized.
FLOAT, QUANTIZED = "float", "quantized"
#: Longest name of a case, `executorch_goldens.zoo.registry.NAME_PATTERN`.
LONGEST = 64
#: Characters of the digest in the place of what is cut off a name.
DIGEST = 6

#: Suffixes of tests' names for upstream's lowerings of one model: it is one case.
FLOWS = re.compile(r"[_-](?:tosa|vgf|u55|u65|u85|no[_-]quant|quant|fp|int)(?=[_\-\[#]|$)", re.IGNORECASE)


class ListingError(HarnessError):
    """A listing that cannot be read; the message names the line and the way out."""


@dataclass(frozen=True, order=True)
class Entry:
    """A case of a guest zoo.

    Attributes
    ----------
    name
        Of the case.
    file
        Of the test, relative to the zoo's folder.
    node
        Of the test in it, as pytest names it.
    number
        Of the model among those that the test hands over, from 0.
    kinds
        How upstream lowers it: `FLOAT`, where it holds or takes another dtype that, ``bfloat16`` for instance;
        `QUANTIZED`.
    releases
        That have it, in the order of the matrix.
    """

    name: str
    file: str
    node: str
    number: int
    kinds: tuple[str, ...]
    releases: tuple[str, ...]

    def line(self) -> str:
        return _line(self.name, _test(self.file, self.node, self.number), " ".join(self.kinds), self.releases)


@dataclass(frozen=True, order=True)
class Omitted:
    """A file or a test that hands no model over.

    Attributes
    ----------
    test
        ``<file>`` or ``<file>::<node>``.
    """

    test: str
    reason: str
    releases: tuple[str, ...]

    def line(self) -> str:
        return _line(LEFT_OUT, self.test, self.reason, self.releases)


@dataclass(frozen=True)
class Listing:
    """The cases of a guest zoo, and the tests that are none."""

    entries: tuple[Entry, ...] = ()
    omitted: tuple[Omitted, ...] = ()

    def text(self) -> str:
        lines = [*(each.line() for each in self.entries), *(each.line() for each in self.omitted)]
        return "".join(f"{line}\n" for line in lines)

    def without(self, release: str) -> Listing:
        """Return the entries of other releases."""
        entries = [replace(each, releases=_less(each.releases, release)) for each in self.entries]
        omitted = [replace(each, releases=_less(each.releases, release)) for each in self.omitted]
        return Listing(
            tuple(each for each in entries if each.releases), tuple(each for each in omitted if each.releases)
        )

    def joined(self, other: Listing, releases: Sequence[str]) -> Listing:
        """Return the entries of both, sorted; releases in the order of `releases`."""
        entries: dict[Entry, set[str]] = {}
        for each in (*self.entries, *other.entries):
            entries.setdefault(replace(each, releases=()), set()).update(each.releases)
        omitted: dict[Omitted, set[str]] = {}
        for left in (*self.omitted, *other.omitted):
            omitted.setdefault(replace(left, releases=()), set()).update(left.releases)
        return Listing(
            tuple(replace(each, releases=_ordered(entries[each], releases)) for each in sorted(entries)),
            tuple(replace(each, releases=_ordered(omitted[each], releases)) for each in sorted(omitted)),
        )


def _less(releases: Sequence[str], release: str) -> tuple[str, ...]:
    return tuple(each for each in releases if each != release)


def _ordered(found: Iterable[str], releases: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(found, key=releases.index))


def _line(name: str, test: str, what: str, releases: Sequence[str]) -> str:
    return f"{name}  {test}  {what}  {' '.join(releases)}"


def _test(file: str, node: str, number: int) -> str:
    return f"{file}::{node}" + (f"#{number}" if number else "")


def path_of(zoo: str) -> Path:
    return FOLDER / f"{zoo}.txt"


def read(zoo: str) -> Listing:
    """Return the listing of a guest zoo; an empty one where there is none; raise `ListingError`."""
    path = path_of(zoo)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return Listing()
    entries, omitted = [], []
    for line in lines:
        words = line.split("  ")
        if len(words) != 4 or not all(words):
            raise ListingError(f"{path}: no line of a listing: {line!r}; write it again by: {UPDATE}")
        name, test, what, releases = words
        if name == LEFT_OUT:
            omitted.append(Omitted(test, what, tuple(releases.split())))
            continue
        file, _, node = test.partition("::")
        node, _, number = node.partition("#") if re.search(r"#\d+$", node) else (node, "", "0")
        entries.append(Entry(name, file, node, int(number), tuple(what.split()), tuple(releases.split())))
    return Listing(tuple(entries), tuple(omitted))


def core(zoo: str, release: str) -> frozenset[str]:
    """Return the names of a guest zoo's core cases on a release; see `cores`."""
    return cores(zoo).get(release, frozenset())


def cores(zoo: str) -> dict[str, frozenset[str]]:
    """Return the names of a guest zoo's core cases, by release; see `lab.guests.GuestZoo.core`.

    Of a test or a file it is the first by name. Those of `LARGE` are in no core.
    """
    of_what: dict[str, Callable[[Entry], tuple[str, ...]]] = {
        "case": lambda entry: (entry.name,),
        "test": lambda entry: (entry.file, FLOWS.sub("", entry.node.partition("[")[0])),
        "file": lambda entry: (entry.file,),
    }
    first: dict[str, dict[tuple[str, ...], str]] = {}
    for entry in read(zoo).entries:
        if too_large(zoo, entry.name):
            continue
        for release in entry.releases:
            first.setdefault(release, {}).setdefault(of_what[ZOOS[zoo].core](entry), entry.name)
    return {release: frozenset(names.values()) for release, names in first.items()}


@functools.cache
def large() -> Mapping[str, Mapping[str, str]]:
    """Return the content of `LARGE`: by zoo, a pattern of names and the reason."""
    table: dict[str, dict[str, str]] = tomllib.loads(LARGE.read_text(encoding="utf-8"))
    return table


def too_large(zoo: str, case: str) -> str:
    """Return why a case is in no core; empty where it may be in one."""
    found = (why for pattern, why in large().get(zoo, {}).items() if fnmatch.fnmatchcase(case, pattern))
    return next(found, "")


def names_of(file: str, node: str, number: int) -> tuple[str, str, str]:
    """Return the names that the case of a test may have: without the flows that it is lowered by, with them, its own.

    >>> names_of("test_abs.py", "test_abs_tosa_FP[randn_1d]", 0)
    ('abs-randn-1d', 'abs-tosa-fp-randn-1d', 'abs-tosa-fp-randn-1d-7ac92e')
    >>> names_of("test_cat.py", "TestCat::test_fp32_cat2", 2)[1]
    'cat-fp32-cat2-2'
    """
    numbered = f"{node}#{number}" if number else node
    whole = _name(file, numbered)
    digest = hashlib.sha256(f"{file}::{numbered}".encode()).hexdigest()
    return (
        cut(_name(file, FLOWS.sub("", numbered)), digest),
        cut(whole, digest),
        cut(whole, digest, always=True),
    )


def _name(file: str, node: str) -> str:
    *folders, stem = (_words(re.sub(r"^test_", "", part)) for part in file.removesuffix(".py").split("/"))
    parts = [_words(re.sub(r"^[Tt]est_?", "", part)) for part in node.split("::")]
    if folders:
        # Of a family of models: folder, file and test each begin with its name.
        stem = "-".join((*folders, _without_common(stem, folders[-1])))
        parts = [_without_common(part, stem) for part in parts]
    name = stem
    for part in parts:
        # A class that is called as its file is, and a function that begins with the name of its file.
        if part.replace("-", "") in ("", stem.replace("-", "")):
            continue
        if part.startswith(f"{name}-"):
            name = part
        else:
            name = f"{name}-{part}"
    return name


def _without_common(words: str, others: str) -> str:
    """Return words without those that they begin with in common with others, if these are at least two.

    >>> _without_common("qwen3-vl-rms-norm", "qwen3-vl-layers")
    'rms-norm'
    >>> _without_common("phi3-layers", "phi3")
    'phi3-layers'
    """
    pairs = zip(words.split("-"), others.split("-"), strict=False)
    common = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))
    return "-".join(words.split("-")[common:]) if common > 1 else words


def cut(name: str, digest: str, always: bool = False) -> str:
    """Return a name that is short enough, with `DIGEST` characters of `digest` in place of the rest."""
    digest = digest[:DIGEST]
    if len(name) <= LONGEST and not always:
        return name
    return f"{name[: LONGEST - DIGEST - 1].rstrip('-')}-{digest}"


def _words(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")

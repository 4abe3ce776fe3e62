"""Registers the cases of a guest zoo from its listing; what builds one is imported where it is exported."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from harness.guests import ZOOS, GuestZoo, listing
from harness.guests.listing import Entry
from harness.registry import CASES, Case, ZooError

if TYPE_CHECKING:
    from harness.exporting.data import Data, Example

#: Weights and inputs are drawn as upstream's tests draw them: histograms, as upstream ships them, on a grid.
QUANTIZATION = "histogram-on-grid"


def register(zoo: str, build: Callable[..., Example]) -> None:
    """Register the cases of the guest zoo called `zoo`, each built by `build` of the module that calls.

    Parameters
    ----------
    build
        Takes the entries of one case and its `Data`.
    """
    guests = ZOOS[zoo]
    by_name: dict[str, list[Entry]] = {}
    for entry in listing.read(zoo).entries:
        by_name.setdefault(entry.name, []).append(entry)
    if not by_name:
        raise ZooError(
            f"every test of {zoo} is left out, or none is listed yet: {listing.path_of(zoo)} says why"
        )
    for entries in by_name.values():
        CASES.add(case_of(guests, entries, build))


def case_of(zoo: GuestZoo, entries: Iterable[Entry], build: Callable[..., Example]) -> Case:
    """Return the case of the entries that have one name."""
    entries = tuple(entries)
    first = entries[0]
    kinds = {kind for entry in entries for kind in entry.kinds}
    builder = functools.update_wrapper(functools.partial(build, entries), build)
    return Case(
        name=first.name,
        family=first.file.removesuffix(".py").rpartition("/")[2].removeprefix("test_"),
        guards=f"{zoo.tests}/{first.file}::{first.node}",
        build=builder,
        quantization=QUANTIZATION,
        backends=tuple(
            target
            for kind, wanted in (("float", zoo.floats), ("quantized", zoo.quantized))
            if kind in kinds
            for target in wanted
        ),
        releases=tuple(release for entry in entries for release in entry.releases),
    )


def built(zoo: str, entries: Iterable[Entry], data: Data) -> Example:
    """Build a case of the guest zoo called `zoo` from the installed release; raise `ZooError`."""
    from harness.exporting import compat
    from harness.guests import capture

    release = compat.installed_release()
    for entry in entries:
        if release in entry.releases:
            return capture.example(ZOOS[zoo], entry.file, entry.node, entry.number, data.case)
    raise ZooError(f"case {data.case!r} of {zoo} is not there on ExecuTorch {release}")

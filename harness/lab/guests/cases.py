"""Registers the cases of a guest zoo from its listing; the code that builds one is imported for its export."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING

from executorch_goldens.zoo.registry import CASES, Case, ZooError
from executorch_goldens.zoo.targets import ANY_SQNR, TARGETS
from lab.guests import QUANTIZATION, ZOOS, GuestZoo, listing
from lab.guests.listing import QUANTIZED, Entry

if TYPE_CHECKING:
    from executorch_goldens.exporting.data import Data, Example


def register(zoo: str) -> None:
    """Register the cases of the guest zoo called `zoo`: its module, which a root of goldens names, does so."""
    guests = ZOOS[zoo]
    by_name: dict[str, list[Entry]] = {}
    for entry in listing.read(zoo).entries:
        by_name.setdefault(entry.name, []).append(entry)
    if not by_name:
        raise ZooError(
            f"every test of {zoo} is left out, or none is listed yet: {listing.path_of(zoo)} says why"
        )
    CASES.add_later(by_name, functools.partial(case_of, guests))


def case_of(zoo: GuestZoo, entries: Iterable[Entry]) -> Case:
    """Return the case of the entries that have one name."""
    entries = tuple(entries)
    first = entries[0]
    kinds = sorted({kind for entry in entries for kind in entry.kinds})
    wanted = tuple(target for kind in kinds for target in _targets_of(zoo, kind))
    builder = functools.update_wrapper(functools.partial(built, zoo.name, entries), built)
    # A case is of the module of its builder.
    builder.__module__ = zoo.module
    return Case(
        name=first.name,
        family=first.file.removesuffix(".py").rpartition("/")[2].removeprefix("test_"),
        guards=f"{zoo.tests}/{first.file}::{first.node}",
        build=builder,
        quantization=QUANTIZATION,
        backends=wanted,
        also=tuple(target for target in wanted if TARGETS[target].opt_in),
        releases=tuple(release for entry in entries for release in entry.releases),
        run_on=zoo.run_on,
        # Their models and inputs are nobody's here: what quantization leaves of them is recorded, and not judged.
        sqnr=ANY_SQNR,
    )


def _targets_of(zoo: GuestZoo, kind: str) -> tuple[str, ...]:
    """Return the targets for one of `Entry.kinds`: for a dtype, that of the backend that has it, if one does."""
    if kind == QUANTIZED:
        return zoo.quantized
    of_dtype = {target.backend: name for name, target in TARGETS.items() if target.dtype == kind}
    return tuple(of_dtype.get(TARGETS[name].backend, name) for name in zoo.floats)


def built(zoo: str, entries: Iterable[Entry], data: Data) -> Example:
    """Build a case of the guest zoo called `zoo` from the installed release; raise `ZooError`."""
    from executorch_goldens.exporting import compat

    release = compat.installed_release()
    entry = next((entry for entry in entries if release in entry.releases), None)
    if entry is None:
        raise ZooError(f"case {data.case!r} of {zoo} is not there on ExecuTorch {release}")
    from lab.guests import capture

    return capture.example(ZOOS[zoo], entry.file, entry.node, entry.number, data.case)

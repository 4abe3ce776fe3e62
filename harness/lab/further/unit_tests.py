"""Upstream's tests of single passes, of quantizers, and others: models that no guest zoo has."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from executorch_goldens.zoo.registry import CASES
from executorch_goldens.zoo.targets import TARGETS
from lab.further import further, turns
from lab.guests import UNRECORDED, GuestZoo, listing
from lab.guests.cases import case_of
from lab.guests.listing import Entry, cut

#: Targets of a case beside those that every case has.
EACH = 2


def register(module: str) -> None:
    """Register the cases of all folders as those of `module`."""
    for zoo in UNRECORDED.values():
        by_name: dict[str, list[Entry]] = {}
        for entry in listing.read(zoo.name).entries:
            by_name.setdefault(entry.name, []).append(entry)
        for name, targets in assigned(zoo, tuple(by_name)).items():
            case = case_of(zoo, by_name[name])
            case.build.__module__ = module
            own = cut(f"{zoo.name}-{name}", hashlib.sha256(name.encode()).hexdigest())
            asked = tuple(target for target in targets if TARGETS[target].opt_in)
            CASES.add(replace(case, name=own, backends=targets, also=asked, run_on=("example",)))


def assigned(zoo: GuestZoo, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the targets of each case: those of its guest zoo, and `EACH` of the further ones, which take turns."""
    common = (*zoo.floats, *zoo.quantized)
    backends = tuple({TARGETS[name].backend: None for name in common})
    others = (*further(backends, quantized=False), *further(backends, quantized=True))
    found: dict[str, dict[str, None]] = {name: dict.fromkeys(common) for name in names}
    for name, target in turns([name for name in names for _ in range(EACH)], others):
        found[name][target] = None
    return {name: tuple(targets) for name, targets in found.items()}


register(__name__)

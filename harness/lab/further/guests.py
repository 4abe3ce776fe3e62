"""Registers the cases of upstream's tests for the targets that the guest zoos do not have."""

from __future__ import annotations

from dataclasses import replace

from executorch_goldens.zoo.registry import CASES
from executorch_goldens.zoo.targets import TARGETS
from lab.further import further, turns
from lab.guests import ZOOS, listing
from lab.guests.cases import case_of
from lab.guests.listing import FLOAT, QUANTIZED, Entry


def register(zoo: str, module: str) -> None:
    """Register the cases of the guest zoo called `zoo` as those of `module`."""
    guests = ZOOS[zoo]
    by_name: dict[str, list[Entry]] = {}
    for entry in listing.read(zoo).entries:
        by_name.setdefault(entry.name, []).append(entry)
    for name, targets in assigned(zoo).items():
        case = case_of(guests, by_name[name])
        case.build.__module__ = module
        CASES.add(replace(case, backends=targets, also=targets, run_on=("example",)))


def assigned(zoo: str) -> dict[str, tuple[str, ...]]:
    """Return the targets of each case: those of a file take turns, those that upstream quantizes in quantizing ones."""
    guests = ZOOS[zoo]
    backends = tuple({TARGETS[name].backend: None for name in (*guests.floats, *guests.quantized)})
    of_file: dict[tuple[str, str], dict[str, None]] = {}
    for entry in listing.read(zoo).entries:
        for kind in entry.kinds:
            if kind in (FLOAT, QUANTIZED):
                of_file.setdefault((entry.file, kind), {})[entry.name] = None
    found: dict[str, dict[str, None]] = {}
    for (_, kind), names in of_file.items():
        for name, target in turns(list(names), further(backends, kind == QUANTIZED)):
            found.setdefault(name, {})[target] = None
    return {name: tuple(targets) for name, targets in found.items()}

"""Request of an export as named ingredients: the part of its key that no file holds.

Everything else that an artifact depends on its record says (`executorch_goldens.store.facts`).

Left out on purpose is what should not affect the output (`variations`): the place of the environment and of the
repository, the exports that a template has made before, which cells run beside it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from executorch_goldens import targets
from executorch_goldens.artifact import Cell
from executorch_goldens.store.environment import Environment, Ingredients
from executorch_goldens.variations import Variation

if TYPE_CHECKING:
    from executorch_goldens.settings.exports import Settings

#: Goes up with every change of what is asked for, of what is recorded, or of how an artifact is stored.
FORMAT = 2


def digest(ingredients: Ingredients) -> str:
    """Return the SHA-256 of a listing: of its pairs, sorted, as JSON."""
    return hashlib.sha256(json.dumps(sorted(ingredients)).encode()).hexdigest()


def different(one: Ingredients, other: Ingredients) -> tuple[str, ...]:
    """Return the names of the ingredients that two listings do not share.

    >>> different((("python", "3.11"), ("capture", "0")), (("python", "3.12"), ("capture", "0")))
    ('python',)
    """
    return tuple(sorted({name for name, _ in {*one} ^ {*other}}))


def request(
    settings: Settings,
    environment: Environment,
    cell: Cell,
    variation: Variation,
    further_patches: Sequence[str] = (),
) -> Ingredients:
    """Return the request for an export of `cell` under `variation`, with `further_patches` installed as well."""
    target = targets.find(cell.target)
    found = {
        **dict(environment.ingredients),
        **dict(_of_settings(settings)),
        "case": cell.case,
        # A function of a distribution is in its file.
        "target": json.dumps(asdict(target), sort_keys=True, default=repr),
        "patches": " ".join((*settings.patches, *further_patches)),
        "variation": variation.name,
        "tolerance": repr(settings.tolerances.get(cell.target)),
    }
    return tuple(sorted(found.items()))


def _of_settings(settings: Settings) -> Iterator[tuple[str, str]]:
    machine = settings.machine
    yield "format", str(FORMAT)
    yield "zoos", " ".join(settings.models)
    yield "shortcuts", " ".join(settings.shortcuts)
    yield "isolation", settings.isolation
    yield "capture", str(settings.capture)
    yield "execute", str(settings.execute)
    yield "omission", repr(settings.omission)
    yield "observer", repr(settings.observer)
    yield "twins", str(settings.twins)
    yield "machine", json.dumps([machine.variables(), machine.threads, machine.onednn], sort_keys=True)

"""The TOSA payloads of cells: exported, and kept in a folder for a run that exports nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.artifact import Artifact, Cell, Lowered, Outcome
from executorch_goldens.errors import CommandError
from executorch_goldens.files import untrusted
from executorch_goldens.settings.exports import Settings
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.words import casualties
from executorch_goldens.zoo.variations import variations

LIST = "delegates.json"
LARGEST_PAYLOAD = 1 << 31


@dataclass(frozen=True)
class Payloads:
    """The payloads of an export for a TOSA target.

    Attributes
    ----------
    named
        Name and payload of each delegate, in the order of the graph.
    failure
        One line if there are none.
    """

    named: tuple[tuple[str, bytes], ...] = ()
    failure: str = ""


def exported(cells: Sequence[Cell], settings: Settings, folder: Path) -> Iterator[tuple[Cell, Payloads]]:
    """Export cells of TOSA targets, once each, keep the payloads below `folder`, and yield them.

    Whether exports repeat is what a run over the zoo finds out. Here one is enough: a golden names its payload.
    """
    if not cells:
        return
    with Sweep(cells, variations((0,)), settings) as sweep:
        for cell in cells:
            (outcome,) = sweep.outcomes(cell)
            found = of_outcome(outcome)
            keep(folder / cell.target / cell.case, found)
            yield cell, found


def of_outcome(outcome: Outcome) -> Payloads:
    """Return the payloads of an export, or in a line why it has none."""
    if not isinstance(outcome.result, Artifact):
        return Payloads(failure=f"{outcome.result.verdict}: {casualties.reason(outcome.result)}")
    result = outcome.result.result
    if not isinstance(result, Lowered):
        return Payloads(failure=f"{result.stage}: {result.type}: {result.message.splitlines()[0]}")
    named = tuple((delegate.name, delegate.payload) for delegate in result.delegates)
    return Payloads(named, "" if named else "the export has no delegate")


def keep(folder: Path, payloads: Payloads) -> None:
    """Write payloads into a folder, replacing its content."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for index, (_, payload) in enumerate(payloads.named):
        (folder / f"delegate_{index}.tosa").write_bytes(payload)
    listed = {"names": [name for name, _ in payloads.named], "failure": payloads.failure}
    (folder / LIST).write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")


def kept(cell: Cell, folder: Path) -> Payloads:
    """Read the payloads that an earlier run kept of a cell; raise `CommandError`."""
    try:
        place = untrusted.inside(folder, cell.target, cell.case)
        listed = untrusted.json_of(untrusted.text(place / LIST))
        named = tuple(
            (str(name), untrusted.contents(place / f"delegate_{index}.tosa", LARGEST_PAYLOAD))
            for index, name in enumerate(listed["names"])
        )
        return Payloads(named, str(listed["failure"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CommandError(
            f"--exported: {folder} has no payloads of {cell} ({error}); run without --exported once"
        ) from error

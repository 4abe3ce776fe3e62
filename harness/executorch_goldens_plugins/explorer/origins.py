"""The pass that made each operator of a cell's delegates, as ``run --origins`` keeps it.

``origins.json`` has it for every variation; equal ones are stored once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from executorch_goldens.artifact import Artifact, Lowered, Outcome
from executorch_goldens.errors import HarnessError
from executorch_goldens.files import durable, untrusted

FILE = "origins.json"
#: Version of the file.
FORMAT = 1


#: The pass that made an operator, then those that converted it.
Makers = Annotated[Sequence[str], msgspec.Meta(min_length=1)]


class OriginsError(HarnessError, ValueError):
    """Origins that cannot be read; the message names their file and the way out."""


@dataclass(frozen=True)
class Origins:
    """Of an artifact, the passes that made the operators and constants of its delegates.

    Attributes
    ----------
    variations
        Names of those that made the artifact.
    delegates
        Names of the values made in each delegate, with what made the operator or constant of each,
        a pass or a stage, then the passes that converted it.
    """

    variations: Sequence[str]
    delegates: Sequence[Mapping[str, Makers]]

    def text(self, delegate: int, value: str) -> str:
        """Return the origin of a value's operator or constant, as text; empty if unknown."""
        known = self.delegates[delegate] if delegate < len(self.delegates) else {}
        return written(known.get(value, ()))


def written(makers: Sequence[str]) -> str:
    """Return the origin of an operator and its conversions, as text.

    >>> written(["exported", "ExirToTosaPass"])
    'exported → ExirToTosaPass'
    """
    return " → ".join(makers)


def write(folder: Path, outcomes: Sequence[Outcome]) -> None:
    """Leave the origins of a cell's artifacts in `folder`, if any export made one."""
    found: dict[tuple[tuple[tuple[str, tuple[str, ...]], ...], ...], list[str]] = {}
    for outcome in outcomes:
        result = outcome.result
        if isinstance(result, Artifact) and isinstance(result.result, Lowered) and result.watched is not None:
            found.setdefault(result.watched.origins, []).append(outcome.variation)
    if found:
        artifacts = [
            {"variations": names, "delegates": [dict(each) for each in origins]}
            for origins, names in found.items()
        ]
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"format": FORMAT, "artifacts": artifacts}, indent=1) + "\n"
        durable.replace(folder / FILE, text, synced=False)


def read(folder: Path, variation: str = "") -> Origins | None:
    """Return the origins of a variation's artifact, or of any; None if a run kept none; raise OriginsError."""
    path = folder / FILE
    try:
        fields = untrusted.json_of(untrusted.text(path))
        if fields["format"] != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        artifacts = msgspec.convert(fields["artifacts"], list[Origins])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise OriginsError(
            f"{path} is damaged ({type(error).__name__}: {error}): run its cell again with --origins, or delete it"
        ) from error
    return next((each for each in artifacts if variation in ("", *each.variations)), None)

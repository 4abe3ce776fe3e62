"""Rejections with their reasons: shown when the same cause is proposed again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.errors import HarnessError
from executorch_goldens.files import durable, untrusted

FILE = "rejected.json"
#: Version of the file.
FORMAT = 1


class RejectionError(HarnessError, ValueError):
    """A file of rejections that cannot be used; the message names it and the way out."""


@dataclass(frozen=True)
class Rejections:
    """The reasons, by `executorch_goldens.review.groups.Group.cause`, and the file that they are in."""

    path: Path
    reasons: Mapping[str, str]

    @classmethod
    def read(cls, sweeps: Path) -> Rejections:
        """Return those of a folder of results, none where it has no file; raise RejectionError."""
        path = sweeps / FILE
        try:
            fields = untrusted.json_of(untrusted.text(path))
            if fields["format"] != FORMAT or not all(
                isinstance(each, str) for each in fields["reasons"].values()
            ):
                raise ValueError(f"its format is not {FORMAT}")
            return cls(path, fields["reasons"])
        except FileNotFoundError:
            return cls(path, {})
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise RejectionError(
                f"{path} is damaged ({error}): repair or delete it; deleting it forgets all rejections"
            ) from error

    def write(self, reasons: Mapping[str, str]) -> None:
        """Replace the content of the file; raise RejectionError."""
        try:
            durable.replace(
                self.path, json.dumps({"format": FORMAT, "reasons": dict(reasons)}, indent=1) + "\n"
            )
        except OSError as error:
            raise RejectionError(f"{self.path} cannot be written ({error}): make room for it") from error

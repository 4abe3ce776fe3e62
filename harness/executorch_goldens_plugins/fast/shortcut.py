"""What tells a shortcut from a patch: it changes no byte of an artifact, so that a run has all of them or none."""

from __future__ import annotations

from typing import ClassVar

from executorch_goldens.patches.patch import Patch


class Shortcut(Patch):
    """A piece of work that exports are spared."""

    kind: ClassVar[str] = "shortcut"
    without: ClassVar[str] = "pass --no-shortcuts"

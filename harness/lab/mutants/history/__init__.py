"""Real upstream fixes, reverted: does the zoo see the old defects?

Each is a small edit of the installed release that has the fix, written for this project, that brings the behaviour
before the fix back. Importing this package registers all of them, so that one can be looked at as any run:
``--models models --models lab.mutants.history --patches NAME --release RELEASE``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from executorch_goldens import patches
from lab.mutants.mutant import UNGUARDED, Edit, Edited

#: Releases that fixes are taken back in, and the release before the fixes.
SINCE = {"1.3.1": "1.1.0", "1.5.1": "1.4.1"}


@dataclass(frozen=True)
class Fix(Edited):
    """A fix of upstream's, taken back.

    It is tied to no cell: which cells of the zoo see it is in ``seen.tsv``.

    Attributes
    ----------
    name
        Its name in ``--patches``: the number of the pull request in pytorch/executorch, then words.
    area
        What it is a fix of.
    release
        The release that has the fix and that is edited, one of `SINCE`.
    kind
        What the fix corrected.
    broke
        One line: what was wrong before it, and is wrong again once this is installed.
    edits
        Of installed code.
    unreachable
        Why no cell of any zoo can see it here; empty where one could.
    unseen
        Why no cell has seen it so far, where known.
    """

    name: str
    area: str
    release: str
    kind: Literal["crash", "wrong result", "lost delegate"]
    broke: str
    edits: tuple[Edit, ...]
    unreachable: str = ""
    unseen: str = ""

    @property
    def number(self) -> int:
        """The number of the pull request."""
        return int(self.name.partition("-")[0])

    @property
    def key(self) -> str:
        """Its number, and a digest of its edits: as ``seen.tsv`` names it."""
        return f"{self.number}@{hashlib.sha256(repr(self.edits).encode()).hexdigest()[:8]}"

    def patch(self) -> patches.Patch:
        """Return it as something that ``--patches`` can name on its release."""
        return patches.Patch(self.name, None, self.broke, {self.release: {}}, self.install, UNGUARDED)


FIXES: tuple[Fix, ...] = msgspec.toml.decode(
    Path(__file__).with_name("fixes.toml").read_bytes(), type=dict[Literal["fixes"], tuple[Fix, ...]]
)["fixes"]

for fix in FIXES:
    patches.register(fix.patch())

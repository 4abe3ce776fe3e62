"""A reverted fix: one upstream correction, and the small edit that brings the old behaviour back.

Importing this imports neither torch nor executorch; installing a fix taken back does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from executorch_goldens.patches import Patch
from lab.mutants.mutant import UNGUARDED, Edit, Edited, EditError

#: Kinds of defects before a fix.
CRASH, WRONG, LOST = "crash", "wrong result", "lost delegate"
KINDS = (CRASH, WRONG, LOST)

#: Releases that fixes are taken back in, and the release before the fixes.
SINCE = {"1.3.1": "1.1.0", "1.5.1": "1.4.1"}


@dataclass(frozen=True)
class Fix(Edited):
    """A fix of upstream's, taken back.

    It is tied to no cell: which cells of the zoo see it is in ``seen.tsv``.

    Attributes
    ----------
    name
        Its name in ``--patches``: the number of the pull request, then words.
    number
        Of the pull request, in pytorch/executorch.
    release
        The release that has the fix and that is edited, one of `SINCE`.
    kind
        One of `KINDS`: what the fix corrected.
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
    number: int
    release: str
    kind: str
    broke: str
    edits: tuple[Edit, ...]
    unreachable: str = ""
    unseen: str = ""

    def patch(self) -> Patch:
        """Return it as something that ``--patches`` can name on its release."""
        return Patch(self.name, None, self.broke, {self.release: {}}, self.install, UNGUARDED)

    @property
    def key(self) -> str:
        """Its number, and a digest of its edits: as ``seen.tsv`` names it."""
        return f"{self.number}@{hashlib.sha256(repr(self.edits).encode()).hexdigest()[:8]}"


def misfits(fixes: Iterable[Fix], release: str) -> list[str]:
    """Return a line for each fix that cannot be taken back in `release`, which is installed, beside those before it.

    Edits the code installed in this process.
    """
    found = []
    for fix in fixes:
        try:
            if fix.release == release:
                fix.install(release)
        except (EditError, SyntaxError) as error:
            found.append(f"{fix.name}: {error}")
    return found

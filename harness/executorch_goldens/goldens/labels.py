"""What messages call the two artifacts of a comparison: a golden and a run's, or a base and a head."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Labels:
    """The names of two compared artifacts.

    Attributes
    ----------
    old, new
        Short names, for the sides of a difference.
    reference
        The old one, within a sentence about the new one.
    unlike
        The end of a message about an artifact that has nothing to be compared with; empty where it needs none.
    unchanged
        When a pass changed nothing, within a sentence about the new artifact.
    """

    old: str
    new: str
    reference: str
    unlike: str
    unchanged: str

    @property
    def sides(self) -> tuple[str, str]:
        """The short names."""
        return self.old, self.new


#: Of a run, which compares with goldens.
OF_RUN = Labels("golden", "now", "its golden", "no golden yet", "when the golden was recorded")
#: Of two toolchains, where nothing is recorded.
OF_TOOLCHAINS = Labels("base", "head", "the base", "nothing to compare on the base", "on the base")

"""What messages call the two artifacts of a comparison."""

from __future__ import annotations

from typing import NamedTuple


class Labels(NamedTuple):
    """The nouns for two compared artifacts."""

    old: str
    new: str


#: Labels of a run, which compares with goldens.
OF_RUN = Labels("golden", "now")
#: Labels of two toolchains, where nothing is recorded.
OF_TOOLCHAINS = Labels("base", "head")
#: Labels of two variations that disagree, where their names are not known.
OF_VARIATIONS = Labels("one variation", "another")

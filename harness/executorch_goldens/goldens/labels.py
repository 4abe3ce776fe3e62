"""What messages call the two artifacts of a comparison."""

from __future__ import annotations

from typing import NamedTuple


class Labels(NamedTuple):
    """The nouns for two compared artifacts."""

    old: str
    new: str


#: Of a run, which compares with goldens.
OF_RUN = Labels("golden", "now")
#: Of two toolchains, where nothing is recorded.
OF_TOOLCHAINS = Labels("base", "head")

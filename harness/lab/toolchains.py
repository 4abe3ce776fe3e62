"""The toolchains that an instrument takes: named ones, or every release's."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.version import Version

from executorch_goldens.settings import config, releases
from executorch_goldens.toolchains.toolchain import Toolchain


def all_of(words: Sequence[str]) -> dict[str, Toolchain]:
    """Return toolchains by release, the oldest first; without `words` those of every release.

    Raises as `Toolchain.from_name`.
    """
    found = [Toolchain.from_name(word, config.load()) for word in words or releases.load().releases]
    return {
        each.release.version: each for each in sorted(found, key=lambda each: Version(each.release.version))
    }

"""Known defects: ``known.toml`` in a root of goldens has cells that upstream gets wrong and that no patch corrects.

A cell is accepted while its verdict is the declared one::

    [releases."1.5.1".known]
    "tosa-fp/gather" = "corrupt: a gather by two index tensors becomes an invalid TOSA graph (#12345)"
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from executorch_goldens.goldens import merging
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.settings import releases
from executorch_goldens.settings.releases import KnownDefect, Release

FILE = "known.toml"


def read(goldens: Path) -> Mapping[str, Mapping[str, KnownDefect]]:
    """Return the known defects of a root, by release and cell; raise `releases.MatrixError`."""
    path = goldens / FILE
    if not path.is_file():
        return {}
    try:
        return releases.known_defects(path)
    except releases.MatrixError as error:
        if conflict := merging.conflict_in(path):
            raise releases.MatrixError(f"{path}: {conflict}. {merging.take_a_side(path)}") from error
        raise


def in_root(release: Release, goldens: Path) -> Release:
    """Return a release with the known defects of a root."""
    known = read(goldens).get(release.version, {})
    return dataclasses.replace(release, known=known, known_in=str(goldens / FILE))


def as_known(defect: KnownDefect | None, judged: Verdict) -> Verdict:
    """Return a verdict as known where it is the declared one."""
    if defect is None or judged.is_of_harness or defect.verdict != judged.name:
        return judged
    return dataclasses.replace(judged, known=True)

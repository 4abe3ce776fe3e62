"""The core of a zoo: the committed cores, and runs of the core tier; harness/lab/tests has how one is drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell
from executorch_goldens.goldens import golden
from executorch_goldens.judging.updating import Updating
from executorch_goldens.running import core
from executorch_goldens.running.options import CORE, FULL
from executorch_goldens.settings import releases
from lab.core import computing
from lab.core.wanted import Source
from tests import GOLDENS
from tests.runs.test_bad_input import options
from tests.support.making import golden_of, lowered
from tests.support.screens import screen

VERSIONS = list(releases.load().releases)

A, B, C, D = (Cell("tosa-fp", name) for name in "abcd")


# The committed cores

MAPPED = [version for version in VERSIONS if (GOLDENS / version / "reach.xz").is_file()]


@pytest.mark.parametrize("version", MAPPED)
def test_the_committed_core_has_what_a_core_must_have(version: str) -> None:
    made = Source.from_root(GOLDENS, version)
    assert computing.lacking(made, made.committed) == [], f"run: {core.UPDATE}"


# Runs


@pytest.mark.parametrize(
    ("committed", "asked", "tier"),
    [
        (True, {}, CORE),
        (False, {}, FULL),
        (True, {"tier": FULL}, FULL),
        (True, {"cells": ("tosa-fp/*",)}, FULL),
        (True, {"update": Updating(new=True)}, FULL),
        (True, {"cells": ("tosa-fp/*",), "tier": CORE}, CORE),
    ],
    ids=str,
)
def test_a_run_takes_the_core_unless_it_says_which_cells_or_writes(
    tmp_path: Path, committed: bool, asked: dict[str, object], tier: str
) -> None:
    if committed:
        (tmp_path / core.FILE).write_text("")
    assert core.tier(options(**asked), tmp_path) == tier


def test_a_cell_without_a_golden_is_checked_unless_a_known_defect_says_why(tmp_path: Path) -> None:
    (tmp_path / core.FILE).write_text("# A head.\ntosa-fp/a  target tosa-fp\n")
    for cell in (A, B):
        golden.write(golden.file_of(tmp_path, cell), golden_of(lowered()))
    assert core.within(tmp_path, (A, B, C, D), (A, B, C, D), {D}) == {A, C}
    assert core.within(tmp_path, (B, C), (A, B, C, D), {D}) == {C}


@pytest.mark.parametrize("text", ["tosa-fp/gone\n", "tosa-fp\n"], ids=["gone", "damaged"])
def test_a_core_that_does_not_fit_the_zoo_is_an_error_with_the_command(
    tmp_path: Path, text: str, snapshot: SnapshotAssertion
) -> None:
    (tmp_path / core.FILE).write_text(text)
    with pytest.raises(core.CoreError) as raised:
        core.within(tmp_path, (A,), (A,), ())
    assert screen(str(raised.value), {tmp_path: "ROOT"}) == snapshot

"""The grid: its signs."""

from executorch_goldens.goldens.decisions import DEFECTS
from executorch_goldens_plugins.report.grid import SIGNS


def test_verdicts_of_defects_are_verdicts() -> None:
    assert set(DEFECTS) < set(SIGNS)
    assert set(SIGNS) - set(DEFECTS) >= {
        "stable",
        "new",
        "changed",
        "renamed",
        "unexpected",
        "damaged-golden",
    }

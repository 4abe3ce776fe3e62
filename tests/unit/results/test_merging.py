"""Results of several runs, beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from executorch_goldens.results import merging
from executorch_goldens.results.merging import MergeError, PartialResults
from tests.support.rows import row

NOT_USED: Any = None


def test_a_cell_that_two_runs_found_is_refused_with_both_folders() -> None:
    one, other = (PartialResults(Path(name), NOT_USED, [row(case=name)]) for name in ("one", "other"))
    assert list(merging.by_name([one, other]).values()) == [(one, one.rows[0]), (other, other.rows[0])]
    again = PartialResults(Path("again"), NOT_USED, one.rows)
    both = r"in both one/tosa-fp/one and again/tosa-fp/one: name one folder"
    with pytest.raises(MergeError, match=both):
        merging.by_name([one, other, again])

"""Lines of results."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.goldens.findings import Deviated, TensorType, WrongValues
from executorch_goldens.results import rows as results
from tests.support.rows import row


def test_numbers_that_json_does_not_have_are_text_and_are_read_back(tmp_path: Path) -> None:
    of_type = TensorType("float32", (2,))
    found = WrongValues(0, "example", Deviated(of_type, of_type, 1, 2, math.inf, math.inf))
    made = row(verdict="corrupt", findings=(found,), accuracy=Accuracy(math.inf, 0.1, math.inf, -math.inf))
    file = tmp_path / results.FILE
    results.write(file, [made], [made.cell])
    json.loads(file.read_text(), parse_constant=pytest.fail)
    assert results.read(file) == [made]

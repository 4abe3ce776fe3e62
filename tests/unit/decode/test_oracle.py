"""Decoded values equal those that flatc, and ExecuTorch itself, read from the same bytes."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from executorch_goldens.decode import Schemas
from tests.support.decoding.generate import tosa_payload, xnnpack_payload
from tests.support.decoding.oracle import Tally, check
from tests.support.decoding.payloads import PAYLOADS, SCHEMAS, identify

FLATC = shutil.which("flatc")
HAS_EXECUTORCH = importlib.util.find_spec("executorch") is not None


@pytest.mark.skipif(FLATC is None, reason="needs flatc: put a release's bin first on PATH")
@pytest.mark.parametrize("path", PAYLOADS, ids=identify)
def test_decoded_fields_are_those_of_flatc_and_executorch(path: Path) -> None:
    tally = Tally()
    assert FLATC is not None
    check(tally, path.read_bytes(), SCHEMAS, FLATC, HAS_EXECUTORCH)
    assert tally.problems == []
    assert tally.counts["values"] > 50


@pytest.mark.skipif(FLATC is None, reason="needs flatc: put a release's bin first on PATH")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("make", "enumeration"), [(tosa_payload, "Op"), (xnnpack_payload, "")])
def test_every_operator_attribute_and_type_of_the_schema_is_decoded(
    make: Callable[[str, Schemas, int], bytes], enumeration: str, seed: int
) -> None:
    assert FLATC is not None
    tally = Tally()
    check(tally, make(FLATC, SCHEMAS, seed), SCHEMAS, FLATC, HAS_EXECUTORCH)
    assert tally.problems == []
    if enumeration:
        known = len(SCHEMAS.load("tosa").enums[enumeration].names)
    else:
        known = len(SCHEMAS.load("xnnpack").unions["XNodeUnion"].members)
    assert sum(name.startswith("operator ") for name in tally.counts) == known

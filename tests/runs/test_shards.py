"""Runs of a shard."""

from __future__ import annotations

import pytest

from tests.support.runner import Runner


@pytest.mark.parametrize(
    ("shard", "what"),
    [
        ("6/5", "the numbers are 1 to 5"),
        ("0/5", "the numbers are 1 to 5"),
        ("half", "such as 2/5"),
        ("1/0", "1 to 0"),
    ],
)
def test_what_is_no_shard_is_one_error(runner: Runner, shard: str, what: str) -> None:
    finished = runner("--shard", shard)
    finished.refused("--shard", repr(shard), what)
    assert len([line for line in finished.output.splitlines() if "error" in line]) == 1

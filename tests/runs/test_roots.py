"""Ownership of a root of goldens, and the names of its cells."""

from __future__ import annotations

import pytest

from executorch_goldens.goldens.record import FORMAT
from tests.conftest import Artifacts
from tests.runs.conftest import SEEDS, UPDATE, WHOLE
from tests.support.runner import Runner


@pytest.mark.slow
def test_another_zoo_in_a_root_is_refused_before_anything_is_written_or_deleted(
    recorded: Runner, artifacts: Artifacts
) -> None:
    before = recorded.files()
    recorded.answers({"*": artifacts["steady"]})
    firmware = ("--models", recorded.zoo("firmware", "one-linear-layer"))
    for asked in ((), (UPDATE,), ("--models", "zoo_both", UPDATE)):
        finished = recorded(*SEEDS, *firmware, *asked)
        finished.refused(str(recorded.goldens), "goldens of zoo_both", "firmware", "--goldens DIR")
        assert not finished.rows
    assert recorded.files() == before


def test_goldens_that_do_not_say_whose_they_are_are_read_and_written_only_once_they_say_so(
    recorded: Runner,
) -> None:
    (recorded.goldens / "zoo.txt").unlink()
    before = recorded.files()
    assert recorded(*WHOLE).code == 0
    lines = f"format: {FORMAT}", "models: zoo_both"
    recorded(*WHOLE, UPDATE).refused(*(f"'{line}'" for line in lines), str(recorded.goldens / "zoo.txt"))
    assert recorded.files() == before
    (recorded.goldens / "zoo.txt").write_text("".join(f"{line}\n" for line in lines))
    assert recorded(*WHOLE, UPDATE).code == 0


def test_names_that_only_look_alike_have_goldens_of_their_own(runner: Runner, artifacts: Artifacts) -> None:
    names = ["a-b", "ab", "a-" + "b" * 61, "a-" + "b" * 62]
    runner.answers({"*": artifacts["steady"]})
    finished = runner(*SEEDS, "--models", runner.zoo("alike", *names), "--cell", "tosa-fp/*", UPDATE)
    assert finished.code == 0, finished.output
    assert runner.recorded() == {f"tosa-fp/{name}" for name in names}


@pytest.mark.parametrize(
    ("names", "facts"),
    [
        (["alpha", "alpha"], ["'alpha'", "registered twice"]),
        (["alpha", "Alpha"], ["'Alpha'", "lower-case-words"]),
    ],
    ids=["twice", "case fold"],
)
def test_names_that_would_share_a_golden_are_an_error(
    recorded: Runner, names: list[str], facts: list[str]
) -> None:
    before = recorded.files()
    recorded.environment.clear()
    recorded(*SEEDS, "--models", recorded.zoo("colliding", *names), UPDATE).refused("colliding", *facts)
    assert recorded.files() == before

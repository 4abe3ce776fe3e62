"""The runs of these tests: forks do what interpreters of their own do."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.conftest import Artifacts
from tests.support.runner import Finished, Runner


def test_a_run_in_a_fork_is_one_in_an_interpreter_of_its_own(runner: Runner, artifacts: Artifacts) -> None:
    zoo = runner.zoo("zoo_two", "alpha", "beta")
    runner.answers({"alpha": artifacts["steady"], "beta": artifacts["set-of-strings"]})
    words = ("--models", zoo, "--cell", "xnnpack-fp32/*", "--variations", "0,4", "-v")
    forked = runner(*words)
    alone = replace(runner, program=("-X", "utf8", *runner.program))(*words)
    assert forked.verdicts() == {"xnnpack-fp32/alpha": "new", "xnnpack-fp32/beta": "order-only"}
    assert without_times(forked) == without_times(alone)


def without_times(finished: Finished) -> Finished:
    return replace(finished, output=re.sub(r"\b\d+\.\d+ ?s\b", "TIME", finished.output))

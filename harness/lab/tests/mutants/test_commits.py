"""Commits in a row: what is said of them together, and the row of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.mutants import commits, recall
from lab.mutants.recall import REACHED, SEEN, UNREACHED

READ = {"a": {"red": "rightly", "why": "a pool pads by one more"}}


def result(name: str, said: str, seconds: int = 60, **more: Any) -> dict[str, Any]:
    return {"name": name, "title": "Fix", "result": said, "seconds": seconds, **more}


def test_a_red_commit_that_nobody_read_is_counted_apart_from_those_rightly_red() -> None:
    every = [result("a", SEEN, 30), result("b", SEEN), result("c", REACHED), result("d", UNREACHED, 600)]
    assert commits.summary(every, READ) == (
        "4 commits: 2 differed (1 not read, 1 rightly), 1 were reached and identical, 1 not reached, 0 without code; "
        "4 with the default budget took 1.0 minutes each (median; at most 10.0)"
    )


def test_a_row_has_the_lines_that_were_reached_and_what_was_read() -> None:
    reach = {"reached": 3, "unreached": ["backends/arm/x.py:7"]}
    row = commits._row(result("a", SEEN, cells=12, reach=reach, kinds={"better": 2}), READ["a"])
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[0].startswith("[a](https://github.com/pytorch/executorch/commit/a)")
    assert cells[1:] == [SEEN, "3 of 4", "12", "60", "2 better", "rightly: a pool pads by one more"]


def test_what_was_compared_again_replaces_its_committed_result_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall.pages, "update", lambda names: None)
    committed, kept = tmp_path / "committed", tmp_path / "1.5.1.jsonl"
    for folder, made in (
        (committed, [result("a", UNREACHED), result("b", SEEN), result("gone", SEEN)]),
        (tmp_path, [result("c", SEEN), result("a", SEEN)]),
    ):
        folder.mkdir(exist_ok=True)
        (folder / kept.name).write_text("".join(f"{json.dumps(each)}\n" for each in made))
    recall.accept(kept, committed, ["a", "b", "c", "d"])
    assert recall.results(committed / kept.name) == [result(name, SEEN) for name in ("a", "b", "c")]

"""What is kept of a cell, when a run is killed and when an earlier version has left it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.results import proposals
from executorch_goldens.results import rows as results
from executorch_goldens.results.evidence import Evidence
from executorch_goldens.results.proposals import CellFile, ProposalError
from executorch_goldens.results.rows import Results
from executorch_goldens.settings import releases

CELL = Cell("tosa-fp", "linear")
#: Events of the interpreter before which a run is killed: each changes a file or a folder.
CHANGES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree")
KILLED = 9


def leave(kept: Results, what: str) -> None:
    """Keep a cell, and the artifact of one variation."""
    place = kept.aside(CELL) / f"seed0-heap0-{what}"
    place.mkdir(parents=True)
    (place / proposals.MADE).write_text(what)
    kept.settle(CELL, CellFile(evidence=Evidence(diverging=what)))


def killed(kept: Results, number: int) -> bool:
    """Keep a cell in a process that is killed before that change; return whether there was one."""
    process = os.fork()
    if process == 0:
        left = iter(range(number))

        def kill(event: str, _: object) -> None:
            if event in CHANGES and next(left, None) is None:
                os._exit(KILLED)

        sys.addaudithook(kill)
        leave(kept, "new")
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == KILLED


def there(folder: Path) -> tuple[str, ...]:
    """Return what is kept in a folder: what its file says, and what its artifacts are."""
    artifacts = sorted(path.read_text() for path in folder.glob(f"*/{proposals.MADE}"))
    return (CellFile.load(folder).evidence.diverging, *artifacts)


def test_a_killed_run_leaves_all_of_a_cell_or_nothing(tmp_path: Path) -> None:
    kept = Results(tmp_path, releases.load().release("1.4.1"))
    folder, found = kept.folder(CELL), set()
    number, was_killed = 0, True
    while was_killed:
        kept.open()
        leave(kept, "old")
        was_killed = killed(kept, number)
        found.add(there(folder))
        # What it has left aside is nowhere in the next run's results.
        kept.close([CELL])
        assert not list(kept.root.glob("*~"))
        number += 1
    assert number > len(CHANGES)
    assert found == {("old", "old"), ("",), ("new", "new")}


def test_a_line_whose_writer_was_killed_is_no_result(tmp_path: Path) -> None:
    (tmp_path / results.FILE).write_text('{"format": 2, "release": "1.4.1", "targ')
    assert results.read(tmp_path / results.FILE) == []


def test_what_an_earlier_version_left_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "1.4.1" / "tosa-fp" / "linear"
    folder.mkdir(parents=True)
    (folder / "proposal.json").write_text('{"format": 2}')
    with pytest.raises(ProposalError, match="Run its cell again") as raised:
        list(proposals.find(tmp_path))
    assert raised.value.path == folder / "proposal.json"

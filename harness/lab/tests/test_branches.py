"""Branches that exports take: recorded without changing an export, found in the sources, written and read again."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import executorch
import pytest

from executorch_goldens import patches
from executorch_goldens.artifact import Artifact, Cell, Lowered, Outcome
from executorch_goldens.goldens import golden, rendering
from executorch_goldens.settings import releases
from executorch_goldens.settings.exports import Settings, default_interpreter
from lab import branches
from lab.branches import page
from lab.branches.command import record
from lab.branches.records import Records
from lab.branches.sources import Branch, Sources
from tests import REPOSITORY

RELEASE = releases.load().release(releases.load().default)
LINEAR = Cell("tosa-int", "linear")


def sources(folder: Path, text: str) -> Sources:
    """Return the sources of a release that has one file, with `text`: a package, as its imports are queried."""
    package = folder / "executorch"
    file = package / branches.FOLDERS[0] / "fold.py"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return Sources(package)


PASS = """\
if __name__ != "fold":
    NAMES = []


class Fold:
    def call(self, dims):
        if (
            dims is None
            or len(dims) == 1
        ):
            return 1
        if len(dims) > 4:
            raise ValueError(dims)
        for dim in dims:
            check(dim)


def check(dim):
    return 0 if dim < 0 else 1


def is_even(dim):
    if dim % 2:
        return False
    return True
"""
FILE = f"{branches.FOLDERS[0]}/fold.py"


def of_pass(start: int, end: int, raises: bool = False) -> Branch:
    return Branch(FILE, start, end, "Fold", "Fold.call", raises)


def test_a_branch_belongs_to_the_class_of_its_function_or_to_the_module(tmp_path: Path) -> None:
    assert sorted(sources(tmp_path, PASS).branches()) == [
        *(of_pass(7, 11), of_pass(7, 12), of_pass(12, 13, raises=True), of_pass(12, 14)),
        *(of_pass(14, -6), of_pass(14, 15)),
        *(Branch(FILE, 23, end, "fold", "is_even", False) for end in (24, 25)),
    ]


def test_a_jump_from_within_a_statement_of_several_lines_is_one_from_its_first(tmp_path: Path) -> None:
    jumps = {FILE: [(-6, 7), (7, 8), (8, 9), (9, 12), (12, 14)], "elsewhere.py": [(1, 2)]}
    assert sources(tmp_path, PASS).taken(jumps) == {of_pass(7, 12), of_pass(12, 14)}


def test_tests_that_a_release_ships_beside_its_passes_have_no_branches(tmp_path: Path) -> None:
    found = sources(tmp_path, PASS)
    within = found.package / branches.FOLDERS[0] / "test"
    within.mkdir()
    (within / "test_fold.py").write_text(PASS)
    assert {branch.file for branch in found.branches()} == {FILE}


def test_passes_of_other_backends_have_no_branches(tmp_path: Path) -> None:
    found = sources(tmp_path, "from executorch.backends.transforms.ours import Fold\n" + PASS)
    transforms = found.package / "backends" / "transforms"
    transforms.mkdir()
    for name in ("ours", "theirs"):
        (transforms / f"{name}.py").write_text(PASS)
    assert {branch.file for branch in found.branches()} == {FILE, "backends/transforms/ours.py"}


def test_records_of_several_exports_are_added_up(tmp_path: Path) -> None:
    records = Records(tmp_path / "deep")
    records.write(LINEAR, "0", {"a.py": [(1, 2)], "b.py": []})
    records.write(LINEAR, "4", {"a.py": [(1, 3)]})
    records.write(Cell("tosa-fp", "linear"), "0", {"a.py": [(1, 2)]})
    assert list(records.cells()) == [Cell("tosa-fp", "linear"), LINEAR]
    assert records.of([LINEAR, Cell("tosa-fp", "gone")]) == {"a.py": {(1, 2), (1, 3)}, "b.py": set()}


@pytest.fixture
def tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Mapping[str, page.Taken]], list[Branch]]:
    """Writes the tables of release 9.9.9, and returns its branches."""
    monkeypatch.setattr(page, "TAKEN", tmp_path)
    every = sorted(sources(tmp_path, PASS).branches())

    def write(taken: Mapping[str, page.Taken]) -> list[Branch]:
        files = (page.branches_of("9.9.9"), page.cells_of("9.9.9"))
        for file, text in zip(files, page.texts(every, taken), strict=True):
            file.write_text(text)
        return every

    return write


def test_what_cells_take_is_read_again_without_what_only_drawn_models_take(
    tmp_path: Path, tables: Callable[[Mapping[str, page.Taken]], list[Branch]]
) -> None:
    every = sorted(sources(tmp_path / "again", PASS).branches())
    tables(
        {
            page.CORE: page.Taken(1, 2, every[:1]),
            page.ZOO: page.Taken(1, 2, every[:2]),
            page.SITUATIONS: page.Taken(0, 0, ()),
            page.GUESTS: page.Taken(1, 2, every[2:3]),
            page.DRAWN: page.Taken(1, None, every[3:4]),
        }
    )
    written = page.branches_of("9.9.9").read_text().splitlines()
    assert written[1] == f"{FILE}\t7\t11\tFold\tFold.call\t\tcore zoo"
    assert written[-1].endswith("\t-")
    assert page.of_cells("9.9.9") == set(every[:3])
    assert page.of_cells("0.0.0") == set()


def test_the_page_counts_what_each_group_takes_and_lists_what_none_does(tmp_path: Path) -> None:
    every = sorted(sources(tmp_path, PASS).branches())
    nothing = page.Taken(0, 5, ())
    taken = {page.CORE: page.Taken(1, 2, every[:3]), page.ZOO: page.Taken(2, 9, every[:5])}
    taken |= {page.SITUATIONS: nothing, page.GUESTS: nothing, page.DRAWN: page.Taken(7, None, every[5:6])}
    text = "\n".join(page.page("9.9.9", every, taken))
    # One of the eight leads to a raise.
    assert "| core | 1 of 2 | 2 of 7 (28.6%) |\n| zoo | 2 of 9 | 4 of 7 (57.1%) |" in text
    assert "| generator | 7 | 1 of 7 (14.3%) |\n| any of these | | 5 of 7 (71.4%) |" in text
    link = f"https://github.com/pytorch/executorch/blob/v9.9.9/{FILE}"
    assert f"| [Fold]({link}) | 5 | 1 | not known | `call` 14→15 |" in text
    assert "| Fold | 5 | 2 | 4 | 0 | 0 | 1 | 5 |\n| fold | 2 | 0 | 0 | 0 | 0 | 0 | 0 |" in text


def test_what_is_written_of_each_group_is_read_again(
    tmp_path: Path, tables: Callable[[Mapping[str, page.Taken]], list[Branch]]
) -> None:
    """Groups whose records are on another machine stay as they are written."""
    every = sorted(sources(tmp_path / "again", PASS).branches())
    taken = {page.CORE: page.Taken(1, 2, set(every[:3])), page.ZOO: page.Taken(2, 9, set(every[:5]))}
    taken |= {page.SITUATIONS: page.Taken(0, 5, set()), page.GUESTS: page.Taken(0, 0, set())}
    taken |= {page.DRAWN: page.Taken(7, None, {every[5]})}
    tables(taken)
    assert page.read("9.9.9") == (every, taken)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, Records]:
    """One real export, with its record."""
    records = Records(tmp_path_factory.mktemp("records"))
    settings = Settings(
        *(default_interpreter(), ("models",), patches.select("auto", RELEASE.patches), 1, 180.0),
        observer=branches.RECORDER,
    )
    (outcome,) = record([LINEAR], settings, records, math.inf)
    return outcome, records


def test_a_recorded_export_takes_branches_of_what_works_on_it_and_of_nothing_else(
    exported: tuple[Outcome, Records],
) -> None:
    _, records = exported
    found = Sources(Path(next(iter(executorch.__path__)))).taken(records.of([LINEAR]))
    assert {"FuseConstantArgsPass", "FoldAndAnnotateQParamsPass"} <= {branch.owner for branch in found}
    assert {branch.file.split("/")[1] for branch in found} == {"arm", "transforms"}


def test_a_recorded_export_makes_the_bytes_of_the_golden(exported: tuple[Outcome, Records]) -> None:
    outcome, _ = exported
    assert isinstance(outcome.result, Artifact)
    assert isinstance(outcome.result.result, Lowered)
    texts = golden.read(golden.directory(REPOSITORY / "goldens" / RELEASE.version, LINEAR))
    assert texts is not None
    assert hashlib.sha256(outcome.result.result.pte).hexdigest() in texts[golden.MANIFEST]
    assert rendering.trace_text(outcome.result.watched) == texts[golden.TRACE]

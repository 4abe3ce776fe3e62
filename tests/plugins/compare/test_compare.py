"""``goldens compare``: two environments with real exports; the head has other Python sources of ExecuTorch."""

from __future__ import annotations

import argparse
import ast
import base64
import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens import plugins
from executorch_goldens.artifact import Artifact, Outcome
from executorch_goldens.cli import DIFFERENT, ERROR, SAME, main
from executorch_goldens.errors import UsageError
from executorch_goldens.files.plain import plain
from executorch_goldens.files.untrusted import markdown
from executorch_goldens.goldens.findings import Fault
from executorch_goldens.patches import PATCHES
from executorch_goldens.results.compared import DATA, MARK, ComparedSides
from executorch_goldens.running.selection import load_cells
from executorch_goldens.settings import config
from executorch_goldens.settings.config import Config
from executorch_goldens.settings.exports import Settings
from executorch_goldens.sweep.store import Store
from executorch_goldens.toolchains.environments import Environments, python_of
from executorch_goldens.toolchains.naming import Sources
from executorch_goldens.toolchains.sources import laid_over, package_in
from executorch_goldens.toolchains.toolchain import Toolchain
from executorch_goldens.zoo import variations
from executorch_goldens_plugins.compare import command as command
from executorch_goldens_plugins.compare import sides
from executorch_goldens_plugins.compare.asked import Asked
from executorch_goldens_plugins.compare.calls import CHANGING
from executorch_goldens_plugins.compare.exporting.instrument import instrument
from executorch_goldens_plugins.compare.making import Comparison, alone, clear
from executorch_goldens_plugins.compare.page import ComparisonPage
from executorch_goldens_plugins.compare.reach import map as maps
from executorch_goldens_plugins.compare.reach.edits import between
from executorch_goldens_plugins.compare.searching import SEED
from executorch_goldens_plugins.compare.sides import Side, Sides
from lab.reach import building
from tests import REPOSITORY
from tests.support.commands import GOLDENS, ended
from tests.support.runner import RUN_LIMIT
from tests.support.screens import screen

#: The settings of one shortcut.
FIRST = dict(list(plugins.shortcuts().items())[:1])
PASS = "backends/arm/_passes/rewrite_conv_pass.py"
#: One that the pass makes, and one of the other backend.
CELLS = ("tosa-fp/conv2d-depthwise-scaled", "xnnpack-fp32/linear")
#: The pass's text, and its replacement.
DILATION = "                dilation = tuple(dilation_list)\n"
SWAPPED = f"{DILATION}                stride = tuple(reversed(stride))\n"
TWO_OUTPUTS = (
    f"{DILATION}                if len(graph_module.graph.output_node().args[0]) > 1:\n"
    "                    stride = tuple(reversed(stride))\n"
)
REFACTORED = "                same = dilation_list\n                dilation = tuple(same)\n"

Head = Callable[[str], Path]
Compare = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Head]:
    """Make an environment whose pass says something else; return its Python."""
    # Files are linked, which one file system takes.
    place = Path(tempfile.mkdtemp(prefix="heads-", dir=Path(sys.prefix).parent))
    below = Path(sys.prefix)
    text = (package_in(below) / PASS).read_text()
    assert text.count(DILATION) == 1

    def made(instead: str) -> Path:
        checkout = tmp_path_factory.mktemp("checkout")
        (checkout / PASS).parent.mkdir(parents=True)
        (checkout / PASS).write_text(text.replace(DILATION, instead))
        return python_of(laid_over(Environments(place, lambda line: None), below, Sources(checkout)))

    yield made
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def compare(tmp_path_factory: pytest.TempPathFactory) -> Compare:
    """Run the command, over two cells; exports are kept from one call to the next."""
    folder = tmp_path_factory.mktemp("compare")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        cells = [word for cell in CELLS for word in ("--cell", cell)]
        command = [*GOLDENS, "compare", *words, *cells, "--sweeps", folder / "made", "--jobs", "2"]
        return ended(command, XDG_CACHE_HOME=str(folder / "cache"))

    return run


@pytest.fixture(scope="module")
def swapped(head: Head) -> Path:
    return head(SWAPPED)


def two_sides(head: Path, reach: tuple[str, ...] = ()) -> tuple[Side, Side]:
    """Return this Python and that of a head as sides.

    What fits both is known here: asking each environment takes as long as its exports.
    """
    repository = config.load(REPOSITORY)
    how = Settings(
        Path(sys.executable),
        repository.zoos(None),
        (),
        2,
        RUN_LIMIT,
        instrument=instrument(reach),
        changing=CHANGING,
    )
    base, other = (
        Side(word, Toolchain.from_name(str(python), repository), replace(how, interpreter=python))
        for word, python in (("base", Path(sys.executable)), ("head", head))
    )
    return base, other


def compared(swapped: Path, folder: Path, *seeds: int) -> Comparison:
    """Return a comparison of both sides under each seed, whose base records what its exports ran beside the pass."""
    base, head = two_sides(swapped)
    base = replace(
        base, settings=replace(base.settings, instrument=instrument(["executorch/backends/arm/_passes"]))
    )
    cells = tuple(cell for cell in load_cells(base.settings.models, base.release) if str(cell) in CELLS)
    both = Sides(base, head, cells, {"base": 0, "head": 0}, ())
    return Comparison(both, cells, variations.variations(seeds), folder)


#: What the base made, and the page of the comparison.
Compared = tuple[list[Outcome], ComparisonPage]


@pytest.fixture(scope="module")
def made(swapped: Path, tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """The only comparison of the quick tests: real exports of both sides, one of each cell."""
    comparison = compared(swapped, tmp_path_factory.mktemp("page") / "made", 0)
    of_base: list[Outcome] = []

    def wanted(_: object, outcomes: Sequence[Outcome]) -> bool:
        of_base.extend(outcomes)
        return True

    comparison.run(wanted)
    return of_base, ComparisonPage(comparison)


@pytest.fixture(scope="module")
def page(made: Compared) -> ComparisonPage:
    return made[1]


def names(page: ComparisonPage) -> dict[object, str]:
    """Return what screens say instead of where the sides are."""
    both = page.comparison.sides
    found: dict[object, str] = {both.base.release.version: "RELEASE"}
    for side, name in ((both.base, "BASE"), (both.head, "HEAD")):
        python = str(side.toolchain.python)
        found |= {python: name, markdown(python): name}
    return found


def test_a_pass_that_swaps_strides_is_newly_wrong_and_named(
    page: ComparisonPage, snapshot: SnapshotAssertion
) -> None:
    assert screen(page.lines(), names(page)) == snapshot
    assert page.differs
    exports = page.comparison.exports
    assert (exports.made, exports.reused, exports.searched) == (4, 0, 0)
    assert exports.core_seconds > 0


def test_the_same_is_in_json_and_in_the_comment(page: ComparisonPage, snapshot: SnapshotAssertion) -> None:
    found = json.loads(json.dumps(plain(page.data())))
    assert not found["same"]
    assert {cell: each["kind"] for cell, each in found["cells"].items()} == {
        "tosa-fp/conv2d-depthwise-scaled": "wrong",
        "xnnpack-fp32/linear": "identical",
    }
    assert found["cells"]["tosa-fp/conv2d-depthwise-scaled"]["cause"].startswith("RewriteConvPass (TOSA): ")
    assert found["cells"]["xnnpack-fp32/linear"]["what"] == ""
    wrong = msgspec.convert(found, ComparedSides).cells["tosa-fp/conv2d-depthwise-scaled"]
    assert (wrong.base.findings[0].fault, wrong.head.findings[0].fault) == (Fault.NONE, Fault.TOOLCHAIN)
    assert wrong.head.cause == {"kind": "does-not-run", "error": "ValueError: Invalid TOSA graph"}
    assert screen(page.markdown(), names(page)) == snapshot


@pytest.mark.slow
def test_both_sides_export_every_variation_at_the_same_time(swapped: Path, tmp_path: Path) -> None:
    comparison = replace(compared(swapped, tmp_path / "made", 0, 4), store=Store(tmp_path / "cache"))
    comparison.run(lambda *_: True)
    page = ComparisonPage(comparison)
    assert next(iter(page.lines())) == "identical: 1 of 2 cells; 1 newly wrong"
    assert "exports: 8, 0 of them from the cache" in page.facts()


@pytest.fixture(scope="module")
def mapped(made: Compared, tmp_path_factory: pytest.TempPathFactory) -> Config:
    """Return the repository with a root of goldens in which the installed release has a map, of two cells."""
    repository = replace(config.load(REPOSITORY), goldens=tmp_path_factory.mktemp("goldens"))
    outcomes, page = made
    records = [
        building.ReachRecord("models", each.cell, each.core_seconds, "", each.result.reach)
        for each in outcomes
        if isinstance(each.result, Artifact)
    ]
    assert len(records) == len(CELLS)
    base = page.comparison.sides.base
    version = base.release.version
    found = building.build(
        version, maps.lock_of(version), "2026-11-28", records, base.toolchain.site_packages
    )
    (repository.goldens / version).mkdir()
    building.write(repository.goldens / version / maps.FILE, found)
    return repository


def asked(repository: Config, head: Path, *words: str) -> Asked:
    """Return what is asked for by two names, the first of which is this Python, and further words."""
    parser = argparse.ArgumentParser()
    command.add_to(parser.add_subparsers())
    arguments = parser.parse_args(["compare", sys.executable, str(head), *words])
    base, other = (Toolchain.from_name(str(python), repository) for python in (sys.executable, head))
    return Asked.parse(base, other, arguments, repository)


def test_two_names_choose_the_cells_that_reach_the_edit(mapped: Config, swapped: Path) -> None:
    found = asked(mapped, swapped, "--jobs", "2")
    assert list(map(str, found.cells)) == [CELLS[0]]
    assert not found.choice.unmapped
    assert found.files == ("executorch/" + PASS,)
    assert list(found.facts()) == ["cells: 1 that reach the edit, from 1 source"]
    # Nothing can be exported in no time: what is left out is counted.
    late = asked(mapped, swapped, "--jobs", "1", "--budget", "0.01")
    assert not late.cells
    assert list(map(str, late.left_out)) == [CELLS[0]]


def test_cells_that_somebody_names_are_compared_whatever_they_reach(mapped: Config, swapped: Path) -> None:
    found = asked(mapped, swapped, "--cell", CELLS[1])
    assert found.choice is None
    assert found.edits is not None


def test_a_pass_has_the_cells_that_reach_it(mapped: Config, swapped: Path) -> None:
    for head in (swapped, Path(sys.executable)):
        found = asked(mapped, head, "--pass", "RewriteConvPass")
        assert list(map(str, found.cells)) == [CELLS[0]]
        assert list(found.facts()) == ["cells: 1 that reach RewriteConvPass, from 1 source"]
    with pytest.raises(UsageError, match=r"no cell of the map of .* reaches it; near: RewriteConvPass"):
        asked(mapped, swapped, "--pass", "RewriteConvPas")
    with pytest.raises(UsageError, match=r"--budget 0.01 is too short for any of the 1 cell that reach it"):
        asked(mapped, swapped, "--pass", "RewriteConvPass", "--budget", "0.01")


def test_a_release_without_a_map_has_its_core_compared(mapped: Config, swapped: Path, tmp_path: Path) -> None:
    found = asked(replace(mapped, goldens=tmp_path), swapped)
    assert found.choice is None
    (why,) = found.facts()
    assert why.startswith("cells: no map of reach for ")


def test_an_edit_is_a_statement_that_the_base_has_not(swapped: Path) -> None:
    both = [
        Toolchain.from_name(str(python), config.load(REPOSITORY)).site_packages
        for python in (sys.executable, swapped)
    ]
    edits = between(*both)
    assert edits.files == ("executorch/" + PASS,)
    assert not edits.others
    (edit,) = edits.every
    assert edit.function.startswith("RewriteConvPass.")
    assert [statement.text for statement in edit.head] == ["stride = tuple(reversed(stride))"]


@pytest.mark.slow
def test_a_search_finds_what_no_cell_shows_and_says_how_to_keep_it(
    mapped: Config, head: Head, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = head(TWO_OUTPUTS)
    found = asked(mapped, python)
    both = Sides(*two_sides(python, found.files), found.cells, {"base": 0, "head": 0}, ())
    varied = tuple(variations.variations(variations.named("quick")))
    comparison = Comparison(both, found.cells, varied, tmp_path / "made", beside=True)
    comparison.run(lambda *_: True, found.search)
    model = comparison.model
    assert model is not None, comparison.searched
    assert model.changes[0].startswith("read-twice")
    lines = list(ComparisonPage(comparison, asked=found).lines())
    assert lines[0].startswith("identical: 1 of 2 cells; 1 newly failing; 2 of 2 edited lines reached")
    assert f"  keep {model.cell} in a module of a zoo: {model.line}" in lines
    counts = r"\d+ models tried, of which \d+ ran an edited line(, which gave the same in \d+)?"
    assert any(re.fullmatch(rf"  searched: {counts}; seed {SEED}", line) for line in lines), lines
    assert "searching: " in capsys.readouterr().err
    assert comparison.exports.searched >= 2


@pytest.mark.slow
def test_what_is_known_of_both_sides_is_not_exported_again(swapped: Path, compare: Compare) -> None:
    for again in (False, True):
        done = compare(sys.executable, str(swapped))
        assert done.returncode == DIFFERENT, done.stdout + done.stderr
        first, *facts = done.stdout.splitlines()
        assert (
            "; 1 newly wrong; in 1 more cell the edited code did not run; 1 of 1 edited lines reached"
            in first
        )
        # One of each cell on the head, and of the one in which the edit decides on the base, under another variation on
        # each; what differs is exported under the other as well.
        assert f"  exports: 5, {3 if again else 0} of them from the cache" in facts


@pytest.mark.slow
def test_a_refactoring_that_changes_nothing_is_identical(head: Head, compare: Compare) -> None:
    done = compare(sys.executable, str(head(REFACTORED)))
    assert done.returncode == SAME, done.stdout + done.stderr
    first, *facts = done.stdout.splitlines()
    assert first == (
        "identical: in 1 cell the edited code ran and gave the same; in 1 cell the edited code did not run; "
        "2 of 2 edited lines reached"
    )
    # One of each cell, on the head alone; an earlier comparison may have left the one that reads no edited file.
    assert any(fact.startswith("  exports: 2, ") for fact in facts)


@pytest.mark.slow
def test_a_pass_chooses_the_cells_that_it_changes(swapped: Path, compare: Compare) -> None:
    found = json.loads(compare(sys.executable, str(swapped), "--pass", "RewriteConvPass", "--json").stdout)
    assert list(found["cells"]) == ["tosa-fp/conv2d-depthwise-scaled"]
    # On 1.4.1 the cell fails in the pass.
    words = ("--pass", "FuseBatchNormPass", "--cell", "xnnpack-fp32/numbered-batch-norm", "--json")
    found = json.loads(compare(sys.executable, sys.executable, *words).stdout)
    assert list(found["cells"]) == ["xnnpack-fp32/numbered-batch-norm"]
    none = compare(sys.executable, str(swapped), "--pass", "NoSuchPass")
    assert none.returncode == ERROR
    assert "--pass NoSuchPass: it changes the graph of no cell" in none.stderr


def test_the_report_has_the_cause(
    page: ComparisonPage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.html"
    page.data().write(page.comparison.folder)
    assert main(["report", str(page.comparison.folder), f"--html={report}"]) == SAME
    assert f"{page.head()}; 1 release, 1 cause" in capsys.readouterr().out
    pages = [page for name, page in pages_of(report.read_text()) if name.startswith(("cause/", "cell/"))]
    # A comparison has no goldens: its pages name the two sides, and no command accepts what it found.
    assert len(pages) == 2
    assert not any("golden" in page for page in pages)
    assert any(">base<" in page for page in pages)
    both = page.comparison.sides
    assert f"<title>{both.base.toolchain.name} → {both.head.toolchain.name}</title>" in report.read_text()


def pages_of(report: str) -> Iterator[tuple[str, str]]:
    """Yield the pages that a report holds: the end of the address, and the HTML."""
    found = re.findall(r'<script type="text/plain" id="(data|page-\d+)">(.*?)</script>', report)
    data, *pages = (gzip.decompress(base64.b64decode(packed)).decode() for _, packed in found)
    yield from zip(json.loads(data)["pages"], pages, strict=True)


def test_what_one_side_lacks_is_used_on_neither_and_named() -> None:
    wanted = {"base": ("kept", "unfit", "alone"), "head": ("kept", "unfit")}
    left_out: list[str] = []
    used = sides.fitting("patch", wanted, {"base": {}, "head": {"unfit": "f differs"}}, left_out)
    assert list(used) == ["kept"]
    assert left_out == [
        "left out on both sides: patch unfit: f differs (head)",
        "left out on both sides: patch alone: the release of the head does not need it",
    ]


@pytest.mark.slow
def test_a_patch_that_does_not_fit_one_side_is_left_out_on_both(
    release: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (function, *_) = PATCHES["folded-scales"].fits[release]
    module, _, name = function.partition(":")
    file = Path(*module.split(".")[1:]).with_suffix(".py")
    text = (package_in(Path(sys.prefix)) / file).read_text()
    checkout = tmp_path_factory.mktemp("checkout")
    (checkout / file).parent.mkdir(parents=True)
    (checkout / file).write_text(with_a_comment(text, name.rpartition(".")[2]))
    place = Path(tempfile.mkdtemp(prefix="heads-", dir=Path(sys.prefix).parent))
    try:
        environments = Environments(place, lambda line: None)
        python = python_of(laid_over(environments, Path(sys.prefix), Sources(checkout)))
        repository = config.load(REPOSITORY)
        both = Sides.between(
            *(Toolchain.from_name(str(each), repository) for each in (sys.executable, python)),
            Settings(python, ("tests.support.zoo",), (), 1, RUN_LIMIT, shortcuts=FIRST),
            (),
            "auto",
        )
    finally:
        shutil.rmtree(place)
    assert both.left_out == (
        f"left out on both sides: patch folded-scales: {function} is not the function that it was written for (head)",
    )
    for side in (both.base, both.head):
        assert "folded-scales" not in side.settings.patches
        assert "partition-order" in side.settings.patches
        assert side.settings.shortcuts == FIRST


def with_a_comment(text: str, function: str) -> str:
    """Return a module's text with a comment more in one of its functions."""
    (found,) = (
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name == function
    )
    lines = text.splitlines(keepends=True)
    lines.insert(found.body[-1].lineno - 1, f"{' ' * found.body[-1].col_offset}# Another function.\n")
    return "".join(lines)


def test_two_comparisons_do_not_share_a_folder(tmp_path: Path) -> None:
    with (
        alone(tmp_path / "made"),
        pytest.raises(UsageError, match="a different comparison works in"),
        alone(tmp_path / "made"),
    ):
        pass
    with alone(tmp_path / "made"):
        pass


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="has files that are of no comparison"):
        clear(tmp_path)
    assert (tmp_path / "base" / "thesis.txt").read_text() == "mine"
    clear(tmp_path / "new")
    (tmp_path / "new" / "head").mkdir()
    (tmp_path / "new" / DATA).touch()
    clear(tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == [MARK]


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (("first", sys.executable), ("'first' is no toolchain",)),
        ((sys.executable, sys.executable, "--allow", "names"), ("'names'", "renames, order")),
        ((sys.executable, sys.executable, "--variations", "1"), ("--variations quick",)),
        ((sys.executable, sys.executable, "--patches", "no-such"), ("'no-such'", "partition-order")),
        pytest.param(
            (sys.executable, sys.executable, "--cell", "tosa-fp/no-such"),
            ("'no-such'",),
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda value: " ".join(value[1:]) if isinstance(value, tuple) else None,
)
def test_what_cannot_be_compared_is_one_error(
    words: tuple[str, ...], facts: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *words]) == ERROR
    message = capsys.readouterr().err
    for fact in facts:
        assert fact in message
    assert "Traceback" not in message

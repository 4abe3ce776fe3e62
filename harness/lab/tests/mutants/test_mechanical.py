"""Mechanical mutants: the edits of a source, the drawing, how one is made in a process, and a real kill."""

from __future__ import annotations

import ast
import gc
import importlib.util
import math
import random
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest

from executorch_goldens import patches
from executorch_goldens.artifact import Artifact, Cell
from executorch_goldens.running.zoo import load_zoo
from executorch_goldens.settings import releases
from executorch_goldens.toolchains.toolchain import here
from executorch_goldens_plugins.compare.exporting.instrument import instrument
from executorch_goldens_plugins.compare.reach import map as maps
from executorch_goldens_plugins.compare.reach.edits import PACKAGES
from lab import tables
from lab.mutants import recall
from lab.mutants.installing import EditError
from lab.mutants.mechanical import OPERATORS, PLACES, command, drawing, page, searching
from lab.mutants.mechanical.drawing import Mechanical, install
from lab.mutants.mechanical.reach import Reach
from lab.mutants.mechanical.search import Found, Kept, Search
from lab.mutants.mechanical.sites import Site, sites
from lab.reach import building
from lab.reach.command import exported
from tests import GOLDENS

# Sites


def edits(body: str, parameters: str = "self, x, dim") -> set[tuple[str, str, str]]:
    """Return operator, old and new text of every edit of a function."""
    source = f"def f({parameters}):\n    {body}\n"
    return {(site.operator, site.old, site.new) for site in sites("exir/a.py", source.encode())}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return x < dim", {("comparison", "<", "<="), ("comparison", "<", ">=")}),
        ("return x is not dim", {("comparison", "is not", "is")}),
        ("return x not  in dim", {("comparison", "not  in", "in")}),
        ("return (x == # a != b\n dim)", {("comparison", "==", "!=")}),
        ("return x[0]", {("bound", "0", "1"), ("bound", "0", "(-1)")}),
        ("return x[:dim]", {("bound", "dim", "(dim) + 1"), ("bound", "dim", "(dim) - 1")}),
        ("return x.sum(dim=1)", {("axis", "1", "2"), ("axis", "1", "(-1)")}),
        ("return x.unsqueeze(-1)", {("axis", "-1", "0"), ("axis", "-1", "1")}),
        ("return x.shape[0]", {("axis", "0", "1"), ("axis", "0", "(-1)")}),
        ("dim = 0", {("axis", "0", "1"), ("axis", "0", "(-1)")}),
        ("return torch.int8", {("dtype", "torch.int8", "torch.int32")}),
        ("return ts.DType.INT48", {("dtype", "ts.DType.INT48", "ts.DType.INT32")}),
        ("return [x, 'y', dim]", {("order", "x, 'y', dim", "dim, 'y', x")}),
        ("return g(x, dim)", {("order", "x, dim", "dim, x")}),
        ("return reversed(x)", {("order", "reversed(x)", "list(x)")}),
        ("return x and dim", {("boolean", "and", "or")}),
        (
            "return not (x\n  or dim)",
            {("boolean", "not (x\n  or dim)", "(x\n  or dim)"), ("boolean", "or", "and")},
        ),
        ("return g(x=True)", {("boolean", "True", "False")}),
        ("return x // dim", {("arithmetic", "//", "*")}),
        ("x.meta['val'] = dim", {("branch", "x.meta['val'] = dim", "pass")}),
        ("g(x)", {("branch", "g(x)", "pass")}),
        ("while x: g()", {("branch", "x", "False"), ("branch", "g()", "pass")}),
        (
            "return x if dim else 'y'",
            {("branch", "dim", new) for new in ("True", "False", "not (dim)")},
        ),
        ("for each in x: each", {("order", "x", "reversed(list(x))")}),
    ],
)
def test_an_operator_makes_its_edits(body: str, expected: set[tuple[str, str, str]]) -> None:
    assert edits(body) == expected


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("x, bits=8", {("default", "8", "9"), ("default", "8", "7")}),
        ("*, keep=True", {("default", "True", "False")}),
        ("x, dim=-1, y=None", {("axis", "-1", "0"), ("axis", "-1", "1")}),
        ("x, name='a'", {("default", "'a'", '""')}),
    ],
)
def test_a_default_is_edited(parameters: str, expected: set[tuple[str, str, str]]) -> None:
    assert edits("return x", parameters) == expected


@pytest.mark.parametrize(
    "body",
    [
        "'''Two < three.'''",
        "raise ValueError(1 + 2)",
        "return f'{x + 1}'",
        "return 'a' + x",
        "logger.warning('a', 1)",
        "assert x, 'a' 'b'",
        "y: dict[int, 1] = x",
        "return isinstance(x, dim)",
    ],
)
def test_what_no_export_shows_is_not_edited(body: str) -> None:
    assert edits(body) == set()


def test_only_functions_are_edited_and_a_site_says_where_it_is() -> None:
    source = (
        b"N = 1\nclass A:\n    M = 2\n    @property\n    def f(self):\n"
        b"        def g():\n            return (\n                3\n            )\n        return g\n"
    )
    (less, more) = sites("exir/a.py", source)
    assert (more.function, more.line, more.first, more.last) == ("A.f", 4, 7, 9)
    assert more.module == "executorch.exir.a"
    assert {more.new, less.new} == {"4", "2"}
    assert more.applied(source) == source.replace(b"3", b"4")
    with pytest.raises(ValueError, match=r"exir/a\.py has no '3'"):
        more.applied(b" " + source)


# The sources of the installed release


@pytest.fixture(scope="module")
def package(release: str) -> Path:
    if release != releases.load().default:
        pytest.skip("the edits are of the default release")
    spec = importlib.util.find_spec("executorch")
    assert spec is not None
    return Path(next(iter(spec.submodule_search_locations or ())))


@pytest.fixture(scope="module")
def every(package: Path) -> list[Site]:
    return drawing.every_site(package)


def test_every_place_and_operator_has_sites_and_no_test_is_mutated(every: list[Site]) -> None:
    assert {drawing.place_of(site.file) for site in every} == set(PLACES)
    assert {site.operator for site in every} == set(OPERATORS)
    assert not [site.file for site in every if "/test/" in site.file]


def test_every_edit_leaves_the_rest_as_it_is_and_compiles(package: Path, every: list[Site]) -> None:
    for site in random.Random(0).sample(every, 200):
        source = (package / site.file).read_bytes()
        edited = site.applied(source)
        ast.parse(edited)
        assert edited[: site.start] == source[: site.start]
        assert edited.endswith(source[site.end :])


# Drawing


def test_a_seed_draws_the_same_each_time_and_more_begin_with_the_same(every: list[Site]) -> None:
    some = drawing.draw(every, 1, 50)
    assert drawing.draw(every, 1, 80)[:50] == some
    assert drawing.digest(some) == drawing.digest(drawing.draw(list(every), 1, 50))
    assert drawing.digest(some) != drawing.digest(drawing.draw(every, 2, 50))
    assert len({mutant.name for mutant in some}) == len({mutant.site for mutant in some}) == 50


def test_a_drawing_is_read_as_it_was_written(tmp_path: Path, every: list[Site]) -> None:
    some = drawing.draw(every, 1, 20)
    (tmp_path / "drawn.json").write_text(drawing.text("1.4.1", some), encoding="utf-8")
    assert drawing.read(tmp_path / "drawn.json") == ("1.4.1", some)


# Making an edit

HOME = """
import functools
TABLE = []
def registered(function):
    TABLE.append(function)
def hidden(function):
    @functools.wraps(function)
    def around(*args):
        return function(*args)
    return around
@registered
def gone(n):
    return n + 1
@hidden
def within(n):
    return n + 1
@functools.lru_cache
def remembered(n):
    return n * 5
@functools.lru_cache
def of_remembered(n):
    return remembered(n) + 1
class A:
    def name(self, n=1, *, m=2):
        return [type(super()), n, m]
    @property
    def five(self):
        return 2 + 3
    def same(self, n):
        if super().__eq__(n):
            return n
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module of a package ``executorch`` that is not the installed one, and its file."""
    (tmp_path / "made.py").write_text(HOME)
    spec = importlib.util.spec_from_file_location("executorch.exir.made", tmp_path / "made.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "executorch.exir.made", module)
    spec.loader.exec_module(module)
    gc.freeze()
    return module


def site(function: str, operator: str, old: str, new: str) -> Site:
    return next(
        each
        for each in sites("exir/made.py", HOME.encode())
        if (each.function, each.operator, each.old, each.new) == (function, operator, old, new)
    )


def test_an_edit_reaches_a_function_that_only_a_table_or_a_decorator_holds(home: types.ModuleType) -> None:
    install(site("gone", "arithmetic", "+", "-"))
    install(site("within", "bound", "1", "2"))
    assert home.TABLE[0](5) == 4
    assert home.within(5) == 7


def test_a_property_and_a_default_are_edited_and_super_is_found(home: types.ModuleType) -> None:
    install(site("A.five", "bound", "3", "4"))
    assert home.A().five == 6
    install(site("A.name", "default", "1", "0"))
    assert home.A().name() == [super, 0, 2]
    home.A.name.__defaults__ = (1,)
    install(site("A.name", "default", "2", "3"))
    assert home.A().name() == [super, 1, 3]


def test_super_can_lose_its_only_use(home: types.ModuleType) -> None:
    install(site("A.same", "branch", "super().__eq__(n)", "False"))
    made = home.A()
    assert made.same(made) is None


def test_what_was_computed_before_an_edit_is_forgotten(home: types.ModuleType) -> None:
    assert home.of_remembered(2) == 11
    install(site("remembered", "arithmetic", "*", "+"))
    assert home.of_remembered(2) == 8


def test_an_edit_of_what_is_not_there_is_refused(home: types.ModuleType) -> None:
    with pytest.raises(EditError, match="is not there"):
        install(replace(site("A.five", "bound", "3", "4"), line=1))


# Which cells reach it, and what is kept

MAPPED = [
    release
    for release in releases.load().releases
    if page.committed(release) and (GOLDENS / release / maps.FILE).is_file()
]
ONE, TWO, NEVER = Cell("tosa-fp", "add"), Cell("tosa-int", "add"), Cell("tosa-int", "mul")


def test_cells_that_run_the_statement_reach_a_site_and_unlike_ones_take_turns(tmp_path: Path) -> None:
    at = site("A.five", "bound", "3", "4")
    for file in ("made", "other"):
        path = tmp_path / "executorch" / "exir" / f"{file}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HOME)
    runs = {f"executorch/{at.file}": (at.first,)}
    third = Cell("tosa-fp", "mul")
    records = [
        building.ReachRecord("models", NEVER, 1.0, "", {"executorch/exir/other.py": (at.first,)}),
        building.ReachRecord("models", ONE, 2.0, "", runs),
        building.ReachRecord("models", third, 1.0, "", runs),
        building.ReachRecord("models", TWO, 3.0, "", runs),
    ]
    known = building.build("1.5.1", "", "2026-01-01", records, tmp_path)
    assert Reach(known, tmp_path).cells(at) == [third, TWO, ONE]


def test_what_a_stopped_session_found_is_read_again_where_mutant_and_release_are_the_same(
    tmp_path: Path,
) -> None:
    mutant = Mechanical("m", site("A.five", "bound", "3", "4"))
    found = Found("m", [str(TWO)], [str(ONE)], "changed", "APass")
    file = tmp_path / "build" / "kept.jsonl"
    assert Kept(file, "1.5.1").read([mutant]) == {}
    Kept(file, "1.5.1").add(mutant, found)
    assert Kept(file, "1.5.1").read([mutant]) == {"m": found}
    assert Kept(file, "1.4.1").read([mutant]) == {}
    assert Kept(file, "1.5.1").read([replace(mutant, site=site("A.five", "bound", "3", "2"))]) == {}


def test_a_table_has_the_killers_and_a_count_tells_the_core_from_any_cell() -> None:
    at = replace(site("A.five", "bound", "3", "4"), file="exir/passes/made.py")
    mutants = [Mechanical(name, at) for name in "abc"]
    found = {
        "a": Found("a", (str(TWO),), (str(ONE), str(NEVER)), "corrupt", "P"),
        "b": Found("b", (str(ONE), str(TWO))),
    }
    head, first, second = page.text(mutants, found).splitlines()
    assert tuple(head.split("\t")) == page.COLUMNS
    assert first.split("\t")[-4:] == ["1", f"{ONE} {NEVER}", "corrupt", "P"]
    assert second.split("\t")[-4:] == ["2", "-", "-", "-"]
    older = page.Row(*("a", "bound", "exir", "f", 1, 2, 2, "g", "3", "4", 9, "-", "-", "-"))
    third = "\t".join(map(str, vars(replace(older, mutant="c")).values()))
    before = [older, replace(older, mutant="c")]
    assert page.text(mutants, found, before).splitlines()[1:] == [first, second, third]
    rows = [
        page.Row(*("m", "bound", "exir", "f", 1, 2, 2, "g", "3", "4", alive, killed_by, "-", "-"))
        for alive, killed_by in ((0, f"{ONE} {NEVER}"), (1, "-"), (0, "-"))
    ]
    assert rows[0].killers == (str(ONE), str(NEVER))
    results = [
        page.Result(rows[0], page.ALIVE, page.KILLED),
        page.Result(rows[1], page.NOT_REACHED, page.ALIVE, equivalent=True),
        page.Result(rows[2], page.NOT_REACHED, page.UNTRIED),
    ]
    assert page.counts("all", results) == "| all | 3 | 2 | 0 | 1 | 0 | 0 | 1 | 1 | 1 | 1 |"
    counted = "Of 1 that were tried and that nobody has read as equivalent,"
    assert f"{counted} the core kills 0 (0%), any cell kills 1 (100%)." in page.figures(results)


# What is committed


def test_what_is_committed_is_the_drawing_of_the_installed_release(every: list[Site]) -> None:
    release = releases.load().default
    (drawn,) = tables.read(page.FOLDER / release / page.DRAWING, page.DRAWING_COLUMNS)
    mutants = drawing.draw(every, int(drawn["seed"]), int(drawn["drawn"]))
    assert (int(drawn["sites"]), drawn["digest"]) == (len(every), drawing.digest(mutants))
    assert [row.mutant for row in page.committed(release)] == [mutant.name for mutant in mutants]


@pytest.mark.parametrize("release", MAPPED)
def test_each_survivor_that_was_read_has_a_class_and_a_reason(release: str) -> None:
    read = page.read_survivors(release)
    alive = [
        each.row.mutant for each in page.results(release, page.committed(release)) if each.every == page.ALIVE
    ]
    assert [name for name in alive if name not in read] == []
    assert {kind for kind, _ in read.values()} <= {page.EQUIVALENT, page.HOLE}
    assert all(why for _, why in read.values())


def test_of_what_comparisons_saw_models_of_one_call_as_they_were_drawn_are_tried(
    tmp_path: Path, every: list[Site]
) -> None:
    seen = ("tosa-fp/abs-0007", "tosa-fp/abs-0007-x-users-0001", "tosa-int/abs-0007", "tosa-fp/linear")
    recall.keep(
        tmp_path / "compared.jsonl",
        {"name": "a", "result": recall.SEEN, "head": "", "seconds": 1, "seen_by": seen},
    )
    found = searching.found([Mechanical("a", every[0]), Mechanical("b", every[1])], tmp_path / "compared")
    assert found == {every[0]: [Cell("tosa-fp", "abs-0007")], every[1]: []}
    reach = Reach(building.build("1.5.1", "", "2026-01-01", [], tmp_path), here().site_packages, found)
    assert reach.cells(every[0]) == found[every[0]]


# For real

CELL = Cell("tosa-fp", "conv1d")


@pytest.mark.slow
def test_a_mutant_is_killed_by_a_cell_that_runs_its_line(
    tmp_path: Path, package: Path, every: list[Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOLDENS_DRAWN_MUTANTS", "")
    monkeypatch.setattr(patches, "PATCHES", dict(patches.PATCHES))
    toolchain = here()
    load_zoo(("models",))
    settings = toolchain.settings(("models", command.INSTALLED), 1, execute=False)
    (outcome,) = exported([CELL], replace(settings, instrument=instrument(PACKAGES)), math.inf)
    assert isinstance(outcome.result, Artifact)
    record = building.ReachRecord("models", CELL, 1.0, "", outcome.result.reach)
    reach = Reach(building.build("1.5.1", "", "2026-01-01", [record], package.parent), package.parent)
    reached = [
        each for each in every if each.function == "Conv1dUnsqueezePass.call_operator" and reach.cells(each)
    ]
    harmful = next(each for each in reached if (each.old, each.new) == ("!=", "=="))
    # A program of floats has no quantization parameters.
    harmless = next(each for each in reached if each.old == 'x_meta.data["input_qparams"] = {}')
    unreached = next(each for each in every if each.file.endswith("decompose_gelu_pass.py"))
    drawn = [Mechanical(name, each) for name, each in (("a", harmful), ("b", harmless), ("c", unreached))]
    kept = Kept(tmp_path / "kept.jsonl", toolchain.release.version)
    search = Search(toolchain.release, settings, drawn, tmp_path / "drawn.json")
    found = {each.mutant: each for each in search.over(reach, [[CELL], []], {}, kept)}
    assert found["a"].killed_by == (str(CELL),)
    assert found["a"].verdict in ("failed", "changed")
    assert (found["b"].alive, found["b"].killed_by) == ((str(CELL),), ())
    assert found["c"] == Found("c")
    assert {name: (*each.alive,) for name, each in kept.read(drawn).items()} == {"a": (), "b": (str(CELL),)}


@pytest.mark.slow
def test_a_cell_that_is_another_each_time_kills_nothing(
    tmp_path: Path, every: list[Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A dump of TOSA's debug mode has addresses of objects.
    unstable = Cell("built", "tosa-0019")
    monkeypatch.setenv("GOLDENS_DRAWN_MUTANTS", "")
    monkeypatch.setattr(patches, "PATCHES", dict(patches.PATCHES))
    toolchain, zoos = here(), ("lab.options.zoo",)
    load_zoo(zoos)
    unreached = next(each for each in every if each.file.endswith("decompose_gelu_pass.py"))
    record = building.ReachRecord(*zoos, unstable, 1.0, "", {})
    reach = Reach(
        building.build("1.5.1", "", "2026-01-01", [record], toolchain.site_packages), toolchain.site_packages
    )
    monkeypatch.setattr(reach, "cells", lambda _: [unstable])
    settings = toolchain.settings((*zoos, command.INSTALLED), 1, execute=False)
    search = Search(toolchain.release, settings, [Mechanical("a", unreached)], tmp_path / "drawn.json")
    (found,) = search.over(reach, [[unstable]], {}, Kept(tmp_path / "kept.jsonl", toolchain.release.version))
    assert found == Found("a")

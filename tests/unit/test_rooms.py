"""The plan of the house: allowed imports, drawn from the sources; imports inside functions count."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import REPOSITORY

HARNESS = REPOSITORY / "harness"
PACKAGE = "executorch_goldens"
PLUGINS = f"{PACKAGE}_plugins"
#: Modules outside of rooms: words that all of them use, and the entry points.
FLAT = 7
SLOW = {"torch", "torchao", "executorch"}
#: What is between the rows about rooms and those about plugins in CONTRIBUTING.md.
BETWEEN = "\nModules that every room may use"
#: A row of CONTRIBUTING.md about a room or a plugin, and a question in it: the name to look for, if any, and the file.
ROW = re.compile(r"^\| `(\w+)/` \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
QUESTION = re.compile(r"([A-Z][^?]+\?) (?:`(\w+)` in )?`([\w./]+)`")
#: What exporting processes, and other interpreters, run.
WITH_TORCH = {
    PACKAGE: ("exporting/", "patches/", "sweep/worker.py"),
    PLUGINS: (
        *("compare/exporting/", "fast/", "explorer/marks.py", "field/recorder.py", "field/runner.py"),
        *("repro/program.py", "repro/shrink.py", "start/first.py"),
    ),
}
#: Of rooms that are divided: the modules beside the folders that import what is in these. All others are below them.
DOORS = {"exporting": {"program", "recipe", "running", "built"}}


def modules(folder: str = PACKAGE) -> dict[str, Path]:
    """Return the modules of a package under ``harness``, by dotted name."""
    beside = (HARNESS / "lab" / "tests", HARNESS / "lab" / "docs")
    found = [path for path in sorted((HARNESS / folder).rglob("*.py")) if not {*beside} & {*path.parents}]
    return {".".join(path.relative_to(HARNESS).with_suffix("").parts): path for path in found}


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def imported(path: Path) -> tuple[str, ...]:
    """Return the dotted names that a module imports at run time, without those of type checkers."""
    tree = tree_of(path)
    only_read = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.unparse(branch.test)
        for node in ast.walk(branch)
    }
    found: list[str] = []
    for node in ast.walk(tree):
        if id(node) in only_read:
            continue
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found += (f"{node.module}.{alias.name}" for alias in node.names)
    return tuple(found)


def defined(path: Path) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the classes, functions and methods that a module defines."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def room(name: str, within: str = PACKAGE) -> str | None:
    """Return the room that a dotted name is in: a folder of `within`, or a module beside them; None for others.

    >>> room("executorch_goldens.judging.verdict.Verdict"), room("executorch_goldens.errors.HarnessError")
    ('judging', 'errors')
    >>> room("executorch_goldens.exporting.inside.tosa", "executorch_goldens.exporting")
    'inside'
    """
    outside, dot, inside = name.partition(f"{within}.")
    return inside.partition(".")[0] if dot and not outside else None


def imports_between_rooms(within: str = PACKAGE) -> dict[str, set[str]]:
    """Return the rooms of `within` with those that each imports."""
    rooms: dict[str, set[str]] = {}
    for name, path in modules(within.replace(".", "/")).items():
        own = room(name, within)
        assert own is not None
        rooms.setdefault(own, set()).update(each for name in imported(path) if (each := room(name, within)))
    # What is no room is a name that the package itself has.
    return {
        own: {each if each in rooms else "__init__" for each in reached} - {own}
        for own, reached in rooms.items()
    }


def require_no_circle(rooms: dict[str, set[str]]) -> None:
    try:
        graphlib.TopologicalSorter(rooms).prepare()
    except graphlib.CycleError as error:
        raise AssertionError(f"rooms import each other: {' <- '.join(error.args[1])}") from None


def test_no_circle_goes_through_the_rooms() -> None:
    rooms = imports_between_rooms()
    # The package itself brings what a zoo imports, when it is asked for.
    del rooms["__init__"]
    require_no_circle({own: reached - {"__init__"} for own, reached in rooms.items()})


def test_only_commands_import_the_review() -> None:
    importing = {own for own, reached in imports_between_rooms().items() if "review" in reached}
    assert importing == {"commands"}


def divided() -> dict[str, set[str]]:
    """Return the rooms that have folders of their own, with the names of these."""
    found: dict[str, set[str]] = {}
    for path in (HARNESS / PACKAGE).glob("*/**/*.py"):
        for folder in path.relative_to(HARNESS / PACKAGE).parents:
            if folder.name and folder.parent.name:
                found.setdefault(".".join(folder.parent.parts), set()).add(folder.name)
    return found


def test_every_divided_room_has_its_doors_named() -> None:
    assert divided().keys() == DOORS.keys()


@pytest.mark.parametrize("name", DOORS)
def test_imports_between_the_folders_of_a_room_go_one_way(name: str) -> None:
    rooms = imports_between_rooms(f"{PACKAGE}.{name}")
    require_no_circle(rooms)
    folders = divided()[name]
    assert {own for own, reached in rooms.items() if reached & folders} - folders == DOORS[name]


@pytest.mark.parametrize(
    ("package", "refused"),
    [
        (PACKAGE, ("lab", "models", "tests", PLUGINS)),
        (PLUGINS, ("lab", "models", "tests")),
        ("lab", ("models", "tests")),
    ],
)
def test_imports_go_one_way_between_the_core_its_plugins_and_the_lab(
    package: str, refused: tuple[str, ...]
) -> None:
    found = {
        f"{name} imports {each}"
        for name, path in modules(package).items()
        for each in imported(path)
        if each.partition(".")[0] in refused
    }
    assert not found


def test_the_core_names_no_plugin() -> None:
    found = {name for name, path in modules().items() if PLUGINS in path.read_text(encoding="utf-8")}
    assert not found


def test_tests_of_the_core_import_no_plugin() -> None:
    folders = ("commands", "exports", "runs", "support", "unit")
    files = [path for folder in folders for path in (REPOSITORY / "tests" / folder).rglob("*.py")]
    found = {
        f"{path.relative_to(REPOSITORY)} imports {each}"
        for path in files
        for each in imported(path)
        if each.startswith((f"{PLUGINS}.", "tests.plugins."))
    }
    assert not found


def test_no_plugin_imports_another() -> None:
    # Each has an entry point, one of pytest's, and none is beside them.
    declared = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    points = declared["project"]["entry-points"]
    rooms = imports_between_rooms(PLUGINS)
    named = {room(value, PLUGINS) for value in (points[f"{PACKAGE}.plugins"] | points["pytest11"]).values()}
    assert rooms.keys() - {"__init__"} == named
    assert not {own: reached for own, reached in rooms.items() if reached}


def test_few_modules_stand_in_no_room() -> None:
    flat = sorted(path.name for path in (HARNESS / PACKAGE).glob("*.py"))
    assert len(flat) <= FLAT, flat


def test_a_public_class_has_one_name_in_the_core_and_the_plugins() -> None:
    found: dict[str, list[str]] = {}
    for name, path in (modules() | modules(PLUGINS)).items():
        for node in defined(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(name)
    assert not {name: where for name, where in found.items() if len(where) > 1}


@pytest.mark.parametrize("package", [PACKAGE, PLUGINS, "lab"])
def test_a_function_says_what_it_returns_or_takes(package: str) -> None:
    assert not [
        f"{name}:{node.lineno}"
        for name, path in modules(package).items()
        for node in defined(path)
        if node.name == "of"
    ]


@pytest.mark.parametrize("package", [PACKAGE, PLUGINS])
def test_only_what_exports_imports_torch(package: str) -> None:
    found = {
        name
        for name, path in modules(package).items()
        if not path.relative_to(HARNESS / package).as_posix().startswith(WITH_TORCH[package])
        and {each.partition(".")[0] for each in imported(path)} & SLOW
    }
    assert not found


def test_a_run_from_the_store_waits_for_no_library_that_only_exports_need() -> None:
    program = "import sys, models; sys.exit(' '.join({'torchao', 'executorch'} & {*sys.modules}) or 0)"
    subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, check=True)


def rows_of(package: str) -> list[tuple[str, str]]:
    """Return the rows of CONTRIBUTING.md about the folders of a package, with their questions."""
    rooms, _, plugins = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8").partition(BETWEEN)
    return ROW.findall(rooms if package == PACKAGE else plugins)


def test_every_room_has_one_row_of_the_map() -> None:
    rows = rows_of(PACKAGE)
    # What git leaves of a room that was moved has no file but what Python wrote.
    rooms = {path.parent.name for path in (HARNESS / PACKAGE).glob("*/*") if path.is_file()}
    rooms.discard("__pycache__")
    order = [own for own, _ in rows]
    assert sorted(order) == sorted(rooms)
    upward = {
        f"{own} imports {each}"
        for own, reached in imports_between_rooms().items()
        for each in reached & rooms
        if own in rooms and order.index(each) < order.index(own)
    }
    assert not upward, "move a row, or the import"


@pytest.mark.parametrize("package", [PACKAGE, PLUGINS])
def test_every_question_about_rooms_has_one_answer_that_is_there(package: str) -> None:
    asked = list[str]()
    for own, questions in rows_of(package):
        for each in questions.split("; "):
            match = QUESTION.fullmatch(each)
            assert match, f"{own}: {each}"
            question, name, file = match.groups()
            text = (HARNESS / package / own / file).read_text(encoding="utf-8")
            assert name is None or re.search(rf"^(def |class )?{name}\b", text, re.MULTILINE), (
                f"{own}: {each}"
            )
            asked.append(question)
    assert asked
    assert len(asked) == len(set(asked))


def test_no_object_is_filled_by_hand() -> None:
    """Only what corrects other projects' objects looks into how they keep their attributes."""
    assert not [
        f"{name}:{node.lineno}"
        for name, path in modules().items()
        if room(name) != "patches"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and node.attr == "__dict__"
    ]

"""What a module depends on, read from its text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from harness.storage.sources import Modules, files_named, imported, text_for

ZOO = """
    from harness import case

    WIDTH = 4

    class Wide:
        width = WIDTH

    class Narrow:
        pass

    @case(guards="a")
    def wide(data):
        # in the function
        return make(Wide)

    # between the functions
    @case(guards="b")
    def narrow(data):
        return make(Narrow)

    def make(kind):
        return kind()
"""


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write modules, by their files."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))


def test_of_a_module_with_many_cases_only_what_a_case_mentions_counts() -> None:
    text = text_for(dedent(ZOO), "wide")
    assert all(
        part in text for part in ("WIDTH = 4", "class Wide", "def wide", "def make", "in the function")
    )
    assert not any(part in text for part in ("class Narrow", "def narrow", "between the functions"))


@pytest.mark.parametrize(
    "addition",
    [
        "x = globals()",
        "import importlib",
        "class Base:\n    def __init_subclass__(cls): pass",
        "def wide(data): pass",
    ],
)
def test_the_whole_text_counts_where_it_does_not_say_what_is_meant(addition: str) -> None:
    module = dedent(ZOO) + addition
    assert text_for(module, "wide") == module


def test_what_has_a_decorator_of_its_own_counts_for_every_case() -> None:
    module = dedent(ZOO) + "@torch.library.custom_op('a::b')\ndef registered(x): pass\n"
    assert "def registered" in text_for(module, "wide")


def test_a_statement_that_runs_on_import_counts_with_what_it_mentions() -> None:
    assert "class Narrow" in text_for(dedent(ZOO) + "register(Narrow)\n", "wide")


def test_imports_in_functions_and_relative_ones_are_found() -> None:
    text = "from . import a\nfrom ..b import c\ndef f():\n    import d.e\n"
    assert imported(text, "zoo.inner.module") == ("zoo.inner", "zoo.inner.a", "zoo.b", "zoo.b.c", "d.e")
    assert imported("from .a import b", "zoo", is_package=True) == ("zoo.a", "zoo.a.b")


def test_a_closure_follows_imports_and_stops_outside(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "zoo/__init__.py": "",
            "zoo/cases.py": "from zoo.parts import Part",
            "zoo/parts.py": "import nets",
            "nets.py": "import library",
            "site/library.py": "import more",
            "site/more.py": "",
        },
    )
    modules = Modules((tmp_path, tmp_path / "site"), outside=(tmp_path / "site",))
    start = modules.find("zoo.cases")
    assert start is not None
    assert set(modules.closure([start])) == {"zoo", "zoo.cases", "zoo.parts", "nets"}


def test_a_module_that_imports_by_a_computed_name_depends_on_all_beside_it(tmp_path: Path) -> None:
    write(tmp_path, {"zoo/__init__.py": "import pkgutil", "zoo/one.py": "", "zoo/two.py": ""})
    modules = Modules((tmp_path,))
    start = modules.find("zoo")
    assert start is not None
    assert set(modules.closure([start])) == {"zoo", "zoo.one", "zoo.two"}


def test_a_mapped_name_is_found_where_the_mapping_says(tmp_path: Path) -> None:
    write(tmp_path, {"elsewhere/inner/__init__.py": "", "elsewhere/inner/part.py": ""})
    found = Modules((), {"acme": tmp_path / "elsewhere" / "inner"}).find("acme.part")
    assert found is not None
    assert found.file == tmp_path / "elsewhere" / "inner" / "part.py"


def test_files_that_strings_name_are_found_and_folders_with_all_in_them(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "a.bin").write_text("")
    (tmp_path / "b.npz").write_text("")
    text = "CHECKPOINT = ROOT / 'weights' / 'a.bin'\nother = 'b.npz'\nnothing = '..'\n"
    assert set(files_named(text, [tmp_path])) == {tmp_path / "weights" / "a.bin", tmp_path / "b.npz"}

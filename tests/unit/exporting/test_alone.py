"""A case is loaded without the modules of the others, unless it uses them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from executorch_goldens.exporting.alone import PutOff, load_alone
from executorch_goldens.zoo import registry
from executorch_goldens.zoo.registry import ZooError

CASE = """
from executorch_goldens import case
@case(guards="a")
def {name}(data): return {made}
"""
MODULES = ["zoo_alone.one", "zoo_alone.two", "zoo_alone.three"]


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A zoo of three modules, which its package imports."""
    folder = tmp_path / "zoo_alone"
    folder.mkdir()
    (folder / "__init__.py").write_text("from zoo_alone import one, three, two\n")
    for name in ("one", "two", "three"):
        (folder / f"{name}.py").write_text(CASE.format(name=name, made=f"'{name}'") + f"VALUE = '{name}'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    cases = registry.Registry()
    monkeypatch.setattr(registry, "CASES", cases)
    monkeypatch.setattr("executorch_goldens.exporting.alone.CASES", cases)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "zoo_alone"]:
        del sys.modules[name]


def loaded() -> set[str]:
    return {name for name in MODULES if name in sys.modules and type(sys.modules[name]) is not PutOff}


def case(name: str) -> object:
    return load_alone(["zoo_alone"], name, f"zoo_alone.{name}", MODULES).build(None)  # type: ignore[arg-type]


def test_the_modules_of_other_cases_do_not_run(zoo: Path) -> None:
    assert case("two") == "two"
    # As torch does, which looks through all modules for the one that some code is of.
    inspect.getmodule(compile("", "nowhere", "exec"))
    assert loaded() == {"zoo_alone.two"}


@pytest.mark.parametrize(
    "use",
    [
        "from zoo_alone.one import VALUE",
        "from zoo_alone.one import *",
        "import zoo_alone.one as one; VALUE = one.VALUE",
        "from zoo_alone import one; VALUE = one.VALUE",
        "from .one import VALUE",
        "import importlib; VALUE = importlib.import_module('zoo_alone.one').VALUE",
    ],
)
def test_one_that_a_case_uses_does(use: str, zoo: Path) -> None:
    (zoo / "two.py").write_text(use + CASE.format(name="two", made="VALUE"))
    assert case("two") == "one"
    assert loaded() == {"zoo_alone.one", "zoo_alone.two"}


def test_one_that_it_uses_later_runs_once(zoo: Path) -> None:
    later = CASE.format(name="two", made="one.VALUE + __import__('zoo_alone.one').one.VALUE")
    (zoo / "two.py").write_text(f"from zoo_alone import one\n{later}")
    assert case("two") == "oneone"
    assert loaded() == {"zoo_alone.one", "zoo_alone.two"}


def test_a_case_that_another_module_registers_is_found(zoo: Path) -> None:
    (zoo / "two.py").write_text("def build(data): return 'by one'\n")
    registering = """
        from executorch_goldens.zoo.registry import CASES, Case
        from zoo_alone import two
        import executorch_goldens.zoo.registry
        executorch_goldens.zoo.registry.CASES.add(Case(name="two", family="x", guards="a", build=two.build))
    """
    (zoo / "one.py").write_text(dedent(registering))
    assert case("two") == "by one"


def test_what_is_wrong_with_a_module_is_one_error_that_names_it(zoo: Path) -> None:
    (zoo / "two.py").write_text("1 / 0\n")
    with pytest.raises(ZooError, match=r"two\.py, line 1: ZeroDivisionError"):
        case("two")
    # The others do not suffer from it.
    assert case("one") == "one"


def test_where_nobody_knows_the_module_all_of_the_zoo_is_loaded(zoo: Path) -> None:
    assert load_alone(["zoo_alone"], "two", None, ()).name == "two"
    assert loaded() == set(MODULES)

"""Edits of functions of this process, and a few defects that are edited in and judged for real."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.goldens import golden
from executorch_goldens.judging.comparison import compare
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.running.options import FULL, Options
from executorch_goldens.running.plan import plan
from executorch_goldens.settings import releases
from executorch_goldens.sweep.sweep import Sweep
from lab.mutants.installing import EditError
from lab.mutants.mechanical.search import named
from lab.mutants.mutant import Edit, Mutated, install
from tests import GOLDENS
from tests.support import defects
from tests.support.defects import DEFECTS

# Edits


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """A module to edit, and ``mutant_user``, which holds a function of it."""
    (tmp_path / "mutant_home.py").write_text(
        "STEP = 1\n"
        "def count(n):\n    return n + STEP\n"
        "import functools\n"
        "@functools.lru_cache\ndef cached(n):\n    return n + STEP\n"
        "class Base:\n    def name(self):\n        return 'base'\n"
        "class Child(Base):\n"
        "    def name(self):\n        return super().name() + ' child'\n"
        "    @staticmethod\n    def twice(n):\n        return 2 * n\n"
    )
    (tmp_path / "mutant_user.py").write_text("from mutant_home import count\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("mutant_home", "mutant_user"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    home: types.ModuleType = pytest.importorskip("mutant_home")
    yield home
    for name in ("mutant_home", "mutant_user"):
        sys.modules.pop(name, None)


def test_an_edited_function_is_edited_wherever_it_is_held(module: types.ModuleType) -> None:
    import mutant_user  # type: ignore[import-not-found]

    @functools.wraps(module.count)
    def patched(n: int, original: Any = module.count) -> Any:
        return original(n)

    module.count = patched  # type: ignore[attr-defined]
    install([Edit("mutant_home:count", "n + STEP", "n - STEP")])
    assert (module.count(5), mutant_user.count(5)) == (4, 4)


def test_results_that_an_edited_function_has_kept_are_forgotten(module: types.ModuleType) -> None:
    assert module.cached(5) == 6
    install([Edit("mutant_home:cached", "n + STEP", "n - STEP")])
    assert module.cached(5) == 4


def test_two_edits_of_one_function_are_made_together(module: types.ModuleType) -> None:
    edits = [Edit("mutant_home:count", "n +", "2 * n +"), Edit("mutant_home:count", "+ STEP", "- STEP")]
    install(edits)
    assert module.count(5) == 9


def test_an_edited_method_keeps_its_class_and_its_decorators(module: types.ModuleType) -> None:
    install([Edit("mutant_home:Child.name", "' child'", "' changeling'")])
    install([Edit("mutant_home:Child.twice", "2 * n", "3 * n")])
    assert module.Child().name() == "base changeling"
    assert module.Child.twice(5) == 15
    assert module.Base().name() == "base"


@pytest.mark.parametrize(
    ("old", "said"), [("n * STEP", "0 times"), ("n", "times, not once")], ids=["absent", "more than once"]
)
def test_an_edit_that_does_not_fit_is_an_error(module: types.ModuleType, old: str, said: str) -> None:
    with pytest.raises(EditError, match=said):
        install([Edit("mutant_home:count", old, "")])


def test_an_edit_that_reads_what_is_not_around_its_function_is_an_error(module: types.ModuleType) -> None:
    with pytest.raises(
        EditError, match=r"^mutant_home:Base\.name would read __class__, which is not around it$"
    ):
        install([Edit("mutant_home:Base.name", "'base'", "str(super())")])


def test_an_edit_of_what_is_not_there_is_an_error(module: types.ModuleType) -> None:
    with pytest.raises(EditError, match=r"^mutant_home:Child.gone is not there$"):
        install([Edit("mutant_home:Child.gone", "n", "m")])
    assert module.Child().name() == "base child"


# For real


@pytest.fixture(scope="module")
def judged(release: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    """The verdict on the cell of each defect."""
    if release != releases.load().default:
        pytest.skip("the edits are of the default release")
    planned = plan(
        Options(
            models=("models", defects.__name__),
            variations="0,4",
            goldens=GOLDENS,
            sweeps=tmp_path_factory.mktemp("sweeps"),
            tier=FULL,
            patches="auto",
        )
    )
    cells = {name: Mutated(*defect.cell.split("/"), name) for name, defect in DEFECTS.items()}
    installed: dict[Cell, tuple[str, ...]] = {cell: (name,) for name, cell in cells.items()}
    found = {}
    with Sweep(list(installed), planned.variations, planned.settings, further_patches=installed) as sweep:
        for name, cell in cells.items():
            reviewed = golden.read(golden.file_of(planned.root, cell))
            found[name] = compare(
                cell, sweep.outcomes(cell), reviewed, planned.release, planned.decided
            ).verdict
    return found


@pytest.mark.parametrize("name", DEFECTS)
@pytest.mark.slow
def test_a_defect_gets_the_right_verdict_and_the_right_pass(name: str, judged: dict[str, Verdict]) -> None:
    assert (judged[name].name, named(judged[name])) == (DEFECTS[name].verdict, DEFECTS[name].place)

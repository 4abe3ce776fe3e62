"""Statements of named files are recorded as they run, in each process from nothing."""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from executorch_goldens_plugins.compare.exporting import reaching

#: Two packages; the first is asked for.
SOURCE = '''\
"""Numbers of lines are in the tests."""
import functools


def chosen(n):
    """Return a word."""
    if n > 5:
        return "large"
    elif n < 0:
        raise ValueError(n)
    for each in range(n):
        if each == 3:
            break
    return "small"


@functools.lru_cache
def squared(n):
    return n * n


class Table:
    def get(self, n):
        def inner():
            return squared(n)

        return inner()
'''


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Import a module of a folder of packages, of which ``asked`` is recorded."""
    for package in ("asked", "other"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
        (tmp_path / package / "made.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(builtins, reaching.NAME, None, raising=False)
    reaching.install(tmp_path, ["asked"])
    reaching.begin()
    yield importlib.import_module
    reaching.begin()
    for name in [name for name in sys.modules if name.split(".")[0] in ("asked", "other")]:
        del sys.modules[name]


def lines() -> tuple[int, ...]:
    return reaching.taken().get("asked/made.py", ())


def test_statements_that_run_are_recorded_and_conditions_that_are_false(
    imported: Callable[[str], ModuleType],
) -> None:
    made = imported("asked.made")
    assert lines() == ()
    assert made.chosen(1) == "small"
    assert sorted(lines()) == [-12, -9, 7, 9, 11, 12, 14]
    assert made.chosen(9) == "large"
    assert 8 in lines()
    assert made.chosen(4) == "small"
    assert 13 in lines()


def test_an_error_is_raised_from_its_own_line(imported: Callable[[str], ModuleType]) -> None:
    with pytest.raises(ValueError, match="-1") as raised:
        imported("asked.made").chosen(-1)
    assert raised.traceback[-1].lineno == 9
    assert 10 in lines()
    assert imported("asked.made").chosen.__doc__ == "Return a word."


def test_what_ran_before_is_seen_again_also_where_a_cache_answers(
    imported: Callable[[str], ModuleType],
) -> None:
    table = imported("asked.made").Table()
    assert table.get(3) == 9
    assert sorted(lines()) == [19, 24, 25, 27]
    reaching.begin()
    assert lines() == ()
    assert table.get(3) == 9
    assert sorted(lines()) == [19, 24, 25, 27]
    assert imported("asked.made").squared.cache_info().hits == 1


def test_files_that_are_not_asked_for_are_imported_as_ever(imported: Callable[[str], ModuleType]) -> None:
    imported("other.made").chosen(1)
    assert reaching.taken() == {}


def test_dynamo_leaves_nothing_of_it_in_a_graph_and_counts_what_it_reads(
    tmp_path: Path, imported: Callable[[str], ModuleType]
) -> None:
    torch = pytest.importorskip("torch")
    source = (
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"
    )
    (tmp_path / "asked" / "net.py").write_text(source)
    net = imported("asked.net")
    exported = torch.export.export(net.Net(), (torch.ones(2),), strict=True)
    assert [node.name for node in exported.graph.nodes] == ["x", "add", "output"]
    assert reaching.taken() == {"asked/net.py": (6,)}

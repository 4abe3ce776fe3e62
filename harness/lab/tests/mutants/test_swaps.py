"""Swapped names: which reads of a source can be swapped, what a seed draws, and the edit of one."""

from __future__ import annotations

import ast
import functools
import textwrap
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from executorch_goldens.errors import UsageError
from executorch_goldens.toolchains.toolchain import here
from executorch_goldens_plugins.compare.reach import map as maps
from lab.mutants import recall, swaps
from lab.mutants.mechanical import PLACES
from lab.mutants.recall import REACHED, SEEN
from lab.mutants.swapping import uses
from lab.mutants.swaps import Swap
from tests import GOLDENS


def found(source: str) -> set[tuple[str, tuple[str, ...]]]:
    """Return the names of a source that can be swapped, with those that can be read instead."""
    return {(each.old, each.others) for each in uses(textwrap.dedent(source))}


@pytest.mark.parametrize(
    ("parameters", "body", "expected"),
    [
        ("x: Node, y: torch.fx.Node, n: int", "return x, n", {("x", ("y",))}),
        ("x: Any, y: Any", "return x", set()),
        ("x, y", "return x", set()),
        ("x", "h, w = x.shape; return h", {("h", ("w",))}),
        ("x", "a, b = (1, x.y); return a", set()),
        ("x", "a = size(x); b = size(x.y); return b", {("b", ("a",))}),
        ("x", "a = size(x); b = rank(x); return b", set()),
        ("x", "a = getattr(x, 'a'); b = getattr(x, 'b'); return b", set()),
        ("x", "a = x.args[0]; b = x.args[1]; c = x.args[1:]; return b", {("b", ("a",))}),
        ("x", "a = x + 1; b = 2 * x; return b", {("b", ("a",))}),
        ("x", "a = []; b = [x]; c = (x,); return b", {("b", ("a",))}),
        ("x: int, y: int", "return f'{x}'", set()),
        ("x: int, y: int", "raise Error(x)", set()),
        ("x: int, y: int", "logger.debug(x)", set()),
        ("x: int, y: int", "y: x = 1", set()),
        ("x: int, y: int", "return lambda x: x", set()),
        ("xs, ys", "return [a for a, b in zip(xs, ys)]", {("a", ("b",))}),
        ("xs", "return [a for a, b in enumerate(xs)]", set()),
    ],
)
def test_names_of_one_type_are_swapped_where_they_are_read(
    parameters: str, body: str, expected: set[tuple[str, tuple[str, ...]]]
) -> None:
    assert found(f"def f({parameters}):\n    {body}\n") == expected


def test_a_name_is_read_only_where_it_is_bound_on_every_way() -> None:
    ways = """
        def f(x, y):
            a = y.args[0]
            {binding}
            return a
    """
    bound = {("a", ("b",))}
    for binding, expected in {
        "b = y.args[1]": bound,
        "if x: b = y.args[1]": set(),
        "for b in y.args: pass": set(),
        "with x: b = y.args[1]": bound,
        "\n            if x: b = y.args[1]\n            else: b = y.args[2]": bound,
        "\n            if x: b = y.args[1]\n            else: return": bound,
        "\n            try: b = y.args[1]\n            except E: pass": set(),
        "\n            try: b = y.args[1]\n            except E: raise": bound,
        "def g(): b = y.args[1]": set(),
    }.items():
        assert found(ways.format(binding=binding)) == expected, binding


def test_attributes_of_an_object_are_swapped_in_its_methods_and_not_before_they_are_bound() -> None:
    source = """
        class Pass:
            limit: int
            def __init__(self, low: int, high: int):
                self.low = low + 0
                self.both = self.low
                self.high = high + 1
            def call(self, least: int):
                return self.low, self.limit
    """
    assert found(source) == {
        ("low", ("high",)),
        ("high", ("low",)),
        ("self.low", ("self.high",)),
        ("self.limit", ("least",)),
    }


def test_a_seed_draws_the_same_share_of_each_place_in_turn_and_no_function_twice() -> None:
    toolchain = here()
    version, packages = toolchain.release.version, toolchain.site_packages
    found = swaps.every_use(packages, maps.read(GOLDENS / version / maps.FILE))
    drawn = swaps.draw(found)
    for every in (drawn, swaps.read()):
        assert Counter(each.place for each in every) == dict.fromkeys(PLACES, swaps.SHARE)
        assert len({each.function for each in every}) == len(every)
        assert [each.place for each in every[: len(PLACES)]] == list(PLACES)
    assert {each.name for each in swaps.draw(found, share=2)} == {
        each.name for each in drawn[: 2 * len(PLACES)]
    }
    assert swaps.draw(found, seed=2) != drawn
    for each in drawn:
        edit = each.edit(packages)
        assert edit.old.count("\n") == edit.new.count("\n")
        assert edit.old != edit.new
    if version == swaps.RELEASE:
        assert [replace(each, equivalent="") for each in swaps.read()] == drawn


def test_an_edit_is_the_line_alone_although_another_line_has_its_text(tmp_path: Path) -> None:
    source = "def f(h, w):\n    if h:\n        h = g(h)\n        return h\n    h = g(h)\n    return w\n"
    place = tmp_path / "executorch" / "exir" / "a.py"
    place.parent.mkdir(parents=True)
    place.write_text(source)
    swap = Swap("exir-01", "executorch.exir.a:f", 5, 10, "h = g(h)", "h", "w", 0)
    recall.lay([swap.edit(tmp_path)], tmp_path, tmp_path / "laid")
    laid = (tmp_path / "laid" / "exir" / "a.py").read_text()
    assert laid == source.replace("    h = g(h)\n    return w", "    h = g(w)\n    return w")
    ast.parse(laid)


def test_a_line_that_is_not_what_was_drawn_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(h, w):\n    return w\n")
    with pytest.raises(UsageError, match="has in line 2 not 'return h'"):
        Swap("exir-01", "a:f", 2, 11, "return h", "h", "w", 0).edit(tmp_path)


def test_drawing_again_keeps_what_a_person_has_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swap = Swap("exir-01", "executorch.exir.a:f", 2, 11, "return h", "h", "w", 3)
    other = replace(swap, old="w", new="h", name="exir-02")
    monkeypatch.setattr(swaps, "DRAWN", tmp_path / "swaps.tsv")
    monkeypatch.setattr(swaps.maps, "read", lambda path: None)
    monkeypatch.setattr(swaps, "every_use", lambda packages, known: {})
    monkeypatch.setattr(swaps, "draw", lambda every: [other, swap])
    swaps.tables.write(swaps.DRAWN, swaps.COLUMNS, [asdict(replace(swap, equivalent="both are one"))])
    swaps.write(tmp_path)
    assert swaps.read() == [other, replace(swap, equivalent="both are one")]


def test_the_page_counts_what_is_equivalent_apart_from_what_was_not_compared() -> None:
    swap = functools.partial(Swap, function="a:f", line=2, column=0, code="h", old="h", new="w")
    drawn = [swap("exir-01", cells=0), swap("exir-02", cells=1, equivalent="one"), swap("exir-03", cells=1)]
    made = {"exir-01": {"result": SEEN}}
    assert swaps._row("exir", drawn, made) == "| exir | 3 | 1 | 1 | 1 | 0 | 0 | 1 |"
    made["exir-03"] = {"result": REACHED}
    assert swaps._row("", drawn, made) == "| all | 3 | 1 | 1 | 1 | 1 | 0 | 0 |"

"""Mutants match their description, edits fit the installed release, and a few of them are judged for real."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from executorch_goldens.artifact import STAGE, Cell, PassRun
from executorch_goldens.diff.changes import AttributeChanged
from executorch_goldens.errors import UsageError
from executorch_goldens.judging.divergence import Divergence, How
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.patches import PATCHES
from executorch_goldens.running.selection import load_cells
from executorch_goldens.settings import releases
from lab.mutants import KINDS, MUTANTS, Edit, EditError, Mutant, page
from lab.mutants.__main__ import prepare, select, verdicts
from lab.mutants.mutant import Mutated, edited, install
from lab.mutants.table import Judged, is_enough, summary
from tests import REPOSITORY
from tests.support.verdicts import verdict

#: Possible verdicts of a mutant; ``stable`` is for those that survive.
VERDICTS = {
    *(
        "order-only",
        "unstable",
        "corrupt",
        "imprecise",
        "changed",
        "failed",
        "crashed",
        "timed-out",
        "stable",
    ),
}


def test_there_are_forty_mutants_and_one_of_every_kind() -> None:
    assert len(MUTANTS) >= 40
    assert {mutant.kind for mutant in MUTANTS} == set(KINDS)


def test_every_mutant_can_be_asked_for_by_its_name() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", mutant.name)
        assert PATCHES[mutant.name].install == mutant.install


def test_every_mutant_says_in_one_line_what_it_does_and_what_comes_of_it() -> None:
    for mutant in MUTANTS:
        assert mutant.does, mutant.name
        assert "\n" not in mutant.does, mutant.name
        assert mutant.verdict in VERDICTS, mutant.name
        survives = mutant.verdict == "stable"
        assert survives == bool(mutant.caught_by) == (mutant.place == ""), mutant.name
        assert "|" not in mutant.does, mutant.name


def test_mutants_are_chosen_by_name_and_wildcard() -> None:
    assert [mutant.name for mutant in select(["tosa-outputs-reversed"])] == ["tosa-outputs-reversed"]
    assert {mutant.name for mutant in select(["*-outputs-reversed"])} >= {"xnnpack-outputs-reversed"}
    assert select([]) == list(MUTANTS)


def test_a_name_that_no_mutant_has_is_refused_with_those_near_it() -> None:
    with pytest.raises(
        UsageError, match=r"no mutant is called 'tosa-outputs-reverse'; .*tosa-outputs-reversed"
    ):
        select(["fold-of-raw-codes", "tosa-outputs-reverse"])


def test_every_mutant_is_tried_on_a_cell_of_the_default_release() -> None:
    matrix = releases.load()
    known = {str(cell) for cell in load_cells(("models",), matrix.release(matrix.default))}
    assert {mutant.cell for mutant in MUTANTS} <= known


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_edit_fits_what_is_installed(mutant: Mutant, release: str) -> None:
    if release != releases.load().default:
        pytest.skip("mutants are edits of the default release")
    for function, edits in mutant.by_function().items():
        assert edited(function, edits)


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


def test_an_edited_function_is_replaced_wherever_it_is_held(module: types.ModuleType) -> None:
    import mutant_user  # type: ignore[import-not-found]

    install("mutant_home:count", [Edit("mutant_home:count", "n + STEP", "n - STEP")])
    assert (module.count(5), mutant_user.count(5)) == (4, 4)


def test_an_edited_function_whose_results_are_cached_has_a_cache_of_its_own(module: types.ModuleType) -> None:
    assert module.cached(5) == 6
    install("mutant_home:cached", [Edit("mutant_home:cached", "n + STEP", "n - STEP")])
    assert (module.cached(5), module.cached(5)) == (4, 4)
    assert module.cached.cache_info().hits == 1


def test_two_edits_of_one_function_are_made_together(module: types.ModuleType) -> None:
    edits = [
        Edit("mutant_home:count", "n + STEP", "n - STEP"),
        Edit("mutant_home:count", "count(n)", "count(n=7)"),
    ]
    install("mutant_home:count", edits)
    assert module.count() == 6


def test_a_function_that_was_edited_is_edited_again(module: types.ModuleType) -> None:
    import mutant_user

    for edit in (Edit("mutant_home:count", "STEP", "10 * STEP"), Edit("mutant_home:count", "n +", "2 * n +")):
        install(edit.function, [edit])
    assert (module.count(5), mutant_user.count(5)) == (20, 20)
    for edit in (
        Edit("mutant_home:Child.twice", "2 *", "3 *"),
        Edit("mutant_home:Child.twice", "* n", "* -n"),
    ):
        install(edit.function, [edit])
    assert module.Child().twice(5) == -15


def test_an_edited_method_keeps_its_class_and_its_decorators(module: types.ModuleType) -> None:
    install("mutant_home:Child.name", [Edit("mutant_home:Child.name", "' child'", "' changeling'")])
    install("mutant_home:Child.twice", [Edit("mutant_home:Child.twice", "2 * n", "3 * n")])
    assert module.Child().name() == "base changeling"
    assert module.Child.twice(5) == 15
    assert module.Base().name() == "base"


@pytest.mark.parametrize(
    ("old", "said"), [("n * STEP", "0 times"), ("n", "times, not once")], ids=["absent", "more than once"]
)
def test_an_edit_that_does_not_fit_is_an_error(module: types.ModuleType, old: str, said: str) -> None:
    with pytest.raises(EditError, match=said):
        install("mutant_home:count", [Edit("mutant_home:count", old, "")])


def test_an_edit_of_what_is_not_there_is_an_error(module: types.ModuleType) -> None:
    with pytest.raises(EditError, match=r"^mutant_home:Child.gone is not there$"):
        install("mutant_home:Child.gone", [Edit("mutant_home:Child.gone", "n", "m")])
    assert module.Child().name() == "base child"


def test_a_mutant_that_does_not_fit_is_one_line_that_says_which_and_where(module: types.ModuleType) -> None:
    mutant = replace(CAUGHT, edits=(Edit("mutant_home:count", "n * STEP", "n"),))
    with pytest.raises(EditError) as error:
        mutant.patch("1.4.1").install("1.4.1")
    assert str(error.value) == "mutant_home:count has 0 times, not once: 'n * STEP'"
    assert str(Mutated("tosa-fp", "linear", mutant.name)) == "tosa-fp/linear with caught"


def test_an_edit_does_not_undo_a_patch(module: types.ModuleType) -> None:
    def patched(n: int) -> int:
        return n

    patched.__wrapped__ = module.count  # type: ignore[attr-defined]
    module.count = patched  # type: ignore[attr-defined]
    with pytest.raises(EditError, match="wrapped"):
        install("mutant_home:count", [Edit("mutant_home:count", "n + STEP", "n - STEP")])


# What is counted

CAUGHT = Mutant("caught", KINDS[0], "does harm", "tosa-fp/linear", "corrupt", "FoldPass", ())
SURVIVOR = replace(CAUGHT, name="survivor", verdict="stable", place="", caught_by="a second export")


@pytest.mark.parametrize(
    ("attribute", "named", "right"),
    [("stride", "delegate_0: stride", True), ("pad", "delegate_0", False)],
    ids=["shown", "not shown"],
)
def test_of_a_serialization_the_message_must_show_what_is_serialized_wrongly(
    attribute: str, named: str, right: bool
) -> None:
    mutant = replace(CAUGHT, place="delegate_0", shows="stride")
    change = AttributeChanged("", "conv", attribute, "[1, 2]", "[2, 1]")
    diverges = Divergence("delegate_0", How.DIFFERS, (PassRun(STAGE, "delegate_0", "", True),), change=change)
    found = Judged.from_verdict(
        mutant, verdict("corrupt", cell=Cell("tosa-fp", "linear"), divergence=diverges)
    )
    assert (found.named, found.pass_right) == (named, right)


def test_an_undeclared_survivor_is_not_enough_and_is_listed() -> None:
    found = [Judged(CAUGHT, "corrupt", "FoldPass")] * 99 + [Judged(CAUGHT, "stable", "-")]
    assert not is_enough(found)
    assert "Survives: caught. Caught by: nothing that is declared." in list(summary(found))


def test_a_declared_survivor_is_allowed_and_listed_with_what_would_catch_it() -> None:
    found = [Judged(CAUGHT, "corrupt", "FoldPass")] * 99 + [Judged(SURVIVOR, "stable", "-")]
    assert is_enough(found)
    assert "Survives: survivor. Caught by: a second export." in list(summary(found))


def test_a_survivor_that_is_detected_is_not_as_declared() -> None:
    found = [Judged(CAUGHT, "corrupt", "FoldPass")] * 99 + [Judged(SURVIVOR, "changed", "pte")]
    assert not is_enough(found)
    assert "No longer survives: survivor. Take its `caught_by` away." in list(summary(found))


@pytest.mark.parametrize(
    ("verdict", "named", "wrong", "enough"),
    [
        ("changed", "FoldPass", 5, True),
        ("changed", "FoldPass", 6, False),
        ("corrupt", "pte", 10, True),
        ("corrupt", "pte", 11, False),
    ],
)
def test_a_twentieth_of_the_verdicts_and_a_tenth_of_the_passes_may_be_wrong(
    verdict: str, named: str, wrong: int, enough: bool
) -> None:
    right = [Judged(CAUGHT, "corrupt", "FoldPass")] * (100 - wrong)
    assert is_enough(right + [Judged(CAUGHT, verdict, named)] * wrong) == enough


def test_what_is_committed_is_of_these_mutants_and_is_enough() -> None:
    found = page.judged()
    assert [each.mutant for each in found] == list(MUTANTS)
    assert is_enough(found)


# For real

#: On one target, which makes starting cheap: a corrupt cell and an order-only one.
SOME = ("fold-of-raw-codes", "weights-named-by-a-counter")


@pytest.fixture(scope="module")
def found(release: str) -> dict[str, Judged]:
    if release != releases.load().default:
        pytest.skip("mutants are edits of the default release")
    run = prepare(REPOSITORY / "goldens", "0,4", jobs=None)
    answers = list(verdicts(run, select(SOME)))
    assert not [answer for answer in answers if isinstance(answer, Verdict)]
    return {answer.mutant.name: answer for answer in answers if isinstance(answer, Judged)}


@pytest.mark.parametrize("name", SOME)
@pytest.mark.slow
def test_a_mutant_gets_the_right_verdict_and_the_right_pass(found: dict[str, Judged], name: str) -> None:
    assert found[name].verdict_right, found[name]
    assert found[name].pass_right, found[name]

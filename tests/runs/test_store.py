"""Entries that a run adds to the store, and takes from it."""

from __future__ import annotations

import pytest

from executorch_goldens.sweep.store import Store, facts_of
from tests.conftest import Artifacts
from tests.support.runner import Finished, Runner, options_of

UPDATE = "--snapshot-update"


def reused(run: Finished) -> list[str]:
    """Return the lines in which a run says what it took from the store, and why not more."""
    return [
        line
        for line in run.output.splitlines()
        if line.startswith(("reused ", "exported again: ", "not kept: ", "nothing more was kept: "))
    ]


FIRMWARE = """
import torch
from executorch_goldens import Example, case

@case(guards="a model that is put into eval mode, which is no dynamic import")
def gate(data):
    model = data.fill(torch.nn.Linear(4, 4))
    model.eval()
    return Example(model, (data.tensor("x", 1, 4),))
"""


@pytest.mark.slow
def test_an_edited_case_is_exported_again_with_those_of_its_module_and_no_others(runner: Runner) -> None:
    zoo, other, root = runner.folder / "firmware.py", runner.folder / "others.py", runner.folder / "store"
    second = (
        FIRMWARE.partition("@case")[2].replace("gate", "door").replace("4, 4", "2, 2").replace("1, 4", "1, 2")
    )
    zoo.write_text(f"{FIRMWARE}\n@case{second}")
    other.write_text(FIRMWARE.replace("gate", "wall"))
    words = ("--models", "firmware", "--models", "others", "--cell", "xnnpack-fp32/*", "--variations", "1")
    words = (*words, "--cache", str(root), "-v")
    assert reused(runner(*words)) == [f"reused 0 of 3 exports; cache: {root}"]
    zoo.write_text(zoo.read_text().replace("2, 2", "2, 3"))
    edited = runner(*words)
    assert reused(edited) == [
        f"reused 1 of 3 exports; cache: {root}",
        f"exported again: 2, because {zoo} changed",
    ]
    assert [name for name, row in edited.rows.items() if row["reused"] == [True]] == ["xnnpack-fp32/wall"]


@pytest.mark.slow
def test_exports_depend_on_their_own_backend_and_case_alone(runner: Runner) -> None:
    cells = ("xnnpack-fp32/steady", "tosa-fp/steady")
    root = runner.folder / "store"
    words = (*(word for cell in cells for word in ("--cell", cell)), "--variations", "1")
    runner("--models", "tests.support.zoo", *words, "--cache", str(root))
    store = Store(root)
    found = [
        {fact.place for key in facts_of(path.name) for fact in store.facts(key) or ()}
        for path in (root / "exports").glob("*/*")
    ]
    assert len(found) == 2
    backends = [
        {
            backend
            for backend in ("arm", "xnnpack")
            if any(f"/executorch/backends/{backend}/" in place and place.endswith(".py") for place in places)
        }
        for places in found
    ]
    # Arm's passes import XNNPACK's package on 1.4.1 (executorch/backends/transforms/aten_to_dialect_pass.py).
    assert {"xnnpack"} in backends
    assert any("arm" in each for each in backends)
    for places in found:
        assert any(place.endswith("/tests/support/zoo/__init__.py") for place in places)
        assert any(place.endswith("/exporting/recipe.py") for place in places)
        # What is linked to libraries as well.
        assert any("libtorch_cpu" in place for place in places)


@pytest.mark.parametrize(
    ("words", "ci", "keeping"),
    [
        ((), "", True),
        (("--cache=off",), "", False),
        # Machines of CI are new each time, and some keep their caches.
        ((), "1", False),
        (("--cache=on",), "1", True),
        (("--cache=some/folder",), "1", True),
    ],
)
def test_where_a_run_keeps_what_it_made(
    words: tuple[str, ...], ci: str, keeping: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    assert options_of(*words).caches is keeping


def test_a_run_that_is_not_to_keep_has_no_store(runner: Runner, artifacts: Artifacts) -> None:
    runner.answers({"alpha": artifacts["steady"][0]})
    words = ("--models", runner.zoo("one", "alpha"), "--cell", "xnnpack-fp32/alpha", "--variations", "1")
    words = (*words, "--cache", str(runner.folder / "store"), "-v")
    said = " exports; cache: "
    assert said in runner(*words).output
    assert said not in runner(*words, "--cache=off").output


@pytest.mark.slow
def test_a_run_that_does_not_name_the_cache_does_without_one_that_cannot_be_written(runner: Runner) -> None:
    (runner.folder / "pyproject.toml").write_text('[tool.goldens]\ncache-dir = "/dev/null"\n')
    words = ("--models", "tests.support.zoo", "--cell", "xnnpack-fp32/steady", "--variations", "0,4", UPDATE)
    unnamed = Runner(runner.folder, runner.release, directory=runner.folder, keeping=())
    finished = unnamed(*words)
    assert finished.code == 0
    assert "nothing more was kept: the cache /dev/null cannot be written" in finished.output
    assert "--cache off" in finished.output

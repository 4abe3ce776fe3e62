"""Shortcuts: the same bytes for less, nothing kept from one export for another, and a refusal where they do not fit."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import replace

import pytest

from executorch_goldens import patches
from executorch_goldens.artifact import Artifact, Cell, Failure, Lowered, Outcome
from executorch_goldens.patches import guard
from executorch_goldens.patches.guard import GuardError
from executorch_goldens.settings import releases
from executorch_goldens.settings.exports import (
    EXPORT_TIMEOUT,
    Settings,
    default_interpreter,
    worker_environment,
)
from executorch_goldens_plugins.fast.plugin import PLUGIN
from executorch_goldens_plugins.fast.shortcut import Shortcut
from tests.support.commands import ended
from tests.support.runner import Runner
from tests.support.shortened import Pair, pairs

SHORTCUTS = {name: guard.resolve(hook) for name, hook in PLUGIN.shortcuts.items()}

#: A cell of each family of targets, small ones; the last fails in each release, and grows as no other does.
CELLS = (
    *("tosa-fp/permute-sum", "tosa-int/linear", "tosa-int16/piecewise-units", "xnnpack-fp32/upsample"),
    *("xnnpack-int8/conv-bn-relu", "xnnpack-int8/channel-norms", "xnnpack-dynamic/linear"),
    *("tosa-fp+cf/condition", "xnnpack-fp32/lstm"),
)

#: 2**20 bytes that an export with shortcuts may take beyond one without: what its template keeps for all is in it.
MEMORY = 128


@pytest.fixture(scope="module")
def compared(release: str) -> list[Pair]:
    """Real exports with and without shortcuts."""
    names = patches.select("auto", releases.load().release(release).patches)
    settings = Settings(default_interpreter(), ("models",), names, 2, EXPORT_TIMEOUT)
    return list(pairs([Cell(*cell.split("/")) for cell in CELLS], (0,), settings))


@pytest.mark.slow
def test_exports_with_and_without_shortcuts_have_the_same_bytes(compared: list[Pair]) -> None:
    assert {str(pair.cell): pair.differing for pair in compared} == dict.fromkeys(CELLS, ())
    assert all(
        isinstance(each.result, Artifact) for pair in compared for each in (pair.without, pair.shortened)
    )


@pytest.mark.slow
def test_exports_with_shortcuts_are_cheaper_and_take_little_more_memory(compared: list[Pair]) -> None:
    before = sum(pair.without.core_seconds for pair in compared)
    assert sum(pair.shortened.core_seconds for pair in compared) < 0.85 * before
    for pair in compared:
        assert pair.shortened.peak_mb < pair.without.peak_mb + MEMORY


def test_any_difference_of_two_exports_is_named(artifacts: Mapping[str, tuple[Artifact, ...]]) -> None:
    (artifact, *_), (failed, *_) = artifacts["steady"], artifacts["does-not-lower"]
    made, failure, watched = artifact.result, failed.result, artifact.watched
    assert isinstance(made, Lowered)
    assert isinstance(failure, Failure)
    renamed = replace(watched.passes[0], beyond="other names")
    others = {
        "graph": replace(artifact, result=replace(made, graph=made.graph + " ")),
        "pte": replace(artifact, result=replace(made, pte=made.pte + b" ")),
        "delegate 0": replace(artifact, result=replace(made, delegates=())),
        "outputs": replace(artifact, result=replace(made, samples=made.samples[1:])),
        "trace": replace(artifact, watched=replace(watched, passes=(renamed, *watched.passes[1:]))),
        "visitors": replace(artifact, watched=replace(watched, visitors=())),
    }
    for name, other in others.items():
        assert pair(artifact, other).differing == (name,)
    elsewhere = replace(failed, result=replace(failure, message="another"))
    assert pair(failed, elsewhere).differing == ("failure",)


def pair(one: Artifact, other: Artifact) -> Pair:
    cell = Cell("xnnpack-fp32", "steady")
    outcomes = [Outcome(cell, "seed0-heap0", artifact, 1.0, 100.0) for artifact in (one, other)]
    return Pair(cell, *outcomes)


@pytest.mark.slow
def test_an_export_is_the_same_whatever_was_exported_before_it_in_the_process(release: str) -> None:
    program = """
        from executorch_goldens.artifact import Lowered
        from tests.support.shortened import facts
        from executorch_goldens.exporting import compat
        from executorch_goldens.exporting.entry import export
        from executorch_goldens import patches, plugins
        from executorch_goldens.sweep import worker
        from executorch_goldens.zoo.registry import load

        worker.set_kernels(1, False)
        zoo = load(("models",))
        patches.shorten(plugins.shortcuts().values(), compat.installed_release())
        # The first export imports passes that the watch does not see before.
        worker.warm_up(["tosa-int", "xnnpack-fp32", "xnnpack-int8"])
        first = export(zoo["conv-bn-relu"], "xnnpack-int8")
        for case, target in (("linear", "tosa-int"), ("pads", "xnnpack-int8"), ("linear", "xnnpack-fp32")):
            export(zoo[case], target)
        assert isinstance(first.result, Lowered), first.result
        assert facts(first) == facts(export(zoo["conv-bn-relu"], "xnnpack-int8"))
    """
    python = default_interpreter()
    run = ended([python, "-c", textwrap.dedent(program)], env=worker_environment(python, 0))
    assert run.returncode == 0, run.stderr[-3000:]


# Names and refusals


def test_every_shortcut_fits_the_release_that_is_installed(release: str) -> None:
    for shortcut in SHORTCUTS.values():
        guard.verify(shortcut, release)


def test_every_shortcut_knows_every_release() -> None:
    for name, shortcut in SHORTCUTS.items():
        assert shortcut.name == name
        assert set(shortcut.fits) == set(releases.load().releases)


def test_every_shortcut_guards_functions_of_every_release() -> None:
    for shortcut in SHORTCUTS.values():
        guarded = {frozenset(functions) for functions in shortcut.fits.values()}
        # The same functions for each release: none is left out where a digest was forgotten.
        assert len(guarded) == 1, shortcut.name
        assert frozenset() not in guarded, shortcut.name


@pytest.mark.slow
def test_the_command_prints_every_digest_of_shortcuts_as_recorded_for_the_installed_release(
    release: str,
) -> None:
    command = [sys.executable, "-m", "executorch_goldens.patches"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    shown = {tuple(line.split()[1:4]) for line in printed if line.startswith("shortcut ")}
    assert {(name, function, found[: guard.DIGITS]) for name, function, found in shown} == {
        (shortcut.name, *recorded)
        for shortcut in SHORTCUTS.values()
        for recorded in shortcut.fits.get(release, {}).items()
    }


#: Of two shortcuts: the one fits, and the other is refused.
INSTALLED: list[str] = []
FUNCTION = "shutil:copy"
ONE = Shortcut("one", None, "", {"1.4.1": {FUNCTION: guard.digest(FUNCTION)}}, INSTALLED.append)
OTHER = Shortcut("other", None, "", {"1.4.1": {FUNCTION: "0" * 64}}, INSTALLED.append)


def test_a_shortcut_that_does_not_fit_is_refused_and_none_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patches, "SHORTCUTS", [])
    with pytest.raises(GuardError) as raised:
        patches.shorten((f"{__name__}:ONE", f"{__name__}:OTHER"), "1.4.1")
    assert INSTALLED == patches.SHORTCUTS == []
    assert raised.value.patch is OTHER
    for fact in ("shortcut 'other'", "1.4.1", FUNCTION, "0" * 64, "--no-shortcuts"):
        assert fact in str(raised.value)
    patches.shorten((f"{__name__}:ONE",), "1.4.1")
    assert (INSTALLED, patches.SHORTCUTS) == (["1.4.1"], [ONE])


@pytest.mark.slow
def test_a_run_whose_release_has_another_source_is_one_clear_error(runner: Runner) -> None:
    guarded = next(iter(SHORTCUTS.values()))
    runner.zoo("zoo_edited", "alpha")
    # Every Python that is started imports it; templates import no zoo.
    (runner.folder / "sitecustomize.py").write_text(
        f"from {guarded.install.__module__} import SHORTCUT\n"
        "for known in SHORTCUT.fits.values():\n"
        "    known.update(dict.fromkeys(known, 'another'))\n"
    )
    options = ("--models", "zoo_edited", "--cell", "xnnpack-fp32/*", "--variations", "1")
    facts = (repr(guarded.name), next(iter(guarded.fits[runner.release])), runner.release, "--no-shortcuts")
    runner(*options).refused(*facts)
    # Without it, the case itself is what fails: it has no model.
    without = runner(*options, "--no-shortcuts")
    assert without.verdicts() == {"xnnpack-fp32/alpha": "failed"}

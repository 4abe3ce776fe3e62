"""States in ``python -m lab stock``; their exports are those of every run."""

from __future__ import annotations

import dataclasses

import pytest

from executorch_goldens import plugins
from executorch_goldens.cli import ERROR
from executorch_goldens.errors import UsageError
from executorch_goldens.settings import releases
from executorch_goldens.toolchains.toolchain import here
from lab.__main__ import main
from lab.stock.command import TITLES, differences, fitting_shortcuts, table
from lab.stock.issues import CORRECTED, ISSUES, Finding, rows

RELEASE = releases.load().releases["1.4.1"]


def states(**others: str) -> dict[str, Finding]:
    """Return the states of 1.4.1 as declared, except `others`, by finding."""
    shown = {f"#{number}": state for number, state in RELEASE.issues.items()}
    shown |= dict.fromkeys(CORRECTED, "bug")
    return {row: Finding(state, ()) for row, state in {**shown, **others}.items()}


FIXED = {row: Finding("fixed", ()) for row in states()}


@pytest.mark.parametrize("command", ["stock", "fielded"])
@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("9.9.9", "unknown release '9.9.9'; known are 1.1.0"),
        ("1.4.1=python", "'1.4.1=python' is no toolchain"),
        ("no/such/python", "'no/such/python': no/such/python does not exist; a toolchain is e.g. 1.5.1"),
        ("/usr", "/usr has no environment in it"),
    ],
)
def test_a_word_that_names_no_environment_is_one_clear_error(
    command: str, word: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, word]) == ERROR
    error = capsys.readouterr().err
    assert said in error


def test_a_finding_is_a_row_of_the_releases_that_have_its_patch() -> None:
    assert set(CORRECTED) < set(TITLES)
    for release in releases.load().releases.values():
        assert rows((), release).keys() - {f"#{issue.number}" for issue in ISSUES} == {
            name for name in CORRECTED if name in release.patches
        }


def test_states_as_declared_and_fixed_by_patches_are_no_difference() -> None:
    assert list(differences(RELEASE, states(), FIXED)) == []


def test_a_finding_that_does_not_show_or_that_its_patch_does_not_fix_is_named() -> None:
    off = states(**{"folded-scales": "fixed"})
    on = {**FIXED, "folded-scales": Finding("bug", ())}
    first, second = differences(RELEASE, off, on)
    assert first.startswith("NOT AS DECLARED: folded-scales on 1.4.1 is 'fixed' without its patch.")
    assert second == "NOT FIXED: folded-scales on 1.4.1 is 'bug' with patches on."


@pytest.mark.slow
def test_patches_without_digests_are_one_error_before_any_export() -> None:
    toolchain = here()
    unknown = dataclasses.replace(toolchain.release, version="9.9.9", patches=("partition-order",))
    with pytest.raises(UsageError) as raised:
        fitting_shortcuts(dataclasses.replace(toolchain, release=unknown))
    assert "  partition-order: not written for ExecuTorch 9.9.9\n" in str(raised.value)
    assert f"{toolchain.python} -m executorch_goldens.patches" in str(raised.value)


@pytest.mark.slow
def test_shortcuts_without_digests_are_left_out_with_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    toolchain = here()
    unknown = dataclasses.replace(toolchain.release, version="0.9.0", patches=())
    assert fitting_shortcuts(dataclasses.replace(toolchain, release=unknown)) == {}
    printed = capsys.readouterr()
    for name in plugins.shortcuts():
        assert f"left out: shortcut {name}: not written for ExecuTorch 0.9.0" in printed.out + printed.err


def test_a_report_in_another_state_is_named() -> None:
    (line,) = differences(RELEASE, states(**{"#18971": "bug"}), FIXED)
    assert line.startswith(
        "NOT AS DECLARED: #18971 on 1.4.1 without patches is 'bug'; releases.toml says 'fixed'."
    )


def test_a_finding_that_a_release_does_not_show_is_a_dash() -> None:
    earlier = {row: state for row, state in states().items() if row not in CORRECTED}
    found = {"1.2.0": (earlier, FIXED), "1.4.1": (states(), FIXED)}
    shown = {line.split()[0]: line.split()[1:] for line in list(table(found))[1:]}
    assert list(shown) == list(TITLES)
    assert shown["#19152"] == ["fails", "->", "fixed"] * 2
    assert shown["folded-scales"] == ["-", "bug", "->", "fixed"]

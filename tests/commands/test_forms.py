"""Commands with several forms refuse an option that the form at hand does not take, by one line that names both."""

from __future__ import annotations

import argparse
from importlib import import_module

import pytest

from executorch_goldens.cli import COMMANDS, ERROR, MODULES, main
from executorch_goldens.settings.arguments import Forms
from tests import DATA, REPOSITORY

TOSA = str(DATA / "decode" / "1.5.1" / "tosa-int-0.tosa")


@pytest.mark.parametrize(
    ("words", "option", "form"),
    [
        # Also with the value that it has without.
        (["diff", TOSA, TOSA, "--cell", "*"], "--cell", "two files"),
        (["diff", str(REPOSITORY), str(REPOSITORY), "--goldens", "goldens"], "--goldens", "two folders"),
        (["diff", "1.3.1", "1.4.1", "--limit=3"], "--limit", "two releases"),
        (["merge", "--markdown", "--into", "DIR", "build"], "--into", "--markdown"),
        (["merge", "--base", "DIR", "build"], "--base", "joining"),
        (["merge", "--annotations", "--into", "there", "build"], "--into", "--annotations"),
        (["show", TOSA, "--output", "x.npy"], "--output", "a file"),
        (["show", "tosa-fp/linear", "--schemas", "there"], "--schemas", "a cell"),
        # As argparse takes it, too: shortened.
        (["show", TOSA, "--rel", "1.4.1"], "--release", "a file"),
        (["review", "--known"], "--known", "the list"),
        (["review", "--accept", "1f0c9a3e", "--reason", "why"], "--reason", "--accept"),
        (
            ["review", "--reject", "1f0c9a3e", "--reason", "why", "--fewer-variations"],
            "--fewer-variations",
            "--reject",
        ),
    ],
)
def test_an_option_of_a_different_form_is_refused(
    words: list[str], option: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == ERROR
    said = capsys.readouterr()
    assert not said.out
    assert said.err.startswith(f"goldens: {option} goes with ")
    assert said.err.endswith(f"and not with {form}\n")


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command."""
    subparsers = argparse.ArgumentParser().add_subparsers()
    import_module(MODULES[name]).add_to(subparsers)
    return subparsers.choices[name]


def forms() -> dict[str, Forms]:
    """Return those of the commands that have several, by command."""
    found = {name: parser_of(name).get_default("forms") for name in COMMANDS}
    return {name: each for name, each in found.items() if each is not None}


def test_forms_name_options_that_there_are() -> None:
    assert {"diff", "merge", "review", "show"} == set(forms())
    for name, each in forms().items():
        there = {option for action in parser_of(name)._actions for option in action.option_strings}
        assert {option for options in each.options.values() for option in options} <= there, name

"""The tables of this distribution's plugins: what they name is there, and their forms refuse options of others."""

from __future__ import annotations

import argparse
import tomllib
from importlib import import_module
from importlib.util import find_spec

import pytest

from executorch_goldens import extensions, plugins
from executorch_goldens.cli import ERROR, MODULES, main
from executorch_goldens.extensions import ExtensionError
from tests import DATA, REPOSITORY

TOSA = str(DATA / "decode" / "1.5.1" / "tosa-int-0.tosa")


def test_the_core_has_all_of_them_and_what_they_name_is_there() -> None:
    found = plugins.load()
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert found.keys() == project["entry-points"][extensions.PLUGINS].keys()
    for module in plugins.commands(MODULES).values():
        assert callable(import_module(module).add_to)
    for plugin in found.values():
        for name in (*(each.hook for each in plugin.options), *filter(None, [plugin.hint])):
            assert callable(plugins.hook(plugin, name))
        for command in plugins.WITH_FORMS:
            plugins.forms(command)
    for module in plugins.zoos().values():
        assert find_spec(module)


def test_forms_of_commands_name_options_that_there_are() -> None:
    found = set()
    for name in plugins.commands(MODULES):
        subparsers = argparse.ArgumentParser().add_subparsers()
        plugins.command(name).add_to(subparsers)
        parser = subparsers.choices[name]
        there = {option for action in parser._actions for option in action.option_strings}
        if (forms := parser.get_default("forms")) is not None:
            found.add(name)
            assert {option for options in forms.options.values() for option in options} <= there, name
    assert {"compile", "merge"} <= found


def test_a_shortcut_of_two_plugins_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    two = {name: plugins.Plugin(name=name, shortcuts={"one": ""}) for name in ("fast", "field")}
    monkeypatch.setattr(plugins, "load", lambda: two)
    with pytest.raises(ExtensionError, match=r"'field' .* adds the shortcut 'one', which there is"):
        plugins.shortcuts()


@pytest.mark.parametrize(
    ("words", "option", "form"),
    [
        (["diff", TOSA, TOSA, "--rebuild"], "--rebuild", "two files"),
        (["diff", TOSA, "tosa-fp+cf/linear", "--cell", "*"], "--cell", "FILE.pte TARGET/CASE"),
        (["show", TOSA, "--no-browser"], "--no-browser", "a file"),
        (["show", TOSA, "--port", "8080"], "--port", "a file"),
        (["show", "tosa-fp/linear", "--explore", "--schemas", "."], "--schemas", "--explore"),
        (["compile", "--exported", "--release", "1.4.1", "--jobs", "2"], "--jobs", "--exported"),
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

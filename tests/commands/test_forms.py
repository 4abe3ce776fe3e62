"""Commands with several forms refuse an option that the form at hand does not take, by one line that names both."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from importlib import import_module

import pytest

from executorch_goldens import plugins
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
    assert {"diff", "review", "show"} == set(forms())
    for name, each in forms().items():
        there = {option for action in parser_of(name)._actions for option in action.option_strings}
        assert {option for options in each.options.values() for option in options} <= there, name


# Options that texts name

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
#: A command that a message prints: its name, and its options with their values.
PRINTED = re.compile(
    r"\bgoldens (\w+)((?: +(?:--?[\w-]+[=\w|{}….]*|[A-Z{\"][\w/|{}.…:=\"-]*|[a-z-]+/[\w*-]+))+)"
)
#: Options of pytest's that the help of ``run`` names.
OF_PYTEST = {"--junit-xml"}


def parsers() -> dict[str, list[argparse.ArgumentParser]]:
    """Return the parser of each command, those of plugins too, with its subparsers."""
    subparsers = argparse.ArgumentParser().add_subparsers()
    for name in MODULES:
        import_module(MODULES[name]).add_to(subparsers)
    for name in plugins.commands(MODULES):
        plugins.command(name).add_to(subparsers)
    return {name: list(with_inner(each)) for name, each in subparsers.choices.items()}


def with_inner(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        for inner in action.choices.values() if isinstance(action, argparse._SubParsersAction) else ():
            yield from with_inner(inner)


def options_of(each: list[argparse.ArgumentParser]) -> set[str]:
    return {option for parser in each for action in parser._actions for option in action.option_strings}


def test_every_option_that_a_help_names_is_one_of_its_command() -> None:
    known = parsers()
    assert {"run", "show", "review", "freeze", "repro"} <= known.keys()
    for name, of_command in known.items():
        for parser in of_command:
            texts = [parser.description, parser.epilog, *(action.help for action in parser._actions)]
            for line in "\n".join(text for text in texts if text).splitlines():
                # A help may name a different command before its option.
                other = re.search(rf"\b({'|'.join(known)})(?= .*?--)", line)
                there = options_of(of_command) | (options_of(known[other[1]]) if other else set())
                assert {*OPTION.findall(line)} <= there | (OF_PYTEST if name == "run" else set()), line


def test_every_option_of_a_command_that_a_message_prints_is_one_of_it() -> None:
    known, seen = parsers(), 0
    for folder in ("executorch_goldens", "executorch_goldens_plugins"):
        for file in (REPOSITORY / "harness" / folder).rglob("*.py"):
            source = file.read_text(encoding="utf-8")
            for text in texts_of(ast.parse(source)) if "goldens " in source and "--" in source else ():
                for command, words in PRINTED.findall(text):
                    if command in known:
                        named = {*OPTION.findall(words)}
                        assert named <= options_of(known[command]), f"{file.name}: {text}"
                        seen += len(named)
    # Of 46; a pattern that found none would pass.
    assert seen > 40


def texts_of(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values)

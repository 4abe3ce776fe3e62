"""What plugins of installed distributions add, and broken ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens import extensions
from executorch_goldens.cli import COMMANDS, ERROR, SAME
from executorch_goldens.settings.exports import ROOT
from executorch_goldens.sweep.worker import with_harness
from executorch_goldens.toolchains import handing
from tests import DATA, GOLDENS
from tests.support.commands import ended
from tests.support.extending import distribution, path_with, python
from tests.support.runner import Runner
from tests.support.screens import screen

GOLDENS_MAIN = "import sys; from executorch_goldens.cli import main; sys.exit(main({!r}))"
#: Plugins with something wrong.
BROKEN = (
    "import no_such_module",
    "THING = 7",
    "THING = Plugin(name='other')",
    "THING = Plugin(name='broken', commands={'run': Command('', 'broken')})",
    "THING = Plugin(name='broken', options=(Option('review', '--it', {}, ''),))",
    "THING = Plugin(name='broken', forms=(Form('review', 'it', '', ''),))",
)


def goldens(*words: object, places: tuple[Path, ...]) -> subprocess.CompletedProcess[str]:
    """Call the command in a process that finds distributions in `places`, too."""
    return python(GOLDENS_MAIN.format([*map(str, words)]), *places)


def test_the_help_has_all_commands_and_then_the_options_of_plugins(installed: Path) -> None:
    shown = goldens("--help", places=(installed,))
    assert shown.returncode == SAME, shown.stderr
    commands, _, added = shown.stdout.partition("\noptions of plugins:\n")
    assert all(f"\n    {name} " in commands for name in COMMANDS)
    assert "\n    count  " in commands
    assert (
        "  run --names               leave the names of the variations beside the results"
        in added.splitlines()
    )


def test_a_command_of_a_plugin_is_one_of_goldens(installed: Path) -> None:
    folder = GOLDENS / "1.4.1" / "built"
    counted = goldens("count", folder, places=(installed,))
    assert (counted.returncode, counted.stdout, counted.stderr) == (SAME, f"{len([*folder.iterdir()])}\n", "")
    unknown = goldens("count", folder, places=())
    assert unknown.returncode == ERROR
    assert "invalid choice: 'count'" in unknown.stderr


@pytest.mark.parametrize("module", BROKEN)
def test_a_broken_plugin_is_one_error_with_its_distribution_and_the_way_out(
    tmp_path: Path, module: str, snapshot: SnapshotAssertion
) -> None:
    head = "from executorch_goldens.plugins import Command, Form, Option, Plugin\n"
    place = distribution(tmp_path, "plugins", "broken", "broken:THING", head + module)
    shown = goldens("--help", places=(place,))
    assert shown.returncode == ERROR
    (line,) = shown.stderr.splitlines()
    assert screen(line, {tmp_path: "FOLDER"}) == snapshot


def test_an_option_that_the_core_has_is_refused(tmp_path: Path) -> None:
    module = """
        from executorch_goldens.plugins import Option, Plugin
        THING = Plugin(name="broken", options=(Option("run", "--cell", {"help": "mine"}, "broken:THING"),))
    """
    place = distribution(tmp_path, "plugins", "broken", "broken:THING", module)
    shown = goldens("run", "--plan", places=(place,))
    assert shown.returncode == ERROR
    (line,) = shown.stderr.splitlines()
    assert "adds an option that run cannot take: argument --cell: conflicting option string" in line


def test_a_form_of_run_takes_its_place_and_gets_the_words_of_pytest(tmp_path: Path) -> None:
    module = """
        from executorch_goldens.plugins import Form, Plugin
        THING = Plugin(name="broken", forms=(Form("run", "--it", "do it", "broken"),))
        def add_to(parser): parser.add_argument("--it", action="store_true")
        def takes(arguments): return arguments.it
        def run(arguments): print(arguments.forwarded); return 3
    """
    place = distribution(tmp_path, "plugins", "broken", "broken:THING", module)
    ran = goldens("run", "-t", sys.executable, "--it", "-k", "x", places=(place,))
    words = [f"--toolchain={sys.executable}", "--it", "-k", "x"]
    assert (ran.returncode, ran.stdout) == (3, f"{words}\n"), ran.stderr


def test_a_python_without_the_plugin_finds_it_where_a_command_goes_on(installed: Path) -> None:
    handed = python("from executorch_goldens import extensions; print(extensions.handed_on())", installed)
    variables = eval(handed.stdout)
    names = {name: Path(folder) for name, _, folder in json.loads(variables[extensions.HANDED_ON])}
    assert names["example"] == installed
    # Nothing but the interpreter's own packages is on the path.
    environment = {**os.environ, **variables, "PYTHONPATH": ""}
    folder = str(DATA / "no-such-folder")
    command = [*with_harness(Path(sys.executable), handing.MAIN, ROOT), "count", folder]
    counted = ended(command, env=environment)
    assert (counted.returncode, counted.stdout, counted.stderr) == (SAME, "0\n", "")


@pytest.mark.slow
def test_an_option_of_a_plugin_leaves_something_beside_the_results_of_a_run(
    installed: Path, runner: Runner
) -> None:
    runner.environment["PYTHONPATH"] = path_with(installed)
    words = ("--models", "models", "--cell", "xnnpack-fp32/linear", "--variations", "0,4")
    runner(*words, "--names")
    left = runner.sweeps / "xnnpack-fp32" / "linear" / "plugins" / "names.txt"
    assert left.read_text() == "seed0-heap0 seed4-heap1"
    runner(*words)
    assert not left.exists()

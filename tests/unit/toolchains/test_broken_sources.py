"""Sources that cannot be imported: the error names their file and line, in the checkout that they come from."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from executorch_goldens import patches, plugins
from executorch_goldens.artifact import Cell
from executorch_goldens.errors import UsageError, placed
from executorch_goldens.settings import releases
from executorch_goldens.settings.exports import default_interpreter, in_checkout
from executorch_goldens.sweep.sweep import Sweep, SweepError
from executorch_goldens.toolchains.installed import Installed
from executorch_goldens.toolchains.toolchain import Fit, Toolchain
from executorch_goldens.zoo.variations import variations

#: Sources that cannot be imported, the line to look at, and the exception.
BROKEN = {
    "def f(:": (1, "SyntaxError: invalid syntax"),
    "x = 1\n  y = 2": (2, "IndentationError: unexpected indent"),
    "x = 1\ny = undefined": (2, "NameError: name 'undefined' is not defined"),
    "\nfrom json import nothing": (2, "ImportError: cannot import name 'nothing' from 'json' "),
    "\n\nimport no_such_module": (3, "ModuleNotFoundError: No module named 'no_such_module'"),
    "raise SystemExit(3)": (1, "SystemExit: 3"),
    "def f():\n    return {}['a']\n\nx = f()": (2, "KeyError: 'a'"),
    "import json\njson.loads('')": (2, "JSONDecodeError: "),
    "from broken_here import x": (1, "ImportError: cannot import name 'x' from partially initialized module"),
    "x = 'caf\udce9'": (1, "SyntaxError: (unicode error) 'utf-8' codec can't decode byte 0xe9"),
}


def raised(function: Callable[[], object]) -> BaseException:
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("it raises nothing")


@pytest.mark.parametrize("text", BROKEN)
def test_the_place_is_the_line_of_the_module_that_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    file = tmp_path / "broken_here.py"
    file.write_text(text, errors="surrogateescape")
    monkeypatch.syspath_prepend(tmp_path)
    line, words = BROKEN[text]
    found = placed(raised(lambda: importlib.import_module("broken_here")))
    sys.modules.pop("broken_here", None)
    assert found.startswith(f"{file}, line {line}: {words}")


def test_an_error_of_the_harness_names_its_own_place() -> None:
    def refuse() -> None:
        raise UsageError("goldens.toml, line 3: no number")

    assert placed(raised(refuse)) == "UsageError: goldens.toml, line 3: no number"
    assert placed(ValueError("never raised")) == "ValueError: never raised"


@pytest.mark.parametrize("layout", ["", "executorch"])
def test_a_file_of_an_environment_is_named_as_the_checkout_has_it(tmp_path: Path, layout: str) -> None:
    python, own = tmp_path / "an env" / "bin" / "python", tmp_path / "checkout" / layout / "exir" / "a.py"
    own.parent.mkdir(parents=True)
    own.touch()
    package = tmp_path / "an env" / "lib" / "python3.11" / "site-packages" / "executorch"
    text = f"{package}/exir/a.py, line 3: NameError: x ({package}/exir/b.py)"
    named = in_checkout(text, python, tmp_path / "checkout")
    assert named == f"{own}, line 3: NameError: x ({package}/exir/b.py)"
    assert in_checkout(text, python, None) == text


def laid_over(folder: Path, module: str, line: str) -> Toolchain:
    """Return a toolchain whose executorch is the installed one, a line added to a module in a checkout."""
    site = Installed.probe(default_interpreter()).site_packages
    made = folder / "env" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    made.mkdir(parents=True)
    (made / "rest.pth").write_text(str(site))
    (folder / "env" / "pyvenv.cfg").write_text(f"home = {Path(sys._base_executable).parent}\n")
    (folder / "env" / "bin").mkdir()
    (folder / "env" / "bin" / "python").symlink_to(sys._base_executable)
    own = made
    for part in module.split("."):
        # All but what leads to the module is a link to what is installed.
        for each in (site / own.relative_to(made)).iterdir() if own != made else ():
            if not (own / each.name).exists():
                (own / each.name).symlink_to(each)
        own = own / part
        own.unlink(missing_ok=True)
        own.mkdir()
    own.rmdir()
    file = Path(*module.split(".")).with_suffix(".py")
    text = (site / file).read_text() + line
    for place in (made / file, folder / "checkout" / file):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.write_text(text)
    python = folder / "env" / "bin" / "python"
    release = releases.load().releases[Installed.probe(default_interpreter()).versions["executorch"]]
    return Toolchain("edited", python, made, release, is_declared=False, checkout=folder / "checkout")


@pytest.mark.slow
def test_sources_that_the_guard_cannot_import_are_named_with_their_line(tmp_path: Path) -> None:
    release = Installed.probe(default_interpreter()).versions["executorch"]
    name, module = next(
        (name, function.partition(":")[0])
        for name, each in patches.shortcuts().items()
        for function in each.fits.get(release, ())
        if function.startswith("executorch.exir.")
    )
    toolchain = laid_over(tmp_path, module, "\ndef broken(:\n")
    with pytest.raises(UsageError) as error:
        Fit.verify(toolchain, (), {name: plugins.shortcuts()[name]})
    file = tmp_path / "checkout" / Path(*module.split(".")).with_suffix(".py")
    lines = len(file.read_text().splitlines())
    assert (
        str(error.value) == f"'edited' cannot be imported: {file}, line {lines}: SyntaxError: invalid syntax"
    )


@pytest.mark.slow
def test_sources_that_an_export_cannot_import_are_named_with_their_line(tmp_path: Path) -> None:
    module = "executorch.backends.arm._passes.decompose_meandim_pass"
    toolchain = laid_over(tmp_path, module, "\nfrom executorch.exir.pass_base import NoSuchPass\n")
    settings = toolchain.settings(("models",), 1, patches=(), shortcuts={})
    cell = Cell("tosa-fp", "linear")
    with Sweep([cell], variations((0,)), settings) as sweep, pytest.raises(SweepError) as error:
        sweep.outcomes(cell)
    file = tmp_path / "checkout" / Path(*module.split(".")).with_suffix(".py")
    lines = len(file.read_text().splitlines())
    assert f"{file}, line {lines}: ImportError: cannot import name 'NoSuchPass'" in str(error.value)
    assert "Traceback" not in str(error.value)

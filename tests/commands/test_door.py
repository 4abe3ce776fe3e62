"""The entry point: the cost of ``--help``, and ``goldens run`` where no ExecuTorch is installed."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from executorch_goldens.cli import COMMANDS, ERROR, main
from executorch_goldens.settings import releases
from tests import REPOSITORY
from tests.support.commands import ended

#: Modules that the list of commands does not import: each takes longer than all of it.
HEAVY = {"torch", "executorch", "numpy", "pytest", "msgspec", "_pytest"}
#: Modules that the command imports until it starts a different Python.
NEEDED = ("filelock", "jinja2", "markupsafe", "msgspec", "numpy", "packaging", "typing_extensions")


def test_the_list_of_commands_imports_nothing_heavy() -> None:
    code = (
        "import sys, contextlib\n"
        "from executorch_goldens.cli import main\n"
        "with contextlib.suppress(SystemExit): main(['--help'])\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = ended([sys.executable, "-c", code])
    assert all(f"\n    {name} " in done.stdout for name in COMMANDS)
    assert not HEAVY & set(done.stderr.split())


def test_versions_name_no_kernels_where_there_is_no_runtime() -> None:
    code = "import sys; sys.modules['executorch'] = None; from executorch_goldens.cli import main; main(['--version'])"
    done = ended([sys.executable, "-c", code])
    assert "executorch-goldens " in done.stdout, done.stderr
    assert "kernels" not in done.stdout


def test_no_command_prints_the_list_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == ERROR
    assert "check the cells of a zoo against their goldens" in capsys.readouterr().err


def test_an_unknown_option_is_named_with_those_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["show", "--targets", "tosa-fp"])
    assert ended.value.code == ERROR
    said = capsys.readouterr().err
    assert "usage: goldens show " in said
    assert "goldens show: error: unrecognized arguments: --targets" in said


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has this package with its dependencies, and no ExecuTorch."""
    folder = tmp_path_factory.mktemp("bare") / "environment"
    venv.create(folder, with_pip=False, symlinks=True)
    packages = Path(sysconfig.get_path("purelib"))
    there = folder / packages.relative_to(sysconfig.get_path("data"))
    for name in NEEDED:
        for found in (packages / name, packages / f"{name}.py", packages / f"{name}.libs"):
            if found.exists():
                (there / found.name).symlink_to(found)
    (there / "executorch_goldens").symlink_to(REPOSITORY / "harness" / "executorch_goldens")
    return folder / "bin" / "python"


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A repository with a zoo of one case."""
    (tmp_path / "pyproject.toml").write_text('[tool.goldens]\nmodels = ["their_zoo"]\n')
    (tmp_path / "their_zoo.py").write_text(
        "from executorch_goldens import case\n\n"
        "@case(guards='nothing')\ndef theirs(data):\n    raise NotImplementedError\n"
    )
    return tmp_path


def run(python: Path, folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [python, "-m", "executorch_goldens", "run", *words]
    return ended(command, folder, PYTHONPATH="", PYTHONSAFEPATH="1", **variables)


@pytest.mark.parametrize("words", [("-t", "1.1.0"), ()], ids=["named", "newest"])
def test_without_uv_a_toolchain_that_is_not_made_is_one_clear_error(
    bare: Path, theirs: Path, words: tuple[str, ...]
) -> None:
    done = run(bare, theirs, *words, PATH="/nowhere", XDG_CACHE_HOME=str(theirs / "cache"))
    assert done.returncode == ERROR, done.stdout + done.stderr
    assert "pip install uv" in done.stderr
    *_, named = words or releases.load().releases
    assert list((theirs / "cache").rglob(f"{named}-*.lock"))
    assert not [path for path in (theirs / "cache").rglob("*") if path.suffix != ".lock" and path.is_file()]


@pytest.mark.slow
def test_a_command_goes_on_in_the_python_of_its_toolchain_which_finds_a_zoo_that_is_installed_from_a_folder(
    bare: Path, theirs: Path, tmp_path: Path
) -> None:
    (theirs / "pyproject.toml").write_text('[tool.goldens]\nmodels = ["elsewhere.zoo"]\n')
    package = tmp_path / "somewhere" / "elsewhere"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (theirs / "their_zoo.py").rename(package / "zoo.py")
    (packages,) = bare.parent.parent.glob("lib/python*/site-packages")
    (packages / "elsewhere.pth").write_text(str(package.parent))
    words = ("-t", sys.executable, "--collect-only", "-q", "--cell", "tosa-fp/*")
    try:
        done = run(bare, theirs, *words)
    finally:
        (packages / "elsewhere.pth").unlink()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tosa-fp/theirs" in done.stdout


def test_digests_of_patches_without_an_executorch_are_one_clear_error(bare: Path) -> None:
    done = ended([bare, "-m", "executorch_goldens.patches"])
    assert done.returncode == 1
    assert done.stdout == ""
    assert "has no ExecuTorch: run this with the Python of an environment" in done.stderr

"""Names of toolchains: the meaning of each form, and one clear error for an invalid one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.toolchains.naming import Name, Sources, ToolchainError
from executorch_goldens.toolchains.toolchain import chosen
from tests.support.screens import screen


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a checkout without an environment, and one with."""
    (tmp_path / "checkout" / "exir").mkdir(parents=True)
    inside = tmp_path / "with" / ".venv" / "bin"
    inside.mkdir(parents=True)
    (inside / "python").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_release_of_the_matrix() -> None:
    assert Name.parse(" 1.5.1 ") == Name("1.5.1", version="1.5.1")


def test_another_version_of_a_distribution_and_of_executorch() -> None:
    name = Name.parse("1.5.1 + torch==2.15.0+cpu + torchao>=0.18")
    assert (name.version, name.requirements) == ("1.5.1", ("torch==2.15.0+cpu", "torchao>=0.18"))
    assert Name.parse("executorch==1.6.0").version == "1.6.0"


def test_the_python_of_an_environment_is_kept_as_the_link_that_it_is(folder: Path) -> None:
    python = folder / "with" / ".venv" / "bin" / "python"
    assert {Name.parse(word).python for word in ("with", "with/.venv", str(python))} == {python}


def test_sources_of_a_checkout_and_of_one_of_its_revisions(folder: Path) -> None:
    checkout = folder / "checkout"
    assert Name.parse("1.5.1 + checkout").sources == Sources(checkout)
    assert Name.parse("1.5.1 + checkout@main~3").sources == Sources(checkout, "main~3")
    name = Name.parse("1.5.1 + torch==2.15.0 + checkout")
    assert (name.requirements, name.sources) == (("torch==2.15.0",), Sources(checkout))


@pytest.mark.parametrize(
    "word",
    [
        "",
        "newest",
        "1.5",
        "executorch==newest",
        "no/such/python",
        "checkout",
        "1.5.1 + nowhere",
        "1.5.1 + checkout@",
        "1.5.1 + checkout + with",
        "with + torch==2.15.0",
    ],
)
def test_what_is_none_is_one_error_with_a_way_out(
    folder: Path, word: str, snapshot: SnapshotAssertion
) -> None:
    with pytest.raises(ToolchainError) as raised:
        Name.parse(word)
    assert screen(str(raised.value), {folder: "FOLDER"}) == snapshot


def test_a_toolchain_of_the_settings_that_is_none_is_named_with_its_key(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "pyproject.toml").write_text('[tool.goldens]\ntoolchains = ["9.9.9"]\n')
    # As in a Python without ExecuTorch, where the settings choose.
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ToolchainError, match=r"^\[tool.goldens\] toolchains: unknown release '9.9.9'"):
        chosen(None)

"""Distributions that extend the harness: the example, and broken ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests import DATA
from tests.support.commands import ended

EXAMPLE = DATA / "example_extension"


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the example extension in a directory of its own, without a network, and return the directory."""
    folder = tmp_path_factory.mktemp("extension")
    # A build leaves its traces beside what it builds.
    source = shutil.copytree(EXAMPLE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    place = folder / "site"
    uv = shutil.which("uv")
    installer = [uv, "pip", "install", "-q", "--python"] if uv else []
    installer += [sys.executable] if uv else [sys.executable, "-m", "pip", "install"]
    options = ["--no-deps", "--no-build-isolation", "--target", str(place)]
    made = ended([*installer, *options, str(source)])
    assert made.returncode == 0, made.stderr
    return place


def path_with(*places: Path) -> str:
    return os.pathsep.join([*map(str, places), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)


def python(code: str, *places: Path) -> subprocess.CompletedProcess[str]:
    """Run `code` in a process that finds distributions in `places`, too."""
    return ended([sys.executable, "-c", code], PYTHONPATH=path_with(*places))


def distribution(folder: Path, group: str, name: str, value: str, module: str) -> Path:
    """Write an installed distribution: a module, and metadata with one entry point."""
    place = folder / f"broken-{len(list(folder.iterdir()))}"
    info = place / "broken-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text(f"[executorch_goldens.{group}]\n{name} = {value}\n")
    (place / "broken.py").write_text(textwrap.dedent(module))
    return place

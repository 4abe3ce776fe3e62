"""Settings of tools: each path that one names is there."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import REPOSITORY

HARNESS = REPOSITORY / "harness"
PACKAGES = (HARNESS / "executorch_goldens", HARNESS / "executorch_goldens_plugins")


def strings(table: object) -> Iterator[str]:
    """Yield the keys and the values of a table, and of those in it."""
    if isinstance(table, dict):
        yield from table
    for each in table.values() if isinstance(table, dict) else table if isinstance(table, list) else ():
        yield from (each,) if isinstance(each, str) else strings(each)


def alternatives(pattern: str) -> list[str]:
    """Return what ``{a,b}``, or ``(a|b)`` of a regular expression, may be."""
    if not (found := re.search(r"[{(](.*?)[})]", pattern)):
        return [pattern]
    parts = re.split(r"[,|]", found[1])
    return [each for part in parts for each in alternatives(pattern.replace(found[0], part, 1))]


@pytest.mark.parametrize("folders", [(*PACKAGES, REPOSITORY), (HARNESS / "lab",)], ids=["project", "lab"])
def test_each_path_that_the_settings_of_a_tool_name_is_there(folders: tuple[Path, ...]) -> None:
    tools = tomllib.loads((folders[-1] / "pyproject.toml").read_text())["tool"]
    words = {word.strip("!:,") for text in strings(tools) for word in text.split()}
    named = {each for word in words if re.search(r"/|\.py$", word) for each in alternatives(word)}
    assert len(named) > 5
    missing = {each for each in named if not any(any(folder.glob(each)) for folder in folders)}
    assert not missing

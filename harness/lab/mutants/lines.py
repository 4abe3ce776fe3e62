"""The file of results of sessions over mutants: a line of JSON each, with a key of its settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def read(file: Path, keys: Collection[tuple[str, str]], found: Callable[..., T]) -> dict[str, T]:
    """Return the results by mutant, for those whose name and key are in `keys`.

    Parameters
    ----------
    found
        Makes one of the fields of a line.
    """
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    known = [json.loads(line) for line in lines]
    return {
        line["mutant"]: found(**{name: value for name, value in line.items() if name != "key"})
        for line in known
        if (line["mutant"], line["key"]) in keys
    }


def add(file: Path, found: Any, key: str) -> None:
    """Append a result, a dataclass with the name of its `mutant`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps({**asdict(found), "key": key}) + "\n")

"""Brings the decisions of an older root of goldens into its ``decisions.toml``.

Older roots have them in ``expected.toml``, in ``known.toml`` (also in the folder of a release), in the table
``[tool.goldens.budgets]`` of ``pyproject.toml`` and in ``rejected.json`` beside results.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomlkit

from executorch_goldens.artifact import Cell
from executorch_goldens.files import durable, untrusted
from executorch_goldens.goldens import decisions, golden
from executorch_goldens.goldens.causes import general
from executorch_goldens.goldens.decisions import BUDGET, EXPECTED, KNOWN, REJECTED, Decision, DecisionError
from executorch_goldens.settings.tables import as_declared


def convert(root: Path, sweeps: Path | None, project: Path | None) -> Iterator[str]:
    """Bring the decisions of an older root up to date, all or none, and yield what was done; nothing if none is older.

    Parameters
    ----------
    sweeps, project
        The folder of results that its rejections may be in, and the ``pyproject.toml`` of its budgets; None for none.

    Raises
    ------
    DecisionError
        For a file that cannot be used: nothing is changed.
    executorch_goldens.goldens.golden.GoldenError
        For a golden that cannot be read, and where the file cannot be written.
    """
    rejections = [path] if sweeps and (path := sweeps / "rejected.json").is_file() else []
    files = [*decisions.older(root), *rejections]
    found: list[Decision] = []
    dropped: list[str] = []
    for path in [*files, *([project] if project else [])]:
        try:
            found += _decided(path, root, dropped)
        except (OSError, ValueError, LookupError, AttributeError, TypeError) as error:
            raise DecisionError(
                f"{path}: cannot be converted ({error}): correct or delete it first"
            ) from error
    budgets = any(each.what == BUDGET for each in found)
    if not files and not budgets:
        return
    decisions.write(root, [*decisions.stated(root), *found])
    if project is not None and budgets:
        document: Any = tomlkit.parse(untrusted.text(project))
        del document["tool"]["goldens"]["budgets"]
        durable.replace(project, tomlkit.dumps(document))
    for path in files:
        path.unlink()
    kinds = Counter(each.what for each in decisions.stated(root) for _ in each.cells or ("",))
    yield f"{root / decisions.FILE}: {', '.join(f'{number} {what}' for what, number in kinds.items())}"
    yield from (f"gone: {path}" for path in files)
    if budgets:
        yield f"gone: [tool.goldens.budgets] of {project}"
    yield from (f"not taken over: {each}" for each in dropped)


def _decided(path: Path, root: Path, dropped: list[str]) -> Iterator[Decision]:
    """Yield the decisions of a file; name expectations that no golden meets among the dropped ones."""
    if path.name == "rejected.json":
        for cause, why in json.loads(untrusted.text(path))["reasons"].items():
            yield Decision(REJECTED, cause=cause, why=why)
        return
    tables = untrusted.toml(path)
    if path.name == "pyproject.toml":
        for pattern, limits in tables.get("tool", {}).get("goldens", {}).get("budgets", {}).items():
            yield as_declared({"what": BUDGET, "limits": limits, "cells": [pattern]}, Decision)
    elif path.name == "known.toml":
        for release, table in tables["releases"].items():
            yield from _known(release, table)
    else:
        for table in tables["expected"]:
            yield from _expected(root, table, dropped)


def _known(release: str, table: Mapping[str, Any]) -> Iterator[Decision]:
    for cell, text in table.get("known", {}).items():
        verdict, why = text.split(": ", 1)
        yield Decision(KNOWN, verdict, why=why, releases=(release,), cells=(cell,))
    for each in table.get("causes", ()):
        cause = general(each["reason"]) or each["verdict"]
        cells = tuple(each["cells"])
        yield Decision(KNOWN, each["verdict"], cause, None, (), each.get("why", ""), (release,), cells)


def _expected(root: Path, table: Mapping[str, Any], dropped: list[str]) -> Iterator[Decision]:
    """Yield the expectations of a table: each cell that names no cause gets that of its golden."""
    what, cause, why = EXPECTED[table["what"]], table.get("cause", ""), table.get("why", "")
    for release, name in ((release, name) for release in table["releases"] for name in table["cells"]):
        if cause or decisions.is_pattern(name):
            yield Decision(what, "", cause, None, (), why, (release,), (name,))
            continue
        cell = Cell.named(name)
        record = golden.read(golden.file_of(root / release, cell))
        made = decisions.expected(cell, release, record) if record and decisions.kind(record) else None
        if record is None or made is None or made.what != what:
            dropped.append(f"{name} on {release}: expected as {what}, which its golden is not")
        else:
            # The older command wrote the cause as a comment.
            said = "" if why in ("", made.cause) or why.startswith("outside: ") else why
            yield decisions.expected(cell, release, record, said)

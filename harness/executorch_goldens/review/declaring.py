"""Writes causes that were rejected as known defects into the file that a repository names for them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from executorch_goldens.errors import HarnessError
from executorch_goldens.files import durable
from executorch_goldens.files.toml import string
from executorch_goldens.review.groups import BARRED, Group

#: What an entry of a table begins with: its key, in quotes.
_ENTRY = re.compile(r'("(?:[^"\\]|\\.)*") *=')

#: Release to the cells that are known to be wrong on it, with verdict and reason.
Entries = Mapping[str, Mapping[str, str]]


class DeclaringError(HarnessError, ValueError):
    """Known defects that cannot be written; the message names the file and the lines to write by hand."""


def entries(groups: Sequence[Group], reasons: Mapping[str, str]) -> Entries:
    """Return what is declared of groups; raise DeclaringError for one whose artifact is right.

    Parameters
    ----------
    reasons
        By `executorch_goldens.review.groups.Group.cause`.
    """
    found: dict[str, dict[str, str]] = {}
    for group in groups:
        if group.state != BARRED:
            raise DeclaringError(
                f"{group.name} is no known defect: its cells are right, and differ from their goldens. Accept or "
                "reject it without --known"
            )
        for member in group.members:
            proposal = member.proposal
            text = f"{proposal.verdict}: {' '.join(reasons[group.cause].split())}"
            found.setdefault(proposal.release, {})[str(proposal.cell)] = text
    return found


def lines(declared: Entries) -> list[str]:
    """Return entries as a person writes them."""
    found = []
    for release, cells in declared.items():
        found += [_head(release), *(_line(cell, text) for cell, text in cells.items())]
    return found


def declare(file: Path | None, declared: Entries) -> None:
    """Write entries into the tables of their releases, in the place that their names have; raise DeclaringError.

    All else in the file stays as it is, comments too. What is written is read back before it replaces the file.
    """
    if file is None:
        raise _by_hand("[tool.goldens] names no file for them (known-defects)", declared)
    try:
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        wanted = tomllib.loads(text)
        for release, cells in declared.items():
            wanted.setdefault("releases", {}).setdefault(release, {}).setdefault("known", {}).update(cells)
            text = _with(text, release, cells)
        if tomllib.loads(text) != wanted:
            raise ValueError('its tables are of another form than [releases."VERSION".known]')
        durable.replace(file, text)
    except (OSError, ValueError, AttributeError) as error:
        raise _by_hand(f"{file} cannot be edited ({error})", declared) from error


def _by_hand(why: str, declared: Entries) -> DeclaringError:
    return DeclaringError(f"no known defect was written: {why}. Write by hand: {'; '.join(lines(declared))}")


def _with(text: str, release: str, cells: Mapping[str, str]) -> str:
    """Return the text of a file with entries in the table of a release, which it gets if it has none."""
    found = text.splitlines()
    head = _head(release)
    if head not in found:
        found += ["", head] if found else [head]
    begin = found.index(head) + 1
    end = next((at for at, line in enumerate(found[begin:], begin) if line.startswith("[")), len(found))
    table = found[begin:end]
    for cell, entry in cells.items():
        keys = [_key(line) for line in table]
        if cell in keys:
            table[keys.index(cell)] = _line(cell, entry)
            continue
        last = max((at for at, key in enumerate(keys) if key), default=-1)
        place = next((at for at, key in enumerate(keys) if key > cell), last + 1)
        table.insert(place, _line(cell, entry))
    return "".join(f"{line}\n" for line in [*found[:begin], *table, *found[end:]])


def _key(line: str) -> str:
    """Return the cell of a line; nothing for a line of another kind."""
    found = _ENTRY.match(line)
    return str(json.loads(found[1])) if found else ""


def _head(release: str) -> str:
    return f'[releases."{release}".known]'


def _line(cell: str, text: str) -> str:
    return f"{string(cell)} = {string(text)}"

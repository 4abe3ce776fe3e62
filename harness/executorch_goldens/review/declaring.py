"""Writes causes that were rejected as known defects into the file of a root of goldens."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from executorch_goldens.errors import UsageError
from executorch_goldens.files import durable
from executorch_goldens.review.groups import BARRED, Group

#: Release to the cells that are known to be wrong on it, with verdict and reason.
Entries = Mapping[str, Mapping[str, str]]


def entries(groups: Sequence[Group], reasons: Mapping[str, str]) -> Entries:
    """Return the declarations for groups; raise UsageError for one whose artifact is right.

    Parameters
    ----------
    reasons
        By `executorch_goldens.review.groups.Group.cause`.
    """
    found: dict[str, dict[str, str]] = {}
    for group in groups:
        barred = [member for member in group.members if member.state == BARRED]
        if not barred:
            raise UsageError(
                f"{group.name} is no known defect: its cells are right, and differ from their goldens. Accept or "
                "reject it without --known"
            )
        for member in barred:
            proposal = member.proposal
            text = f"{proposal.verdict}: {' '.join(reasons[group.cause].split())}"
            found.setdefault(proposal.release, {})[str(proposal.cell)] = text
    return found


def declare(file: Path, declared: Entries) -> None:
    """Write entries into the tables of their releases, in the place that their names have; raise UsageError.

    All else in the file stays as it is, comments too. What is written is read back before it replaces the file.
    """
    try:
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        wanted = tomllib.loads(text)
        for release, cells in declared.items():
            wanted.setdefault("releases", {}).setdefault(release, {}).setdefault("known", {}).update(cells)
        text = _with(text, declared)
        if tomllib.loads(text) != wanted:
            raise ValueError('its tables are of another form than [releases."VERSION".known]')
        durable.replace(file, text)
    except (OSError, ValueError, AttributeError) as error:
        raise _by_hand(f"{file} cannot be edited ({error})", declared) from error


def _by_hand(why: str, declared: Entries) -> UsageError:
    lines = "; ".join(line for line in _with("", declared).splitlines() if line)
    return UsageError(f"no known defect was written: {why}. Write by hand: {lines}")


def _with(text: str, declared: Entries) -> str:
    """Return the text of a file with entries in the tables of their releases, which it gets if it has none."""
    # Only here: what reads a review does without.
    import tomlkit

    document = tomlkit.parse(text)
    releases = document.setdefault("releases", tomlkit.table(is_super_table=True))
    for release, cells in declared.items():
        of_release = releases.setdefault(release, tomlkit.table(is_super_table=True))
        table = of_release.setdefault("known", tomlkit.table())
        for cell, entry in cells.items():
            if cell in table:
                table[cell] = entry
                continue
            after = {key: table.item(key) for key in list(table) if key > cell}
            for key in after:
                table.remove(key)
            for key, value in ((cell, entry), *after.items()):
                table.add(key, value)
    return tomlkit.dumps(document)

"""Goldens that are read again when they are needed, so that a report does not hold those of all its cells."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from executorch_goldens.causes.groups import Member
from executorch_goldens.errors import UsageError
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.inventory import Inventory
from executorch_goldens.goldens.outline import Outline
from executorch_goldens.goldens.record import Record

#: Goldens that are held whole, those that were read last: both sides of a cell.
HELD = 2


class Reread(Record):
    """A golden of which only the facts are held."""

    def __init__(self, record: Record, read: Callable[[Path], Record | None]) -> None:
        facts = {sys.intern(name): sys.intern(value) for name, value in record.facts.items()}
        self.__dict__.update(facts=facts, path=record.path, digest=record.digest, read=read)

    def _whole(self) -> Record:
        """Return all of it; raise UsageError where it is no longer what it was."""
        record: Record | None = self.__dict__["read"](self.path)
        if record is None or record.digest != self.digest:
            raise UsageError(f"{self.path} changed while the report was written: write the report again")
        return record

    @property
    def sections(self) -> Mapping[str, str]:
        return self._whole().sections

    @property
    def delegates(self) -> Mapping[str, Outline]:
        return self._whole().delegates

    @property
    def program(self) -> Outline | None:
        return self._whole().program

    @property
    def whole(self) -> str | None:
        return self._whole().whole

    @property
    def inventory(self) -> Inventory:
        return self._whole().inventory


def without_sections() -> Callable[[Member], Member]:
    """Return a function that makes the goldens of a member such that they are read again."""
    read = functools.lru_cache(HELD)(golden.read)

    def held(member: Member) -> Member:
        before, after = (
            Reread(each, read) if each is not None else None for each in (member.before, member.after)
        )
        return replace(member, before=before, after=after, proposed=None)

    return held

"""Goldens that are read again when they are needed, so that a report does not hold those of all its cells."""

from __future__ import annotations

import functools
import sys
from dataclasses import replace
from pathlib import Path

from executorch_goldens.causes.groups import Member
from executorch_goldens.errors import UsageError
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.record import Record

#: Goldens that are held whole, those that were read last: both sides of a cell.
HELD = 2


class Rereading:
    """Members whose goldens have nothing but facts, and the goldens' files."""

    def __init__(self) -> None:
        self._read = functools.lru_cache(HELD)(golden.read)
        self._digests: dict[Path, str] = {}

    def without_sections(self, member: Member) -> Member:
        """Return a member without what its page and its texts are made from."""
        before, after = map(self._facts, (member.before, member.after))
        return replace(member, before=before, after=after, proposed=None)

    def _facts(self, record: Record | None) -> Record | None:
        if record is None:
            return None
        if record.path is not None:
            self._digests[record.path] = record.digest
        facts = {sys.intern(name): sys.intern(value) for name, value in record.facts.items()}
        return Record(facts, {}, record.path)

    def whole(self, member: Member) -> Member:
        """Return it with all that its goldens have; raise UsageError where they are no longer what they were."""
        before, after = map(self._whole, (member.before, member.after))
        return replace(member, before=before, after=after)

    def _whole(self, held: Record | None) -> Record | None:
        if held is None or held.path is None:
            return held
        record = self._read(held.path)
        if record is None or record.digest != self._digests[held.path]:
            raise UsageError(f"{held.path} changed while the report was written: write the report again")
        return record

"""Texts of cells that are read again when they are needed, so that a report does not hold those of all its cells."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from executorch_goldens.errors import UsageError
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.golden import Texts
from executorch_goldens.results.proposals import Proposal
from executorch_goldens.review import groups
from executorch_goldens.review.groups import Member

T = TypeVar("T")


@dataclass
class Reader:
    """Reads the texts of cells, and holds those of the last one.

    Attributes
    ----------
    goldens
        Root of the goldens.
    """

    goldens: Path
    _last: Proposal | None = None
    _sides: tuple[Texts | None, Texts | None] = (None, None)
    _shared: dict[object, Any] = field(default_factory=dict)

    def without_texts(self, member: Member) -> Member:
        """Return a member without its texts; what asks for one of them has it read again.

        What many cells have in common is held once: settings, names of texts, lines of manifests.
        """
        settings = self._once(json.dumps(dict(member.proposal.settings)), member.proposal.settings)
        proposal = replace(member.proposal, settings=settings)
        before, after = (
            self._reread(proposal, at, texts) for at, texts in enumerate((member.before, member.after))
        )
        return replace(member, proposal=proposal, before=before, after=after, proposed=None)

    def sides(self, proposal: Proposal) -> tuple[Texts | None, Texts | None]:
        """Return the golden and the artifact of a cell; raise `executorch_goldens.results.proposals.ProposalError`."""
        if self._last is not proposal:
            # What was read last goes before more is read.
            self._last, self._sides = None, (None, None)
            self._last, self._sides = proposal, groups.sides(proposal, self.goldens)
        return self._sides

    def _reread(self, proposal: Proposal, at: int, texts: Texts | None) -> Texts | None:
        if texts is None:
            return None
        names = tuple(texts)
        lines = texts[golden.MANIFEST].splitlines(keepends=True)
        manifest = tuple(self._once(line, line) for line in lines)
        return Reread(self, proposal, at, self._once(names, names), manifest)

    def _once(self, key: object, value: T) -> T:
        """Return the first of the values that were given with a key."""
        first: T = self._shared.setdefault(key, value)
        return first


@dataclass(frozen=True, eq=False)
class Reread(Mapping[str, str]):
    """The texts of one side of a cell.

    Attributes
    ----------
    at
        The side: 0 for the golden, 1 for the artifact.
    names
        Names of the texts.
    manifest
        Lines of its manifest, which is short and asked for often.
    """

    reader: Reader
    proposal: Proposal
    at: int
    names: tuple[str, ...]
    manifest: tuple[str, ...]

    def __getitem__(self, name: str) -> str:
        """Return a text; raise UsageError where it is no longer what it was."""
        if name not in self.names:
            raise KeyError(name)
        if name == golden.MANIFEST:
            return "".join(self.manifest)
        texts = self.reader.sides(self.proposal)[self.at]
        if texts is None or tuple(texts) != self.names or texts[golden.MANIFEST] != "".join(self.manifest):
            raise UsageError(
                f"{self.proposal.name}: its golden or {self.proposal.folder} changed while the report was written: "
                "write the report again"
            )
        return texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

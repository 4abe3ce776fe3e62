"""Checks that a proposal is still current: the same commit, settings and golden."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from executorch_goldens import patches
from executorch_goldens.files import untrusted
from executorch_goldens.files.wording import some
from executorch_goldens.goldens import golden, roots
from executorch_goldens.goldens.decisions import Decisions, Missing, kind
from executorch_goldens.goldens.golden import GoldenError
from executorch_goldens.goldens.record import Record
from executorch_goldens.judging import updating
from executorch_goldens.judging.updating import Fewer
from executorch_goldens.results import provenance
from executorch_goldens.results.proposals import Proposal, ProposalError
from executorch_goldens.settings import releases
from executorch_goldens.settings.config import Config
from executorch_goldens.settings.exports import Machine

#: Characters of a commit that are shown.
SHORT = 12
#: Uncommitted files that an objection names.
NAMED = 3


@dataclass(frozen=True)
class Standing:
    """Current state of the checkout.

    Attributes
    ----------
    expecting
        Whether what is recorded is expected with that: failures, and programs that delegate nothing.
    fewer
        Whether fewer variations may agree on a golden than on the one that it replaces.
    """

    repository: Config
    goldens: Path
    fewer: bool = False
    expecting: bool = False
    _found: dict[object, Any] = field(default_factory=dict, compare=False)

    def objection(self, proposal: Proposal) -> str:
        """Return why a proposal may not be recorded now, and the way out; empty if it may."""
        return (
            self._once(("source", proposal.commit, proposal.changes), proposal, self._source)
            or self._once(("settings", json.dumps(_by_settings(proposal))), proposal, self._settings)
            or self._once(("zoo", proposal.models), proposal, self._zoo)
            or self._golden(proposal)
        )

    def undecided(self, proposal: Proposal, proposed: Record) -> Missing | Fewer | None:
        """Return the decision that the proposal needs and nobody has taken; None if there is none."""
        if self.expecting or not kind(proposed):
            return self._fewer(proposal, proposed)
        here = self._once(
            ("decided", proposal.release),
            proposal,
            lambda _: Decisions.of_root(self.goldens, proposal.release),
        )
        missing: Missing | None = here.missing(proposal.cell, proposed)
        return missing or self._fewer(proposal, proposed)

    def _fewer(self, proposal: Proposal, proposed: Record) -> Fewer | None:
        """Return that fewer variations agree on a proposal than on its golden; None where as many do, or may."""
        if self.fewer or proposal.replaces is None:
            return None
        standing = golden.read(golden.file_of(self.goldens / proposal.release, proposal.cell))
        return updating.fewer(standing, proposed) if standing is not None else None

    def refreshed(self) -> Standing:
        """Return the current state."""
        return Standing(self.repository, self.goldens, self.fewer, self.expecting)

    def _once(self, key: object, proposal: Proposal, check: Any) -> Any:
        if key not in self._found:
            self._found[key] = check(proposal)
        return self._found[key]

    def _source(self, proposal: Proposal) -> str:
        root = self.repository.root
        here = provenance.commit(root)
        if proposal.commit == here or here is None or proposal.commit is None:
            same = proposal.commit == here and provenance.changes(root, self.goldens) == proposal.changes
            what = (
                f"this commit with other uncommitted changes (now: {self._uncommitted()})"
                if proposal.commit == here
                else f"commit {_short(proposal.commit)}"
            )
        else:
            # Nothing but goldens may have been committed since: a person accepts some, commits, and goes on.
            same = provenance.has(root, proposal.commit) and (
                provenance.changes(root, self.goldens, proposal.commit) == proposal.changes
            )
            what = f"commit {_short(proposal.commit)}, and {_short(here)} is checked out"
        return "" if same else f"was made at {what}; run the cell again"

    def _uncommitted(self) -> str:
        names = provenance.uncommitted(self.repository.root, self.goldens)
        return some([untrusted.escape_controls(name) for name in names], NAMED) or "none"

    def _settings(self, proposal: Proposal) -> str:
        wanted = self._wanted(proposal)
        for name, now in wanted.items():
            if (was := proposal.settings.get(name)) != now:
                return (
                    f"was made with different settings: {name} {_shown(was)}, and now {_shown(now)}. Run the cell "
                    "again without options that change the export, or record it with --snapshot-update"
                )
        return ""

    def _wanted(self, proposal: Proposal) -> Mapping[str, Any]:
        # A toolchain may be of a release that the matrix lacks.
        release = releases.load().releases.get(proposal.release)
        machine = Machine()
        return {
            "patches": list(patches.select(self.repository.patches, release.patches))
            if release is not None
            else proposal.settings.get("patches"),
            "tolerances": dict(self.repository.tolerances),
            "environment": machine.variables(),
            "onednn": machine.onednn,
        }

    def _zoo(self, proposal: Proposal) -> str:
        try:
            roots.check(self.goldens, proposal.models, updating=True)
        except GoldenError as error:
            return str(error)
        return ""

    def _golden(self, proposal: Proposal) -> str:
        path = golden.file_of(self.goldens / proposal.release, proposal.cell)
        try:
            standing = golden.read(path)
            proposal.proposed()
        except (GoldenError, ProposalError) as error:
            return str(error)
        if (standing.digest if standing is not None else None) != proposal.replaces:
            return f"was compared with a different golden than the one in {path} now: run the cell again"
        return ""


def _by_settings(proposal: Proposal) -> list[object]:
    return [proposal.release, dict(proposal.settings)]


def _short(commit: str | None) -> str:
    return commit[:SHORT] if commit else "none"


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}={each}" for name, each in value.items()) or "none"
    return " ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)

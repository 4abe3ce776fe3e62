"""``goldens review``: list, accept and reject the proposals of past runs, cause by cause."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executorch_goldens.causes.groups import Group, Member, grouped, read_members
from executorch_goldens.causes.standing import Standing
from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.errors import CommandError
from executorch_goldens.files import durable, untrusted
from executorch_goldens.files.invocation import FEWER, require_a_person
from executorch_goldens.files.wording import count
from executorch_goldens.goldens import decisions
from executorch_goldens.goldens.decisions import Decision
from executorch_goldens.results import merging, proposals, provenance
from executorch_goldens.results import rows as results
from executorch_goldens.review import listing, recording
from executorch_goldens.review.decisions import (
    defects,
    expectations,
    nameless,
    narrowed,
    rejected,
    with_rejected,
)
from executorch_goldens.review.listing import ALTHOUGH, EXPECT
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import Forms, share

#: The forms of the command, and the options of each.
LIST, SHOW, ACCEPT, REJECT = "the list", "--show", "--accept", "--reject"
DECIDE = "--accept with --expect"
OPTIONS = {
    LIST: (FEWER,),
    SHOW: (SHOW, FEWER),
    ACCEPT: (ACCEPT, ALTHOUGH, FEWER),
    DECIDE: (ACCEPT, ALTHOUGH, FEWER, EXPECT, "--reason"),
    EXPECT: (EXPECT,),
    REJECT: (REJECT, "--reason", "--known"),
}

EXAMPLES = """\
examples:
  goldens review
  goldens review --show 1f0c9a3e
  goldens review --accept 1f0c9a3e
  goldens review --accept 1f0c9a3e --expect --reason "torch.export refuses a branch on a value"
  goldens review --expect
  goldens review --reject 1f0c9a3e --reason "a RESCALE too many: ask in the backend's tracker"
  goldens review --reject 5b2d77c1 --reason "a gather reads past its end (#22436)" --known
"""


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "review",
        description="Group the proposals of past runs by the change and by the pass that made it. Accepted "
        "groups are recorded as goldens, rejected ones kept with the reason. Without an option, list the groups. "
        "Nothing is exported.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument(SHOW, metavar="GROUP", help="print every cell of a group, and how it differs")
    asked.add_argument(ACCEPT, action="append", metavar="GROUP", help="record a group; repeatable")
    asked.add_argument(REJECT, action="append", metavar="GROUP", help="keep a reason against it; repeatable")
    parser.add_argument(
        "--reason",
        metavar="TEXT",
        help="with --reject: why; it is shown when the cause comes again. With --expect: why they are",
    )
    parser.add_argument(
        EXPECT,
        action="store_true",
        help="with --accept: also write that its failures, and programs that delegate nothing, are expected. Alone: "
        "bring these expectations up to date with the goldens that are there, and let known defects that name no cause "
        "name the one that the last runs found",
    )
    parser.add_argument(
        "--known",
        action="store_true",
        help="with --reject: write its cells, with the reason, as known defects of their releases",
    )
    parser.add_argument(
        ALTHOUGH,
        action="store_true",
        help="with --accept: record the right cells of a cause that makes others wrong",
    )
    parser.add_argument(
        FEWER,
        action="store_true",
        help="also record proposals with fewer agreeing variations than the golden",
    )
    share(parser.add_argument, "--sweeps")
    share(parser.add_argument, "--goldens")
    parser.set_defaults(run=run, forms=Forms(OPTIONS, form_of))


def form_of(arguments: argparse.Namespace) -> str:
    """Return which of `OPTIONS` it is."""
    if arguments.show is not None:
        return SHOW
    if arguments.accept is not None:
        return DECIDE if arguments.expect else ACCEPT
    return REJECT if arguments.reject is not None else EXPECT if arguments.expect else LIST


def run(arguments: argparse.Namespace) -> int:
    """List, show, accept or reject the groups."""
    repository = config.load()
    sweeps, goldens = (
        arguments.sweeps or repository.sweeps,
        (arguments.goldens or repository.goldens).resolve(),
    )
    if form_of(arguments) == EXPECT:
        require_a_person(True, "review --expect")
        print(untrusted.escape_controls("\n".join(updated(goldens, sweeps))))
        return SAME
    stated = decisions.read(goldens)
    kept = rejected(stated)
    if arguments.reject is not None and not kept:
        _reason(arguments, None)
    standing = Standing(repository, goldens, arguments.fewer_variations, arguments.expect)
    groups = grouped(read_members(proposals.find(sweeps), goldens, standing))
    unchecked = ""
    if form_of(arguments) == LIST and any(sweeps.glob(f"*/{provenance.FILE}")):
        parts = merging.find([sweeps]).values()
        unchecked = merging.unchecked([part for of_release in parts for part in of_release])
    if not groups and form_of(arguments) == LIST:
        print(untrusted.escape_controls(unchecked or nothing(sweeps, arguments.sweeps is not None)))
        return DIFFERENT if unchecked else SAME
    reviewed = Reviewed(groups, sweeps, standing, stated)
    if arguments.accept:
        chosen = [named(name, groups) for name in arguments.accept]
        if not arguments.although_corrupt_elsewhere:
            recording.require_no_doubt(chosen)
        accepted = [member for group in chosen for member in group.recordable]
        expecting = expectations(accepted, arguments.reason or "") if arguments.expect else []
        reviewed.conclude(accepted, {}, expecting)
        if arguments.expect:
            print(f"expected: {count(len(expecting), 'cell')}, in {goldens / decisions.FILE}")
    elif arguments.reject:
        chosen = [named(name, groups) for name in arguments.reject]
        causes = {group.cause: _reason(arguments, kept.get(group.cause)) for group in chosen}
        known = defects(chosen, causes) if arguments.known else []
        reviewed.conclude([], causes, known)
        if known:
            print(f"declared as known: {count(len(known), 'cell')}, in {goldens / decisions.FILE}")
    else:
        asked = [named(arguments.show, groups)] if arguments.show is not None else []
        lines = listing.whole(asked[0]) if asked else listing.listing(groups, kept)
        print(untrusted.escape_controls("\n".join([*lines, unchecked]).rstrip()))
    return DIFFERENT if unchecked else SAME


def updated(goldens: Path, sweeps: Path) -> Iterator[str]:
    """Bring decisions up to date with the goldens and with what runs found, and yield the changes."""
    found = decisions.update(goldens)
    yield (
        f"{goldens / decisions.FILE}: {count(found.written, 'expectation')} written, {len(found.gone)} deleted; "
        f"{count(found.found, 'golden')} of a failure, or of a program that delegates nothing"
    )
    yield from (f"deleted: {cell} on {release}" for cell, release in found.gone)
    stated = decisions.read(goldens)
    rows = [row for file in sorted(sweeps.glob(f"*/{results.FILE}")) for row in results.read(file)]
    known = list(narrowed(stated, rows))
    if named := nameless(stated) - nameless(known):
        decisions.write(goldens, known)
        yield f"{count(named, 'known defect')} named by what the last runs found"


def _reason(arguments: argparse.Namespace, kept: str | None) -> str:
    """Return the reason to reject a cause: the given one, else the kept one; raise CommandError."""
    if reason := (arguments.reason or kept or "").strip():
        return reason
    raise CommandError("--reject GROUP takes --reason TEXT, which is kept and shown")


def nothing(sweeps: Path, named: bool) -> str:
    """Say that there is nothing to review; raise CommandError for a folder that was named and is not there.

    Parameters
    ----------
    named
        Whether a person named the folder.
    """
    if any(sweeps.glob(f"*/{results.FILE}")):
        return f"nothing to review: no cell under {sweeps} proposes a change"
    if named and not sweeps.is_dir():
        raise CommandError(
            f"no cell proposes anything: there is no folder {sweeps}; goldens run makes one, or name another "
            "with --sweeps"
        )
    return f"nothing to review: no results under {sweeps}; goldens run makes some"


def named(name: str, groups: Sequence[Group]) -> Group:
    """Return the group of a name; raise CommandError."""
    for group in groups:
        if group.name == name:
            return group
    raise CommandError(
        f"no group is called {name!r}: goldens review shows the names; a name changes with its group's "
        "proposals or with the checkout"
    )


@dataclass(frozen=True)
class Reviewed:
    """The proposals under review, and the decisions that there are."""

    groups: Sequence[Group]
    sweeps: Path
    standing: Standing
    stated: Sequence[Decision]

    def conclude(
        self, accepted: Sequence[Member], against: Mapping[str, str], decided: Sequence[Decision]
    ) -> None:
        """Record accepted groups, keep the reasons against rejected ones, and print both.

        Parameters
        ----------
        against
            The reasons against rejected causes.
        decided
            Decisions about cells with that: where these are known defects, the causes are not kept as well.

        Raises
        ------
        executorch_goldens.errors.UsageError
            For what may not be recorded.
        executorch_goldens.goldens.golden.GoldenError
            Where something cannot be written.
        """
        goldens = self.standing.goldens
        by_name = {member.proposal.name: member for member in accepted}
        if by_name:
            recording.record(list(by_name.values()), self.sweeps, goldens, self.standing)
        lines, reasons = [], rejected(self.stated)
        for group in self.groups:
            cells = [member for member in group.members if member.proposal.name in by_name]
            if cells:
                some = f"{len(cells)} of " if len(cells) < len(group.members) else ""
                lines.append(f"recorded: {group.title}: {some}{group.extent}")
            if cells and len(cells) == len(group.recordable):
                # An accepted cause is no longer rejected.
                reasons.pop(group.cause, None)
            if reason := against.get(group.cause):
                lines.append(f"rejected: {group.head}: {reason}")
        reasons.update({} if decided else against)
        if decided or reasons != rejected(self.stated):
            decisions.write(goldens, [*with_rejected(self.stated, reasons), *decided])
        print(untrusted.escape_controls("\n".join(lines)))
        if by_name:
            file = self.sweeps / recording.FILE
            text = recording.message(self.groups, by_name, against)
            durable.replace(file, untrusted.escape_controls(text.rstrip("\n")) + "\n")
            if any(member.proposal.settings.get("shortcuts") for member in by_name.values()):
                print(
                    "exported with shortcuts: goldens run --no-shortcuts exports them with the toolchain as it is"
                )
            print(f"read the changes: git diff {goldens}")
            print(f"commit it: git add {shlex.quote(str(goldens))} && git commit -F {shlex.quote(str(file))}")

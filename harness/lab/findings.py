"""``python -m lab findings``: checks that the scripts of harness/lab/docs/findings show what findings.toml claims."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from executorch_goldens.settings.exports import cores
from executorch_goldens_plugins.repro import alone
from lab import DOCS, GOLDENS, pages, threads
from lab.pages import Part

FOLDER = DOCS / "findings"
TABLE = FOLDER / "findings.toml"
Severity = Literal["wrong result", "refused program", "lost performance", "other bytes"]
#: Of upstream's threads about a defect: there is none; they are open; a fix is merged, after the newest release here.
State = Literal["none found", "open", "merged"]


@dataclass(frozen=True)
class Finding:
    """A defect of upstream's that the zoo shows.

    Attributes
    ----------
    what
        The defect, in a line.
    backend
        Where it is: TOSA, XNNPACK, Vulkan, what all backends share (exir), or the kernels of the runtime.
    severity
        On the newest of `releases`.
    releases
        ExecuTorch versions that show it.
    upstream
        State of upstream's `threads`.
    cases
        Cells of the zoo that show it, in words.
    threads
        Issues and pull requests of pytorch/executorch about this defect.
    related
        About others that are near it.
    """

    what: str
    backend: Literal["TOSA", "XNNPACK", "Vulkan", "exir", "kernels"]
    severity: Severity
    releases: tuple[str, ...]
    upstream: State
    cases: str
    threads: tuple[int, ...] = ()
    related: tuple[int, ...] = ()

    @property
    def state(self) -> str:
        """The state upstream, with the threads."""
        threads = " ".join([self.upstream, *(f"#{number}" for number in self.threads)])
        related = ", ".join(f"#{number}" for number in self.related)
        return f"{threads}; related: {related}" if related else threads

    @property
    def rank(self) -> tuple[int, str]:
        """The sort key of the index: most severe first."""
        return get_args(Severity).index(self.severity), self.backend


#: Seconds that a script may take: many times what one takes on a busy machine.
LIMIT = 300


def load() -> dict[str, Finding]:
    """Read the table."""
    return msgspec.toml.decode(TABLE.read_bytes(), type=dict[str, Finding])


def index(findings: Mapping[str, Finding]) -> Iterator[str]:
    """Yield the lines of the index: how many there are of each kind, then each."""
    severities, states = get_args(Severity), get_args(State)
    yield f"| backend | {' | '.join(severities)} | {' | '.join(f'upstream: {state}' for state in states)} |"
    yield "|---|" + "---|" * len(severities + states)
    for backend in sorted({finding.backend for finding in findings.values()}):
        counts = Counter(
            value
            for finding in findings.values()
            if finding.backend == backend
            for value in (finding.severity, finding.upstream)
        )
        yield f"| {backend} | {' | '.join(str(counts[kind]) for kind in severities + states)} |"
    yield from ("", "| finding | backend | severity | upstream | releases that show it | cases of the zoo |")
    yield "|---|---|---|---|---|---|"
    for name, finding in sorted(findings.items(), key=lambda item: item[1].rank):
        cells = (f"[{name}]({name}.md): {finding.what}", finding.backend, finding.severity, finding.state)
        yield f"| {' | '.join((*cells, ', '.join(finding.releases), finding.cases))} |"


def parts() -> Iterator[Part]:
    """Yield the index of harness/lab/docs/findings/README.md, and the threads about false alarms."""
    yield Part("harness/lab/docs/findings/README.md", "findings", lambda: ["", *index(load()), ""])
    yield Part(
        "harness/lab/docs/findings/README.md", "threads", lambda: threads.lines(threads.load(), GOLDENS)
    )


def shown(script: Path) -> tuple[bool | None, str]:
    """Run a script by itself; return whether its defect shows, None where it said neither, and its last line."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    try:
        ended = alone.run(script.read_text(encoding="utf-8"), Path(sys.executable), LIMIT, path)
    except alone.ScriptTimeoutError as error:
        return None, str(error)
    if ended.code == 0 and ended.last.partition(": ")[0] == "not reproduced":
        return False, ended.last
    # An exception that nobody expected exits with 1 as well; one that torch logs has a prefix in each line.
    if ended.code == 1 and ended.printed and not re.search("^Traceback", ended.errors, re.MULTILINE):
        return True, ended.last
    return None, (ended.errors.strip().splitlines() or [f"exit code {ended.code}"])[-1]


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("findings", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *load()], metavar="NAME", help="default: all")
    parser.add_argument("--jobs", type=int, default=cores())
    parser.add_argument(
        "--update", action="store_true", help="write the index that the table gives; run nothing"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print a line per script; return 0 where each shows the table's state, 1 otherwise."""
    table = load()
    if options.update:
        pages.update(["findings"])
        return 0
    # Only now: it imports torch, which the index does without.
    from executorch_goldens.exporting.compat import installed_release

    release = installed_release()
    names = options.names or list(table)
    wrong = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        results = pool.map(shown, (FOLDER / f"{name}.py" for name in names))
        for name, (shows, line) in zip(names, results, strict=True):
            expected = release in table[name].releases
            state = {True: "shows", False: "does not show", None: "broken"}[shows]
            wrong += shows is not expected
            note = (
                "" if shows is expected else f"; the table says that it {'shows' if expected else 'does not'}"
            )
            print(f"{name}: {state}{note}: {line}", flush=True)
    print(f"ExecuTorch {release}: {len(names) - wrong} of {len(names)} findings as the table says")
    return 1 if wrong else 0

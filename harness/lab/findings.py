"""``python -m lab findings``: checks that the scripts of `findings/` show what findings.toml claims.

A finding with a `Report` is ready to be filed: its page is what upstream's form for a bug asks for, and nothing else.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from executorch_goldens.settings import releases
from executorch_goldens.settings.exports import cores
from executorch_goldens_plugins.repro import alone
from lab import FINDINGS, markdown, pages
from lab.pages import Part

TABLE = FINDINGS / "findings.toml"
Severity = Literal["wrong result", "refused program", "lost performance", "other bytes"]
#: Of upstream's threads about a defect: there is none; they are open; a fix is merged, after the newest release here.
State = Literal["none found", "open", "merged"]
#: What is to be done: nothing but to file it; upstream has it; its text is to be put into the form; the newest release
#: here does not show it.
Status = Literal["ready", "thread", "draft", "older"]
#: The commit of upstream's main that reports name.
MAIN = "cff6f4dd32 (2026-08-22)"
TRIED = {
    True: f"The same with the Python sources of main at {MAIN} laid over the {{}} wheel.",
    False: f"The kernel is compiled, so main was not run; its source at {MAIN} has the lines described above.",
}


@dataclass(frozen=True)
class Report:
    """What upstream's form for a bug asks for, with the script.

    Attributes
    ----------
    title
        Of the issue.
    text
        What goes wrong, and for which models.
    expected
        What the script should print.
    actual
        What it prints on the newest release, without the reference model's warnings.
    cause
        The pass or the function, with its file.
    fix
        Suggested, and whether it was tried.
    python
        Whether the defect is in Python, so that the script ran on main's sources.
    """

    title: str
    text: str
    expected: str
    actual: str
    cause: str
    fix: str
    python: bool = True


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
    stops
        ExecuTorch versions on which the script ends in an exception: they do not come as far as the defect.
    report
        Of a finding that is ready to be filed.
    """

    what: str
    backend: Literal["TOSA", "XNNPACK", "Vulkan", "exir", "kernels"]
    severity: Severity
    releases: tuple[str, ...]
    upstream: State
    cases: str
    threads: tuple[int, ...] = ()
    related: tuple[int, ...] = ()
    stops: tuple[str, ...] = ()
    report: Report | None = None

    @property
    def status(self) -> Status:
        if self.threads:
            return "thread"
        if list(releases.load().releases)[-1] not in self.releases:
            return "older"
        return "ready" if self.report else "draft"

    @property
    def state(self) -> str:
        """The status, with upstream's threads."""
        numbers = " ".join(f"#{number}" for number in self.threads)
        state = f"{self.status}: {numbers}, {self.upstream}" if numbers else self.status
        related = ", ".join(f"#{number}" for number in self.related)
        return f"{state}; related: {related}" if related else state

    @property
    def rank(self) -> tuple[int, int, str]:
        """The sort key of the index: what is ready first, then the most severe."""
        return get_args(Status).index(self.status), get_args(Severity).index(self.severity), self.backend

    def shows_on(self, release: str) -> bool | None:
        """Return whether the script shows the defect on a release; None where it stops earlier."""
        return None if release in self.stops else release in self.releases


STATES = {True: "shows", False: "does not show", None: "stops"}
#: Seconds that a script may take: many times what one takes on a busy machine.
LIMIT = 300


def load() -> dict[str, Finding]:
    """Read the table."""
    return msgspec.toml.decode(TABLE.read_bytes(), type=dict[str, Finding])


def index(findings: Mapping[str, Finding]) -> Iterator[str]:
    """Yield the lines of the index: how many there are of each kind, then each."""
    severities, statuses = get_args(Severity), get_args(Status)
    yield from markdown.head(("backend", *severities, *(f"status: {status}" for status in statuses)))
    for backend in (*sorted({finding.backend for finding in findings.values()}), "all"):
        those = [finding for finding in findings.values() if backend in (finding.backend, "all")]
        counts = Counter(value for finding in those for value in (finding.severity, finding.status))
        yield markdown.row((backend, *(str(counts[kind]) for kind in severities + statuses)))
    yield ""
    columns = ("finding", "backend", "severity", "status", "releases that show it", "cases of the zoo")
    yield from markdown.head(columns)
    for name, finding in sorted(findings.items(), key=lambda item: item[1].rank):
        cells = (f"[{name}]({name}.md): {finding.what}", finding.backend, finding.severity, finding.state)
        yield markdown.row((*cells, ", ".join(finding.releases), finding.cases))


def page(name: str, finding: Finding, report: Report) -> Iterator[str]:
    """Yield the lines of a report: a title, and upstream's form, where each end of a line is a line break."""
    text, expected, cause, fix = (
        " ".join(each.split()) for each in (report.text, report.expected, report.cause, report.fix)
    )
    newest = [*releases.load().releases.values()][-1]
    script = (FINDINGS / f"{name}.py").read_text(encoding="utf-8")
    yield from (f"# {report.title}", "", "### 🐛 Describe the bug", "", text, "")
    yield from ("```python", script.rstrip(), "```", "", f"**Expected:** {expected}", "")
    yield from (f"**Actual** (executorch {newest.version}):", "", "```", report.actual, "```", "")
    yield from (f"**Cause:** {cause}", "", f"**Possible fix:** {fix}", "")
    tried = TRIED[report.python].format(newest.version)
    yield from (f"**Seen on** {', '.join(finding.releases)}. {tried}", "")
    yield from (
        "### Versions",
        "",
        "```",
        "OS: Linux (x86_64)",
        "Python version: 3.11",
        "Is CUDA available: False",
    )
    yield from (f"[pip3] {name}=={version}" for name, version in newest.stack().items())
    yield "```"


def parts() -> Iterator[Part]:
    """Yield the index of findings/README.md, and the reports."""
    yield Part("findings/README.md", "findings", lambda: ["", *index(load()), ""])
    for name, finding in load().items():
        if finding.report:
            yield Part(f"findings/{name}.md", "", partial(page, name, finding, finding.report))


def executed(script: Path) -> alone.EndedScript:
    """Run a script by itself; raise `ScriptTimeoutError`."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return alone.run(script.read_text(encoding="utf-8"), Path(sys.executable), LIMIT, path)


def shown(script: Path) -> tuple[bool | None, str]:
    """Run a script by itself; return whether its defect shows, None where it broke, and its last line."""
    try:
        ended = executed(script)
    except alone.ScriptTimeoutError as error:
        return None, str(error)
    if ended.code == 0 and ended.printed:
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
        results = pool.map(shown, (FINDINGS / f"{name}.py" for name in names))
        for name, (shows, line) in zip(names, results, strict=True):
            expected = table[name].shows_on(release)
            wrong += shows is not expected
            note = "" if shows is expected else f"; expected: {STATES[expected]}"
            print(f"{name}: {STATES[shows]}{note}: {line}", flush=True)
    print(f"ExecuTorch {release}: {len(names) - wrong} of {len(names)} findings as the table says")
    return 1 if wrong else 0

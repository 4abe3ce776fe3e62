"""What is printed, without what differs from one run or machine to the next, for snapshots.

A test compares a whole screen with syrupy's snapshot of it: ``assert screen(out) == snapshot``. Where a word changed on
purpose, ``python -m pytest FILE --snapshot-update`` writes the snapshots again, for a review.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from executorch_goldens.goldens.findings import Finding
from executorch_goldens.goldens.labels import OF_RUN, Labels
from executorch_goldens.judging.divergence import Divergence
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.words import causes, findings
from executorch_goldens.words.verdicts import detail, reason

#: What replaces text that differs each time: seconds, digests and their beginnings, the number of a file, frames.
VARIES = (
    (re.compile(r"\b[\d,.]+ (s|core seconds)\b"), r"SECONDS \1"),
    (re.compile(r"(?<!\.)\b[0-9a-f]{8}([0-9a-f]{4,})?\b"), "DIGEST"),
    (re.compile(r"\bIs a directory: \d+"), "Is a directory"),
    (re.compile(r'(?m)^(?: {4,}.*\n)*(?: +File "[^"\n]+", line \d+, in .*\n(?: {4,}.*\n)*)+'), "  FRAMES\n"),
)

#: A number with a fraction or an exponent.
FRACTION = re.compile(r"-?\b\d[\d,]*(\.\d+)?e[-+]?\d+\b|-?\b\d[\d,]*\.\d+\b")


def screen(printed: str | Iterable[str], names: Mapping[object, str] | None = None) -> str:
    """Return a text, or lines, with the words of `names` (folders, the release) replaced, and what `VARIES`."""
    text = printed if isinstance(printed, str) else "\n".join(printed)
    # The longest first: one folder may be in another.
    for name, word in sorted((names or {}).items(), key=lambda each: -len(str(each[0]))):
        text = text.replace(str(name), word)
    for pattern, word in VARIES:
        text = pattern.sub(word, text)
    return text


def of_findings(found: Iterable[Finding]) -> str:
    """Return the lines of each finding."""
    return screen(line for each in found for line in findings.lines(each))


def of_divergence(*found: Divergence | None, labels: Labels = OF_RUN) -> str:
    """Return the line of each divergence, which has to exist."""
    return screen(causes.divergence(each, labels) for each in found if each is not None)


def of_verdict(*found: Verdict | None) -> str:
    """Return the lines of each verdict: its name and reason, and the lines under them; None is no objection."""
    lines = ([f"{each.name}: {reason(each)}", *detail(each)] if each else ["no objection"] for each in found)
    return screen("\n\n".join("\n".join(each) for each in lines))


def measured(text: str) -> str:
    """Return a text without fractions: what a machine's arithmetic gives, or what is drawn."""
    return FRACTION.sub("NUMBER", text)

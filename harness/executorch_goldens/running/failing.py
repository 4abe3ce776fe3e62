"""A failing cell as pytest and its JUnit file have it: fields, beside the message."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from _pytest._code.code import ReprFileLocation
from _pytest._io import TerminalWriter
from _pytest.junitxml import xml_key
from _pytest.outcomes import Failed

from executorch_goldens.files import untrusted
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.words.verdicts import reason


@dataclass(frozen=True)
class ShownFailure:
    """The message of a failing cell, in place of a traceback."""

    judged: Verdict
    text: str

    @property
    def reprcrash(self) -> ReprFileLocation:
        """Where it failed, and why: what pytest asks of a failure, and plugins that report it elsewhere."""
        at, why = self.judged.at, untrusted.escape_ci(reason(self.judged))
        return ReprFileLocation(*((at.file, at.line) if at is not None else ("", 0)), why)

    def toterminal(self, writer: TerminalWriter) -> None:
        writer.line(self.text)

    def __str__(self) -> str:
        return self.text


class CellFailure(Failed):
    """A cell does not pass."""

    def __init__(self, judged: Verdict, text: str) -> None:
        super().__init__(text, pytrace=False)
        self.shown = ShownFailure(judged, text)


def properties(judged: Verdict) -> dict[str, str]:
    """Return the properties of a cell in a JUnit file; none for a stable one."""
    if not judged.findings:
        return {}
    at = judged.at
    found = {
        "verdict": judged.name,
        "kind": judged.cause["kind"],
        "cause": json.dumps(judged.cause),
        "fault": judged.fault,
        "pass": judged.divergence.name if judged.divergence is not None else "",
        "file": at.file if at is not None else "",
        "line": str(at.line) if at is not None else "",
    }
    return {name: untrusted.escape_ci(each) for name, each in found.items() if each}


def name_type(item: pytest.Item, judged: Verdict) -> None:
    """Give the failure of a test in a JUnit file the kind of what was found as its type."""
    if (written := item.config.stash.get(xml_key, None)) is not None:
        for node in written.node_reporter(item.nodeid).nodes:
            if node.tag == "failure":
                node.set("type", judged.cause["kind"])

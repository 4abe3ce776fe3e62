"""The file of a golden, with its one writer and its one reader.

Facts come first, a line each, then sections under headers, in the order in which a person reviews them::

    golden: 3
    numerics: outputs against eager within 2^-7 of the largest value
    delegate 0: lowered_module_0 TOSABackend 3840 bytes sha256 35112d2bfd8d8da3
    pte: 5760 bytes sha256 bd2941a92ebbe81c
    contents: sha256 d64a5cceaa9cd61d
    == graph ==
    graph():
    ...

``contents`` is a digest over all facts and sections. Facts that the goldens of a release share are in ``release.toml``,
and in a golden only where it departs from them; ``without`` names those that it lacks. A line of a section that would
be a header has a backslash before it. A golden of many operators has a table of them before its sections, from which
it follows (`executorch_goldens.goldens.operators`).
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from executorch_goldens.artifact import PassRun
from executorch_goldens.goldens import accuracy, operators
from executorch_goldens.goldens.accuracy import Measured
from executorch_goldens.goldens.inventory import Inventory, inventory
from executorch_goldens.goldens.numerics import Numerics
from executorch_goldens.goldens.operators import OPERATORS
from executorch_goldens.goldens.outline import Outline, Outlines

#: Version of the layout and of the text forms; raise it when an old golden can no longer be compared.
FORMAT = 3
#: Hexadecimal digits of a digest.
DIGITS = 16

#: The fact with the version, which begins the file.
VERSION = "golden"
#: The fact with the digest of everything else, which ends the facts.
CONTENTS = "contents"
#: The fact that names the shared facts that a golden lacks.
WITHOUT = "without"

#: First words of facts, in the order of a file; others, the release's stack, are before them by name.
FACTS = (
    *("patches", "variations", "numerics", "unchecked", "accuracy", "error", "validated", "recipe"),
    *("delegate", "pte", "data", "layout", "digests"),
)
#: First words of the names of sections, in the order of a file; others are before the last.
SECTIONS = ("failure", "graph", "delegate", "pte", "data", "model", "", "trace")

#: Names of sections: how lowering fails; the lowered graph; the program; the parameters and buffers of the modules that
#: a build names, with a digest of each; the passes that changed the graph.
FAILURE, GRAPH, PROGRAM, MODEL, TRACE = "failure", "graph", "pte", "model", "trace"
#: Begins the names of delegates' sections.
DELEGATE = "delegate_"
#: The name under which the facts are shown beside the sections.
MANIFEST = "manifest"

#: Begins a header, and nothing else.
MARK = "== "
_HEADER = re.compile(r"(?P<name>[A-Za-z0-9_.+-]+)(?P<unended>, no end of line)? ==")
_UNENDED = ", no end of line"
_MARKED = re.compile(rf"^(\\*{MARK})", re.MULTILINE)
_ESCAPED = re.compile(rf"^\\(\\*{MARK})", re.MULTILINE)
_NUMBER = re.compile(r"\d+")


class RecordError(ValueError):
    """A text that is not the file of a golden."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(line, what)
        self.line = line
        self.what = what

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


@dataclass(frozen=True)
class Record:
    """The content of a golden: facts and sections, and what these say, each read once.

    Attributes
    ----------
    facts
        By name, in the order of the file, those of the release included.
    sections
        Text of each section by its name, in the order of the file.
    path
        The file that it was read from; None for one that was not.
    whole
        The whole text of its program; None where that is not at hand.
    outlines
        What was read of its payloads and of those of its parts.
    """

    facts: Mapping[str, str]
    sections: Mapping[str, str]
    path: Path | None = field(default=None, compare=False, repr=False)
    whole: str | None = field(default=None, compare=False, repr=False)
    outlines: Outlines = field(default_factory=Outlines, compare=False, repr=False)

    @classmethod
    def in_order(
        cls,
        facts: Iterable[tuple[str, str]],
        sections: Mapping[str, str],
        path: Path | None = None,
        whole: str | None = None,
    ) -> Self:
        """Return the record with these facts and sections, in the order of a file."""
        ordered = sorted(sections.items(), key=lambda section: _section_order(section[0]))
        return cls(dict(sorted(facts, key=_fact_order)), dict(ordered), path, whole)

    @property
    def fails(self) -> bool:
        """True if lowering fails: there is no program."""
        return FAILURE in self.sections

    @property
    def variations(self) -> list[str]:
        """Names of the variations that agreed."""
        return self.facts.get("variations", "").split()

    @functools.cached_property
    def accuracies(self) -> Mapping[str, Measured]:
        """What was measured of each output of a quantized program, and its metric, by the names of the facts."""
        named = ((name, value) for name, value in self.facts.items() if name.startswith(accuracy.FIELD))
        return {name: accuracy.read(name, value) for name, value in named}

    @property
    def numerics(self) -> Numerics | None:
        """What was checked; None where it does not say."""
        return Numerics.read(self.facts.get("numerics", ""))

    @property
    def error(self) -> float | None:
        """The part of its tolerance that its error takes; None where it does not say."""
        return accuracy.read_error(self.facts.get(accuracy.ERROR, ""))

    @property
    def delegates(self) -> Mapping[str, Outline]:
        """The payload of each delegate, by its section; raises OutlineError."""
        names = (name for name in self.sections if name.startswith(DELEGATE))
        return {name: self.outlines.read(self.sections[name]) for name in names}

    @property
    def program(self) -> Outline | None:
        """The program around the delegates; None where there is none; raises OutlineError."""
        return self.outlines.read(self.sections[PROGRAM]) if PROGRAM in self.sections else None

    @functools.cached_property
    def inventory(self) -> Inventory:
        """What it has, counted; raises `executorch_goldens.goldens.inventory.InventoryError`."""
        return inventory(self)

    @property
    def trace(self) -> tuple[PassRun, ...]:
        r"""The runs that changed the graph.

        >>> (run,) = Record({}, {"trace": "xnnpack: FuseBatchNormPass 0123456789ab\n"}).trace
        >>> run.pipeline, run.name, run.fingerprint, run.changed
        ('xnnpack', 'FuseBatchNormPass', '0123456789ab', True)
        """
        runs = []
        for line in self.sections.get(TRACE, "").splitlines():
            pipeline, _, run = line.partition(": ")
            name, _, fingerprint = run.partition(" ")
            runs.append(PassRun(pipeline, name, fingerprint, True))
        return tuple(runs)

    def beside(self, other: Record) -> Record:
        """Return it for a comparison with `other`: with the whole text of its program where both have theirs."""
        if self.whole is None or other.whole is None:
            return self
        return replace(self, sections={**self.sections, PROGRAM: self.whole})

    def texts(self) -> dict[str, str]:
        """Return the sections with the facts before them, as a person reads them."""
        facts = "".join(f"{name}: {value}\n" for name, value in self.facts.items())
        return {MANIFEST: facts, **self.sections} if facts else dict(self.sections)

    @functools.cached_property
    def digest(self) -> str:
        """The digest over all facts and sections, whatever of it a release shares."""
        made = hashlib.sha256()
        for kind in (self.facts, self.sections):
            for name, text in sorted(kind.items()):
                data = text.encode()
                made.update(f"{name} {len(data)}\n".encode() + data)
            made.update(b"\n")
        return made.hexdigest()[:DIGITS]

    def _table(self) -> dict[str, str]:
        """Return the table of operators under its name; nothing for a golden that needs none."""
        table = operators.table(self.sections, GRAPH)
        return {OPERATORS: table} if table else {}

    def text(self, shared: Mapping[str, str] | None = None) -> str:
        """Return the file."""
        shared = shared or {}
        lines = [f"{VERSION}: {FORMAT}"]
        if lacking := [name for name in shared if name not in self.facts]:
            lines.append(f"{WITHOUT}: {' '.join(lacking)}")
        lines += [f"{name}: {value}" for name, value in self.facts.items() if shared.get(name) != value]
        pieces = ["\n".join(lines), f"\n{CONTENTS}: sha256 {self.digest}\n"]
        for name, text in {**self._table(), **self.sections}.items():
            ended = not text or text.endswith("\n")
            body = _MARKED.sub(r"\\\1", text) if MARK in text else text
            pieces += [f"{MARK}{name}{'' if ended else _UNENDED} ==\n", body, "" if ended else "\n"]
        return "".join(pieces)

    @classmethod
    def parse(cls, text: str, shared: Mapping[str, str] | None = None, path: Path | None = None) -> Self:
        """Read a file that `text` wrote with the same shared facts; raise `RecordError`."""
        head, *parts = text.removesuffix("\n").split(f"\n{MARK}")
        facts, digest = _facts(head, shared or {})
        line = head.count("\n") + 2
        sections: dict[str, str] = {}
        for part in parts:
            name, body = _section(part, line)
            if name in sections:
                raise RecordError(line, f"there are two sections {name!r}")
            sections[name] = body
            line += part.count("\n") + 1
        if not text.endswith("\n"):
            raise RecordError(line - 1, "the file does not end with a whole line")
        table = {name: sections.pop(name) for name in (OPERATORS,) if name in sections}
        read = cls.in_order(facts.items(), sections, path)
        if table != read._table():
            raise RecordError(
                head.count("\n") + 2,
                "the table of operators is not the one of its sections: it was edited by hand",
            )
        if read.digest != digest:
            what = (
                "the file is damaged or was edited by hand: its content does not match its digest, or release.toml "
                "beside it is not the one that it was written with"
            )
            raise RecordError(head.count("\n") + 1, what)
        return read


def version(text: str) -> int | None:
    r"""Return the version that the file of a golden begins with; None where it begins with none.

    >>> version("golden: 3\nnumerics: none"), version("graph():")
    (3, None)
    """
    found = re.match(rf"{VERSION}: ([0-9]{{1,9}})$", text, re.MULTILINE)
    return int(found[1]) if found else None


def may_be_shared(name: str) -> bool:
    """Return whether a fact is of how goldens are made, and not of one artifact.

    >>> may_be_shared("torch"), may_be_shared("variations"), may_be_shared("delegate 0")
    (True, True, False)
    """
    kind = name.partition(" ")[0]
    return kind not in FACTS[FACTS.index("variations") + 1 :]


def _facts(head: str, shared: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Return the facts of a golden, those of the release included, and the digest."""
    own: dict[str, str] = {}
    for number, line in enumerate(head.split("\n"), 1):
        name, separator, value = line.partition(": ")
        if not separator:
            raise RecordError(number, f"{line[:60]!r} is neither a fact nor the header of a section")
        if name in own:
            raise RecordError(number, f"there are two facts {name!r}")
        own[name] = value
    own.pop(VERSION, None)
    digest = own.pop(CONTENTS, "").removeprefix("sha256 ")
    lacking = own.pop(WITHOUT, "").split()
    return {name: value for name, value in shared.items() if name not in lacking} | own, digest


def _section(part: str, line: int) -> tuple[str, str]:
    """Return the name and the text of a section; its header is at `line`."""
    title, below, body = part.partition("\n")
    header = _HEADER.fullmatch(title)
    if header is None:
        raise RecordError(line, f"{MARK + title[:60]!r} is not the header of a section")
    body = _ESCAPED.sub(r"\1", body) if f"\\{MARK}" in body else body
    return header["name"], body if header["unended"] else f"{body}\n" if below else ""


def _fact_order(fact: tuple[str, str]) -> tuple[int, str]:
    kind = fact[0].partition(" ")[0]
    return (FACTS.index(kind), "") if kind in FACTS else (-1, fact[0])


def _section_order(name: str) -> tuple[int, int, str]:
    """Return what sections are sorted by: their kind, then their number.

    >>> sorted(["trace", "delegate_10.tosa", "delegate_9.tosa", "graph"], key=_section_order)
    ['graph', 'delegate_9.tosa', 'delegate_10.tosa', 'trace']
    """
    kind = re.split(r"[_.]", name, maxsplit=1)[0]
    number = _NUMBER.search(name)
    return SECTIONS.index(kind if kind in SECTIONS else ""), int(number[0]) if number else 0, name

"""Results of drawn models, line by line, so that a stopped run can continue."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from executorch_goldens.errors import UsageError
from lab.fuzz.cause import IN_ORDER, Cause

#: Names of a model and a target.
Key = tuple[str, str]


@dataclass(frozen=True)
class Judged:
    """A drawn model on a target.

    Attributes
    ----------
    reason
        The defect; empty where nothing is wrong.
    seconds
        Core seconds of all its exports.
    """

    model: str
    target: str
    cause: Cause
    reason: str
    seconds: float

    @property
    def key(self) -> Key:
        return (self.model, self.target)

    @property
    def wrong(self) -> bool:
        """True if there is a failure to look into."""
        return self.cause.verdict not in IN_ORDER


@dataclass(frozen=True)
class Minimal:
    """The smallest model that was found to fail as a drawn one does.

    Attributes
    ----------
    model, target
        The drawn one.
    source
        Of the minimal one, as Python.
    operators
        Of the minimal one.
    tried
        How many models were exported for it.
    script
        The output of the script by itself; empty where there is no script.
    why_not
        Why there is no script; empty where there is one.
    """

    model: str
    target: str
    cause: Cause
    source: str
    operators: tuple[str, ...]
    tried: int
    script: str
    why_not: str


Row = TypeVar("Row", bound=Judged | Minimal)


class Lines(Generic[Row]):
    """A file of lines of one kind of row; the first line names the settings of all.

    Parameters
    ----------
    head
        For instance the release and what names of models mean: results of another one are not mixed with these.
    """

    def __init__(self, file: Path, kind: type[Row], head: Mapping[str, Any]) -> None:
        self.file = file
        self.kind = kind
        self.head = dict(head)

    def open(self) -> list[Row]:
        """Return the content of the file, open for appending; a line cut by a stop is removed. Raise UsageError."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            text, whole = self._text()
            if whole != text or not whole:
                self.file.write_text(whole or json.dumps(self.head) + "\n", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{self.file} cannot be used: {error}") from error
        head, *rows = self._parsed(whole) if whole else [self.head]
        if head != self.head:
            raise UsageError(
                f"{self.file} holds results of {head}, and this run has {self.head}: move that folder away, "
                "or give this run another with --results"
            )
        return [self._row(row) for row in rows]

    def there(self) -> list[Row]:
        """Return the content of a file that a run may be writing; empty if its head is not `head`."""
        head, *rows = list(self._parsed(self._text()[1])) or [{}]
        return [self._row(row) for row in rows] if self.head.items() <= head.items() else []

    def add(self, row: Row) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(row)) + "\n")

    def _text(self) -> tuple[str, str]:
        """Return the content of the file, and its complete lines; empty if there is none."""
        try:
            text = self.file.read_text(encoding="utf-8") if self.file.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{self.file} cannot be used: {error}") from error
        return text, text[: text.rfind("\n") + 1]

    def _parsed(self, text: str) -> Iterator[Any]:
        for number, line in enumerate(text.splitlines(), 1):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise UsageError(
                    f"{self.file}, line {number}, is no JSON: delete that line, and run again"
                ) from error

    def _row(self, row: Any) -> Row:
        try:
            lists = {name: tuple(value) for name, value in row.items() if isinstance(value, list)}
            return self.kind(**{**row, **lists, "cause": Cause(**row["cause"])})
        except (TypeError, KeyError) as error:
            raise UsageError(
                f"{self.file} has a line that is no result ({error}): move the file away"
            ) from error

"""Diagnoses a verdict: a failing diagnosis changes neither the verdict nor the exit code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Diagnoses:
    """Diagnostics that were run for one cell.

    Attributes
    ----------
    failed
        A line for each that failed, for the cell's message.
    """

    def __init__(self) -> None:
        self.failed: list[str] = []

    def attempt(
        self, what: str, find: Callable[[], T], otherwise: T, passing: tuple[type[Exception], ...] = ()
    ) -> T:
        """Return `find()`, or `otherwise` if it raises, which is noted.

        Parameters
        ----------
        what
            Is looked for, in words: ``the pass that diverges``.
        passing
            Exceptions that are no failure of a diagnosis: a golden that is damaged, a folder that cannot be written.
        """
        try:
            return find()
        except passing:
            raise
        except Exception as error:
            first = (str(error).strip().splitlines() or [""])[0]
            self.failed.append(f"{what} could not be found: {type(error).__name__}: {first}".rstrip(": "))
            return otherwise

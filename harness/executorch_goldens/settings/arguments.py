"""Arguments that several commands share: one table of names, values and help texts."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from executorch_goldens.errors import CommandError


def positive_int(text: str) -> int:
    """Read a whole number of at least 1; raise ArgumentTypeError."""
    # To str.isdigit, a superscript is a digit.
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def positive_float(text: str) -> float:
    """Read a number above 0, of seconds or minutes; raise ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


#: Bytes of a unit, and a number of them.
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
AMOUNT = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?)(?:iB|B)?", re.IGNORECASE | re.ASCII)
#: The system takes no limit above it (man 2 getrlimit: a signed word for what can be addressed).
MOST_BYTES = sys.maxsize


def amount(text: str) -> int:
    """Read a number of bytes; raise ValueError.

    >>> amount("10GiB"), amount("1.5 M")
    (10737418240, 1572864)
    """
    match = AMOUNT.fullmatch(text.strip())
    # Exact: a float of many digits is a different number, or none.
    bytes_named = int(Fraction(match[1]) * UNITS[match[2].upper()]) if match else 0
    if not 1 <= bytes_named <= MOST_BYTES:
        raise ValueError(f"{text!r} is not a number of bytes of at least 1, such as 500M or 10GiB")
    return bytes_named


SHARED: dict[str, dict[str, Any]] = {
    "--release": {
        "metavar": "VERSION",
        "help": "stop unless the environment holds this ExecuTorch release",
    },
    "--cell": {
        "action": "append",
        "metavar": "TARGET/CASE",
        "help": "only these cells; wildcards; repeatable",
    },
    "--models": {
        "action": "append",
        "metavar": "MODULE",
        "help": "zoo: a module that registers cases; repeatable (default: of [tool.goldens])",
    },
    "--goldens": {
        "type": Path,
        "metavar": "DIR",
        "help": "root of the goldens (default: of [tool.goldens])",
    },
    "--sweeps": {
        "type": Path,
        "metavar": "DIR",
        "help": "results of runs or of merge (default: build/sweeps)",
    },
    "--jobs": {"type": positive_int, "metavar": "N", "help": "exports at a time (default: all cores)"},
    "--export-timeout": {
        "type": positive_float,
        "metavar": "SECONDS",
        "help": "limit per export, of processor time and of idling",
    },
    "--toolchain": {
        "metavar": "NAME",
        "help": "toolchain: a release such as 1.5.1, '1.5.1 + torch==2.15.0', the Python of an environment, "
        "'1.5.1 + CHECKOUT' (default: this Python's ExecuTorch, else the first of [tool.goldens])",
    },
    "--variations": {
        "metavar": "quick|full|N|SEED,...",
        "help": "number of variations per cell, or their hash seeds, e.g. 0,3,7",
    },
}


def with_short(add: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that adds arguments to an argparse parser, ``-t`` for ``--toolchain`` with it.

    pytest keeps short options to itself.
    """

    def adding(name: str, **stated: Any) -> None:
        add(*(("-t",) if name == "--toolchain" else ()), name, **stated)

    return adding


def share(add: Callable[..., Any], name: str, **own: Any) -> None:
    """Add a shared argument by `add`, an argparse parser's ``add_argument`` or a pytest group's ``addoption``.

    Parameters
    ----------
    own
        Settings of a command on top: its default for instance.
    """
    add(name, **{**SHARED[name], **own})


@dataclass(frozen=True)
class Forms:
    """The forms of a command, and which options each of them takes.

    Attributes
    ----------
    options
        Name of a form to the options that it takes, of those that not every form does.
    chosen
        Returns the name of the form that parsed arguments are of.
    """

    options: Mapping[str, tuple[str, ...]]
    chosen: Callable[[argparse.Namespace], str]

    def check(
        self, parser: argparse.ArgumentParser, words: Sequence[str], parsed: argparse.Namespace
    ) -> None:
        """Raise CommandError for an option that the form does not take; `parser` made `parsed` of `words`."""
        form = self.chosen(parsed)
        for option in dict.fromkeys(option for options in self.options.values() for option in options):
            if option not in self.options[form] and option in _given(parser, words, parsed):
                takers = [name for name, options in self.options.items() if option in options]
                raise CommandError(f"{option} goes with {' and '.join(takers)}, and not with {form}")


def _given(
    parser: argparse.ArgumentParser, words: Sequence[str], parsed: argparse.Namespace
) -> frozenset[str]:
    """Return the options that `words` give, though it be with the value that they have without."""
    # A list: what argparse makes of a repeatable option is a copy of it.
    unsaid: list[object] = []
    said = vars(parser.parse_known_args(words, argparse.Namespace(**dict.fromkeys(vars(parsed), unsaid)))[0])
    return frozenset(f"--{name.replace('_', '-')}" for name, value in said.items() if value is not unsaid)

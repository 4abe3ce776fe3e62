"""The text of a compiled golden: one file for a cell, ``<root>/<release>/<target>/<case>.txt``.

Head, then for each delegate the digest of the TOSA payload and what the compiler made of it, a fact a line. Its last
line is a digest of all others, so that a file that was edited by hand is not taken for a change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.errors import FileError
from executorch_goldens.files import durable, untrusted
from executorch_goldens_plugins.downstream import stream, vgf
from executorch_goldens_plugins.downstream.compilers import Compiled, Died, Refused, Result
from executorch_goldens_plugins.downstream.stream import digest
from executorch_goldens_plugins.downstream.targets import CONVERTER, VELA

FORMAT = "1"
#: Below the root of the goldens; no name of a release.
FOLDER = "compiled"
CONTENTS = "contents"
#: The facts of one delegate: name to text, in the order of a golden.
Facts = Mapping[str, str]


class CompiledGoldenError(FileError):
    """A compiled golden that cannot be used."""


def _refusal(path: Path, what: str) -> CompiledGoldenError:
    return CompiledGoldenError(path, what, "Restore it from git, or delete it and record it again")


@dataclass(frozen=True)
class Golden:
    """A compiled golden.

    Attributes
    ----------
    head
        Release, compiler, its arguments, the variations that agreed.
    delegates
        The facts of each.
    """

    head: Mapping[str, str]
    delegates: tuple[Facts, ...]

    def text(self) -> str:
        """Return the file."""
        lines = [f"format: {FORMAT}", *(f"{name}: {value}" for name, value in self.head.items())]
        for facts in self.delegates:
            lines.append("")
            lines += [f"{name}: {value}" for name, value in facts.items()]
        body = "\n".join(lines) + "\n\n"
        return f"{body}{CONTENTS}: sha256 {hashlib.sha256(body.encode()).hexdigest()}\n"


def facts(compiler: str, name: str, payload: bytes, result: Compiled | Refused) -> Facts:
    """Return the facts of one delegate.

    Raises
    ------
    executorch_goldens_plugins.downstream.stream.StreamError, executorch_goldens_plugins.downstream.vgf.TablesError
        For what cannot be read of what a compiler made.
    """
    if isinstance(result, Refused):
        found = _refused(result)
    else:
        found = FACTS[compiler](result.made, result.details)
    # A fact is a line, whatever a compiler says.
    lines = {fact: " ".join(untrusted.escape_controls(text).split()) for fact, text in found}
    return {"delegate": name, "tosa": digest(payload), **lines}


#: Functions that render each compiler's result as facts.
FACTS = {VELA: stream.facts, CONVERTER: vgf.facts}


def _refused(result: Refused) -> Iterator[tuple[str, str]]:
    """Yield the exception, then each reason and the operators that it is of, in the order of the message.

    Vela's is lines: ``Conv2D:``, then `` - Invalid argument input`` and `` - Input data type not supported``.
    """
    first, *rest = result.message.strip().splitlines() or [""]
    yield "refused", f"{result.type}: {first.rstrip(':')}"
    operators: list[tuple[str, list[str]]] = []
    for line in rest:
        if line.startswith(" - ") and operators:
            operators[-1][1].append(line.removeprefix(" - ").strip())
        elif line.strip():
            operators.append((line.strip().rstrip(":"), []))
    for index, (operator, reasons) in enumerate(operators):
        yield f"refused operator {index}", ": ".join(filter(None, (operator, "; ".join(reasons))))


def delegates(
    compiler: str, named: Sequence[tuple[str, bytes]], results: Sequence[Result]
) -> tuple[Facts, ...] | Died:
    """Return the facts of all delegates of a cell; instead the first that died, or whose facts cannot be read."""
    found = []
    for (name, payload), result in zip(named, results, strict=True):
        if isinstance(result, Died):
            return result
        try:
            found.append(facts(compiler, name, payload, result))
        except (stream.StreamError, vgf.TablesError) as error:
            return Died("crashed", f"its result cannot be read: {error}")
    return tuple(found)


def path_of(root: Path, release: str, target: str, case: str) -> Path:
    """Return the file of a cell's golden below the root of the goldens."""
    return root / FOLDER / release / target / f"{case}.txt"


def read(path: Path) -> Golden | None:
    """Read a golden, None where there is none; raise `CompiledGoldenError`."""
    try:
        source = untrusted.text(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _refusal(path, f"cannot be read ({error})") from error
    body, separator, seal = source.rpartition(f"{CONTENTS}: sha256 ")
    if not separator or seal.strip() != hashlib.sha256(body.encode()).hexdigest():
        if why := untrusted.line_ends(source, path):
            raise CompiledGoldenError(path, *why)
        raise _refusal(path, "was edited by hand or damaged: its digest is not that of its lines")
    head, *parts = (_fields(part, path) for part in body.strip().split("\n\n"))
    if head.pop("format", None) != FORMAT:
        raise _refusal(path, f"is not of format {FORMAT}")
    if not all("tosa" in facts for facts in parts):
        raise _refusal(path, "has a delegate without the digest of its payload")
    return Golden(head, tuple(parts))


def _fields(part: str, path: Path) -> dict[str, str]:
    found = {}
    for line in part.splitlines():
        name, separator, value = line.partition(": ")
        if not separator:
            raise _refusal(path, f"has a line that is no fact: {line!r:.80}")
        found[name] = value
    return found


def write(path: Path, golden: Golden) -> None:
    """Write a golden, whole or not at all; a file that says the same stays as it is."""
    text = golden.text()
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    durable.replace(path, text)

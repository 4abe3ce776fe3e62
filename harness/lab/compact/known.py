"""Known defects of the cells of a zoo with compact goldens: kept beside these by cause, and accepted while they match.

``known.toml`` in the folder of a release is written by ``--update``::

    [[releases."1.5.1".causes]]
    verdict = "corrupt"
    reason = "output 0: is float32[], expected float16[]"
    why = "half-times-number"
    cells = ["tosa-fp/addcdiv", "tosa-fp/addcmul"]

``reason`` is that of the first cell, and ``why`` what a person said, if one has. A cell is accepted that is wrong with
this verdict for the same cause (`executorch_goldens.goldens.causes.general`), and for no other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from executorch_goldens.files import untrusted
from executorch_goldens.goldens import merging, toml
from executorch_goldens.goldens.causes import general
from executorch_goldens.judging.known import FILE
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.settings.releases import MatrixError

#: Verdicts that no artifact follows from, or that the next run may not find, or that are a person's to decide: these
#: are not accepted.
NEVER = ("timed-out", "out-of-memory", "damaged-golden", "unexpected")
#: Signals from outside that end a process: the system that lacks memory, or a person.
FROM_OUTSIDE = "killed by SIGKILL"


@dataclass(frozen=True)
class Defect:
    """A known defect of a cell.

    Attributes
    ----------
    cause
        The required reason of the verdict, by `executorch_goldens.goldens.causes.general`; any if empty.
    why
        A person's comment; may be empty.
    """

    verdict: str
    reason: str
    cause: str = ""
    why: str = ""


class _Cause(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A known defect of some cells; see the module."""

    verdict: str
    reason: str
    cells: list[str]
    why: str = ""

    @property
    def defect(self) -> Defect:
        return Defect(self.verdict, self.reason, general(self.reason), self.why)


def read(folder: Path, release: str) -> dict[str, Defect]:
    """Return the defects that a release's folder of goldens knows, by cell; raise `MatrixError`."""
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        stated = untrusted.toml(path)["releases"].get(release, {}).get("causes", [])
        causes = msgspec.convert(stated, list[_Cause])
    except (OSError, ValueError, LookupError, AttributeError) as error:
        if conflict := merging.conflict_in(path):
            raise MatrixError(f"{path}: {conflict}. {merging.take_a_side(path)}") from error
        raise MatrixError(f'{path}: expected tables [[releases."VERSION".causes]] ({error})') from error
    return {cell: cause.defect for cause in causes for cell in cause.cells}


def settled(known: Mapping[str, Defect], judged: Verdict) -> dict[str, Defect]:
    """Return `known` with the new state of the cell: its defect, or none."""
    others = {cell: defect for cell, defect in known.items() if cell != str(judged.cell)}
    passing = judged.name in NEVER or FROM_OUTSIDE in judged.reason or judged.is_of_harness
    if judged.recordable or judged.name == "stable" or passing:
        return others
    reason = judged.reason.strip() or judged.name
    before = known.get(str(judged.cell))
    same = before is not None and before.verdict == judged.name and before.cause in ("", general(reason))
    why = before.why if same and before is not None else ""
    return {**others, str(judged.cell): Defect(judged.name, reason, general(reason), why)}


def as_known(defect: Defect | None, judged: Verdict) -> Verdict:
    """Return a verdict as known where its defect is declared, with the declared cause where it is not the one."""
    if defect is None or judged.is_of_harness:
        return judged
    if defect.verdict == judged.name and defect.cause in ("", general(judged.reason)):
        return dataclasses.replace(judged, known=True)
    otherwise = f"is known for something else, {defect.verdict}: {defect.reason}"
    return dataclasses.replace(judged, detail=(otherwise, *judged.detail)) if defect.cause else judged


def write(folder: Path, release: str, known: Mapping[str, Defect]) -> None:
    """Replace the known defects of a release's folder of goldens; raise `GoldenError`."""
    path = folder / FILE
    causes: dict[tuple[str, str, str], _Cause] = {}
    for cell, defect in sorted(known.items()):
        key = (defect.verdict, general(defect.reason), defect.why)
        new = _Cause(defect.verdict, _written(defect.reason), [], _written(defect.why))
        causes.setdefault(key, new).cells.append(cell)
    rows = [msgspec.to_builtins(causes[key]) for key in sorted(causes)]
    document = {"releases": {release: {"causes": toml.tables(rows)}}} if known else None
    toml.replace(path, document, "Make room for it, then record it again.")


def _written(text: str) -> str:
    """Return a text as TOML can hold it: half of a pair of UTF-16 is there as its escape."""
    return text.encode("utf-8", "backslashreplace").decode()

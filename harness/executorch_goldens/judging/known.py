"""Known defects: cells that upstream gets wrong and that no patch corrects, accepted while that is what is wrong."""

from __future__ import annotations

import dataclasses

from executorch_goldens.goldens.causes import general
from executorch_goldens.goldens.decisions import FILE, KNOWN, Decisions
from executorch_goldens.judging.verdict import Verdict


def cause(judged: Verdict) -> str:
    """Return what is wrong with a cell, as a decision names it, without parts that differ between runs or machines.

    >>> cause(Verdict(None, "corrupt", "output 1 (drawn) int8[4]: 2 differ", where="output 1"))
    'output … int8[…]: … differ; output 1'
    """
    return "; ".join(filter(None, (general(judged.reason) or judged.name, judged.where)))


def as_known(decided: Decisions, judged: Verdict) -> Verdict:
    """Return a verdict as known where a known defect of its cell has it, for its cause."""
    declared = decided.about(KNOWN, judged.cell)
    if not declared or judged.is_of_harness:
        return judged
    why = cause(judged)
    for defect in declared:
        if defect.verdict == judged.name and defect.names(why):
            return dataclasses.replace(judged, known=defect.reason)
    file = decided.root / FILE
    known = "; ".join(f"{defect.verdict}: {defect.cause or defect.why}" for defect in declared)
    return dataclasses.replace(
        judged, detail=(f"{file} knows something else of it, {known}", f"this is {why}", *judged.detail)
    )

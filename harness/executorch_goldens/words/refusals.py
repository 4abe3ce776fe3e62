"""Why something is not recorded, and the way out."""

from __future__ import annotations

import json
import shlex

from executorch_goldens.files.invocation import FEWER
from executorch_goldens.files.wording import count, some
from executorch_goldens.goldens.decisions import FAILURE, FILE, NO_CELL, UNMET, Missing, Misused
from executorch_goldens.judging.updating import Fewer
from executorch_goldens.judging.verdict import Doubt, Refusal

#: Cells that a doubt names.
SHOWN_CELLS = 3


def refusal(found: Refusal) -> str:
    """Return why something is not recorded."""
    if isinstance(found, Missing):
        return _missing(found)
    if isinstance(found, Fewer):
        return (
            f"its golden names {found.before} variations that agree, and this would name {found.now}: run it with "
            f"--variations full, or let goldens review accept it with {FEWER}"
        )
    return doubt(found)


def doubt(found: Doubt) -> str:
    """Return which cells a cause makes wrong, beside those that could be recorded."""
    if not found.wrong:
        return "the run ended before every cell was judged; goldens review shows the judged ones"
    names = [f"{cell} ({verdict})" for cell, verdict in found.wrong]
    return f"the same cause makes {count(len(names), 'cell')} wrong: {some(names, SHOWN_CELLS)}"


def misused(found: Misused) -> str:
    """Return which decisions are superfluous."""
    stated, names = "; ".join(map(str, found.decisions)), some(found.names, SHOWN_CELLS)
    if found.how == NO_CELL:
        why = f"no case makes what is decided about on this release: {names}"
    elif found.how == UNMET:
        why = f"no cell shows what is decided: {names}"
    else:
        why = f"{count(len(found.decisions), 'decision')} name what one cell shows: {names}"
    return f"superfluous: {found.file}: {why} ({stated})"


def _missing(found: Missing) -> str:
    decision = found.decision
    named, value = ("cause", decision.cause) if decision.what == FAILURE else ("outside", decision.outside)
    by = " (goldens review --accept GROUP --expect writes it)" if found.of_zoo else ""
    if found.recorded:
        by = f" ({shlex.join(['goldens', 'review', '--expect', f'--goldens={found.root}'])} writes it)"
    releases, cells, value = (
        json.dumps(each, ensure_ascii=False) for each in (decision.releases, decision.cells, value)
    )
    return (
        f"a {found.what} is recorded only if it is expected: in {found.root / FILE}, a table [[decision]] with what = "
        f'"{decision.what}", releases = {releases}, cells = {cells}, {named} = {value}{by}'
    )

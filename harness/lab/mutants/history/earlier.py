"""Results of one session over part of the zoo in 1.5.1, before results were kept: commit 513b0434.

The page named no cells, so these are counts. They are the zoo's results until a kept session has tried more.
"""

from __future__ import annotations

from lab.mutants.history.fix import Fix
from lab.mutants.history.measure import Result, Seen

#: Number of a pull request to how many cells met its fix taken back.
TRIED = {
    **dict.fromkeys((21415, 21542, 21590, 21620, 21897), 115),
    **dict.fromkeys(
        (21589, 21629, 21725, 21738, 21910, 22437, 22517, 21437, 21284, 21393, 21735, 22436, 22555, 22558), 56
    ),
    **dict.fromkeys((20376, 21489, 21568, 21588, 21862, 21949), 59),
}

#: Fixes that cells have seen, once for each cell; the others of `TRIED` have seen none.
SEEN = {
    21415: 2 * [Seen("changed", "PropagateViewCopyPermuteUpPass")],
    21542: 1 * [Seen("failed", "FuseBatchNormPass")],
    21437: 1 * [Seen("changed", "DuplicateDQPass")],
    21735: 1 * [Seen("changed", "DecorateFp32toInt32CastingPass")],
    21568: 1 * [Seen("corrupt", "DuplicateDQPass")],
}


def earlier(fix: Fix, kept: Result) -> Result:
    """Return the result of that session for `fix`, or else `kept`, where that is of more cells."""
    tried = TRIED.get(fix.number, 0)
    if kept.tried >= tried:
        return kept
    return Result(fix, tried, {f"not named {n}": seen for n, seen in enumerate(SEEN.get(fix.number, ()))})

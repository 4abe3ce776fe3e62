"""``python -m lab INSTRUMENT ...``: instruments that prove the harness; ``nox -s "lab(1.4.1)" -- INSTRUMENT ...``.

Nothing that a user installs imports the lab, and the wheel does not hold it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from executorch_goldens import cli

#: The modules of the instruments: each has ``add_to``, and a docstring whose first line says what it measures.
INSTRUMENTS = {
    "args": "lab.args.command",
    "audit": "lab.supply.audit",
    "carried": "lab.carried",
    "commits": "lab.mutants.commits",
    "core": "lab.core.command",
    "faults": "lab.faults.__main__",
    "fielded": "lab.fielded.command",
    "findings": "lab.findings",
    "fuzz-bytes": "lab.fuzz_bytes.__main__",
    "guest": "lab.guests.one",
    "guests": "lab.guests.command",
    "locks": "lab.supply.locks",
    "mutants": "lab.mutants.mechanical.command",
    "narrow": "lab.narrow",
    "options": "lab.options.command",
    "pages": "lab.pages",
    "portable": "lab.portable.command",
    "reach": "lab.reach.command",
    "recall": "lab.mutants.recall",
    "seconds": "lab.seconds.command",
    "stock": "lab.stock.command",
    "swaps": "lab.mutants.swaps",
}


def summary(module: str) -> str:
    """Return the first line of a module's docstring, without how the instrument is called."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    words = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""
    return words.partition("\n")[0].partition("``: ")[2] or words.partition("\n")[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the instrument that the first word names, or list them; return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = words[0] if words else ""
    if name in INSTRUMENTS:
        return cli.main(
            words,
            modules=INSTRUMENTS,
            prog="python -m lab",
            description="Instruments that prove the harness.",
        )
    instruments = sorted(INSTRUMENTS.items())
    if name not in ("", "-h", "--help"):
        known = ", ".join(instrument for instrument, _ in instruments)
        print(f"python -m lab: no instrument is called {name!r}: {known}", file=sys.stderr)
        return cli.ERROR
    for instrument, module in instruments:
        print(f"{instrument:14}{summary(module)}")
    return cli.SAME


if __name__ == "__main__":
    sys.exit(main())

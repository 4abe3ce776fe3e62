"""``python -m lab INSTRUMENT ...``: what proves the harness; ``nox -s "lab(1.4.1)" -- INSTRUMENT ...`` runs it.

Nothing that a user installs imports the lab, and the wheel does not hold it.
"""

from __future__ import annotations

import ast
import runpy
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from executorch_goldens import cli

#: Instruments that are subcommands, and the modules that bring them.
COMMANDS = {
    "branches": "lab.branches.command",
    "core": "lab.core.command",
    "coverage": "lab.coverage.command",
    "failures": "lab.failures.command",
    "fielded": "lab.fielded.command",
    "fuzz": "lab.fuzz.command",
    "guests": "lab.guests.command",
    "pages": "lab.pages",
    "portable": "lab.portable.command",
    "probe": "lab.probe.command",
    "seconds": "lab.seconds.command",
    "shortcuts": "lab.shortcuts.command",
    "stock": "lab.stock.command",
    "tolerances": "lab.tolerances.command",
    "upstream": "lab.upstream.command",
}

#: Instruments that are programs of their own.
PROGRAMS = {
    "audit": "lab.supply.audit",
    "bench": "lab.bench.__main__",
    "cluster-soak": "lab.faults.cluster_soak",
    "faults": "lab.faults.__main__",
    "findings": "lab.findings",
    "fuzz-bytes": "lab.fuzz_bytes.__main__",
    "guest": "lab.guests.one",
    "history": "lab.mutants.history.__main__",
    "locks": "lab.supply.locks",
    "mutants": "lab.mutants.__main__",
    "soak": "lab.faults.soak",
}


def summary(module: str) -> str:
    """Return the first line of a module's docstring, which says what it measures."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    words = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""
    return words.partition("\n")[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the instrument that the first word names, or list them; return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    instruments = COMMANDS | PROGRAMS
    name = words[0] if words else ""
    if name in COMMANDS:
        return cli.main(words, modules=COMMANDS, prog="python -m lab", description="What proves the harness.")
    if name in PROGRAMS:
        sys.argv[1:] = words[1:]
        runpy.run_module(PROGRAMS[name], run_name="__main__", alter_sys=True)
        return cli.SAME
    if name not in ("", "-h", "--help"):
        print(
            f"python -m lab: no instrument is called {name!r}: {', '.join(sorted(instruments))}",
            file=sys.stderr,
        )
        return cli.ERROR
    for instrument, module in sorted(instruments.items()):
        print(f"{instrument:14}{summary(module)}")
    return cli.SAME


if __name__ == "__main__":
    sys.exit(main())

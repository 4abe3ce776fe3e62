"""Reuse of stored exports in one run: those it takes, and those it adds."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from executorch_goldens.artifact import MACHINE, Artifact, Failure, Lowered, Outcome
from executorch_goldens.exporting.recording import LOOK
from executorch_goldens.settings import config
from executorch_goldens.settings.exports import Settings, absolute
from executorch_goldens.sweep.facts import Digests, Fact, UnknownDependencyError, View
from executorch_goldens.sweep.keys import Wanted, digest, request, variables_of
from executorch_goldens.sweep.store import Store, StoreError, facts_of

#: Reads an outcome from the store.
Stored = Callable[[], Outcome]


class Reuse:
    """The store as one run uses it; where it is not `needed` and cannot be used, the run goes on without it."""

    def __init__(self, store: Store, needed: bool = True) -> None:
        self.store = store
        self.needed = needed
        # How many exports were asked for, and taken from the store.
        self.wanted = self.reused = 0
        # Why stored exports did not fit, and why exports were not kept; why nothing is kept any more.
        self.missed: collections.Counter[str] = collections.Counter()
        self.unknown: collections.Counter[str] = collections.Counter()
        self.trouble = ""
        # Folders in which a changed file is exported again by itself: a watch waits for it.
        self.watched: Collection[str] = ()
        self._digests = Digests(store.root / "digests")
        self._templates: dict[Path, str] = {}

    def open(self) -> None:
        """Make the store ready; raise `executorch_goldens.sweep.store.StoreError` where the run needs it."""
        try:
            self.store.put_facts(())
        except StoreError as error:
            if self.needed:
                raise
            self.trouble = f"the cache {error.root} {error.what}; --cache off leaves this line out"

    def close(self) -> None:
        """Keep the store within its size, and the digests of files for the next run."""
        if not self.trouble:
            self.store.evict()
            try:
                self._digests.save()
            except OSError as error:
                self.trouble = str(error)

    def take(self, settings: Settings, wanted: Iterable[Wanted]) -> Iterator[Stored | None]:
        """Yield for each of `wanted` a reader from the store, or None if it has to be exported."""
        lookup = self.lookup(settings)
        for each in wanted:
            asked = digest(request(settings, each))
            # What is taken from the store is not observed.
            known = self.store.answers(asked) if settings.observer is None and not self.trouble else []
            key = lookup.answer(asked) if known else None
            if known and key is None:
                self.missed[str(lookup.differing(known[0]) or "an entry that was damaged")] += 1
            self.wanted += 1
            self.reused += key is not None
            yield None if key is None else self.stored(lookup.view, each, key)

    def stored(self, view: View, wanted: Wanted, key: str) -> Stored:
        """Return a reader of an entry."""
        return functools.partial(self._read, view, wanted, key)

    def _read(self, view: View, wanted: Wanted, key: str) -> Outcome:
        cell, variation, _ = wanted
        outcome = self.store.get(key, cell, variation.name)
        if outcome is None:
            what = f"lost its entry of {cell} [{variation.name}] during the run"
            raise StoreError(self.store.root, what, "run again")
        return _with_schemas(outcome, view.path)

    def view(self, settings: Settings) -> View:
        """Return the current values."""
        paths = settings.machine.paths or config.load().import_paths()
        interpreter = absolute(settings.interpreter)
        roots = {
            **{f"path {number}": path.absolute() for number, path in enumerate(paths)},
            "environment": interpreter.parent.parent,
            "python": interpreter.resolve().parent.parent,
            "harness": (settings.machine.root / "executorch_goldens").absolute(),
        }
        return View(roots, self._digests, variables_of(settings))

    def lookup(self, settings: Settings) -> Lookup:
        """Return a lookup of answers that hold with the current values."""
        return Lookup(self.store, self.view(settings))

    def put(self, settings: Settings, wanted: Wanted, outcome: Outcome, record: Path) -> None:
        """Store an export with its dependencies, the `record`; not what may end otherwise when it is repeated."""
        made = outcome.result.result if isinstance(outcome.result, Artifact) else None
        if self.trouble or made is None or (isinstance(made, Failure) and made.fault == MACHINE):
            return
        view = self.view(settings)
        try:
            facts, before = view.facts(record)
            lists = [self.store.put_facts(facts)]
            if before is not None:
                if before not in self._templates:
                    self._templates[before] = self.store.put_facts(view.facts(before)[0])
                lists.insert(0, self._templates[before])
            named = _with_schemas(outcome, lambda place: view.named(place) or place)
            self.store.put(digest(request(settings, wanted)), lists, named)
        except UnknownDependencyError as error:
            if str(Path(error.changed).parent) not in self.watched:
                self.unknown[str(error)] += 1
        except StoreError as error:
            # The run itself is sound.
            self.trouble = str(error)

    def lines(self) -> Iterator[str]:
        """Yield the message."""
        yield f"reused {self.reused} of {self.wanted} exports; cache: {self.store.root}"
        yield from (
            f"exported again: {count}, because {name} changed" for name, count in self.missed.most_common()
        )
        yield from self.troubles()

    def troubles(self) -> Iterator[str]:
        """Yield what went wrong with the cache."""
        yield from (f"not kept: {count}, because {reason}" for reason, count in self.unknown.most_common())
        if self.store.damaged:
            yield f"damaged entries of the cache, deleted and made again: {len(self.store.damaged)}"
        if self.trouble:
            yield f"nothing more was kept: {self.trouble}"


@dataclass(frozen=True)
class Lookup:
    """Looks for answers at one moment: a list that many of them have is compared once."""

    store: Store
    view: View
    known: dict[str, Fact | None] = field(default_factory=dict)

    def answer(self, asked: str) -> str | None:
        """Return the key of the first sound answer to a request whose facts all hold."""
        holding = (key for key in self.store.answers(asked) if self.differing(key) is None)
        return next(filter(self.store.content, holding), None)

    def differing(self, key: str) -> Fact | None:
        """Return the first fact of an entry that is no more so."""
        for name in facts_of(key):
            if name not in self.known:
                facts = self.store.facts(name)
                lost = Fact(LOOK, "a list that was deleted", "")
                self.known[name] = lost if facts is None else self.view.differing(facts)
            if self.known[name] is not None:
                return self.known[name]
        return None


def _with_schemas(outcome: Outcome, change: Callable[[str], str]) -> Outcome:
    """Return an export whose decoding looks for schemas elsewhere: in this environment, or in one of any place."""
    assert isinstance(outcome.result, Artifact)
    made = outcome.result.result
    lowered = made if isinstance(made, Lowered) else made.made
    if lowered is None:
        return outcome
    lowered = replace(lowered, schemas=tuple(map(change, lowered.schemas)))
    result = lowered if isinstance(made, Lowered) else replace(made, made=lowered)
    return replace(outcome, result=replace(outcome.result, result=result))

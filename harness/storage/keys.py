"""The key of an export: everything that can change what it makes, as a listing of named ingredients.

Two exports with one key would make one artifact, so that `harness.storage.store` keeps it by that key. An ingredient
too many costs an export that was not needed; one too few would hide a regression. So whole files count: every file of
the environment's distributions, every module of the harness that an export runs, every module that a case imports.

What is left out on purpose is what must not matter (`harness.variations`): the place of the environment and of the
repository, the exports that a template has made before, which cells run beside it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from harness import config, extensions, patches, registry, targets
from harness.artifact import Cell
from harness.storage.environment import Environment, Ingredients
from harness.storage.sources import (
    Modules,
    Source,
    State,
    digest_of,
    files_in,
    files_named,
    state_of,
    text_for,
)
from harness.variations import Variation

if TYPE_CHECKING:
    from harness.sweeping.settings import Settings

#: Goes up with every change of what a key is made of, or of how an artifact is stored.
FORMAT = 1

#: What an exporting process runs of the harness, and the folders of which it may import any module by a table.
WORKER = "harness.exporting.worker"
FOLDERS = ("exporting", "patches")

#: Files that are modules, or made from one, and no data.
NO_DATA = (".py", ".pyi", ".pyc")


def digest(ingredients: Ingredients) -> str:
    """Return the key of a listing: the SHA-256 of its pairs, sorted, as JSON."""
    return hashlib.sha256(json.dumps(sorted(ingredients)).encode()).hexdigest()


def different(one: Ingredients, other: Ingredients) -> tuple[str, ...]:
    """Return the names of the ingredients that two listings do not share.

    >>> different((("python", "3.11"), ("keep", "0")), (("python", "3.12"), ("keep", "0")))
    ('python',)
    """
    return tuple(sorted({name for name, _ in {*one} ^ {*other}}))


class Keys:
    """The keys of the exports of one sweep.

    Parameters
    ----------
    settings
        Of the sweep.
    environment
        The one that exports.
    """

    def __init__(self, settings: Settings, environment: Environment) -> None:
        self.settings = settings
        self.environment = environment
        repository = config.load()
        self.without = frozenset((repository.goldens, repository.sweeps))
        self.roots = tuple(path.absolute() for path in settings.machine.paths or repository.import_paths())
        harness = settings.machine.root / "harness"
        self.harness = Modules((), {"harness": harness}, dynamic=False)
        self.modules = Modules(
            (*self.roots, *environment.paths),
            {**environment.mapping, "harness": harness},
            environment.outside,
            leaves=("harness",),
        )
        self.cases = registry.load(settings.models)
        self.states: dict[Path, State] = {}
        self._digests: dict[Path, str] = {}
        self._of_cases: dict[str, Ingredients] = {}
        self._of_targets: dict[str, Ingredients] = {}
        self._of_patches: dict[str, Ingredients] = {}
        self._read_by: dict[str, tuple[Source | None, frozenset[Path]]] = {}
        self._target_files: dict[str, frozenset[Path]] = {}
        self._of_zoos: dict[str, tuple[Source | None, list[Source]]] = {}
        self._texts: dict[Path, str] = {}
        self._data: dict[Path, tuple[Path, ...]] = {}
        self._named_in: dict[Path, tuple[Path, ...]] = {}
        self.common = (*environment.ingredients, *self._of_settings(), *self._of_harness())

    def of(self, cell: Cell, variation: Variation, further_patches: Sequence[str] = ()) -> Ingredients:
        """Return what the artifact of `cell` depends on under `variation`, with `further_patches` installed as well."""
        names = (*self.settings.patches, *further_patches)
        tolerance = self.settings.tolerances.get(cell.target)
        found = {
            **dict(self.common),
            **dict(self._of_case(cell.case)),
            **dict(self._of_target(cell.target)),
            **{name: value for patch in names for name, value in self._of_patch(patch)},
            "patches": " ".join(names),
            "variation": variation.name,
            "tolerance": repr(tolerance),
        }
        return tuple(sorted(found.items()))

    def read_by(self, case: str) -> tuple[Source | None, frozenset[Path]]:
        """Return the module of which a case reads its own part, if it does, and the files that it reads whole."""
        self._of_case(case)
        return self._read_by[case]

    def read_by_target(self, name: str) -> frozenset[Path]:
        """Return the files of a target that is not the harness's own."""
        self._of_target(name)
        return self._target_files[name]

    def hold(self) -> bool:
        """Whether every file that keys were made of is as it was then."""
        return all(state_of(file) == state for file, state in self.states.items())

    def _of_settings(self) -> Iterator[tuple[str, str]]:
        machine = self.settings.machine
        yield "format", str(FORMAT)
        yield "zoos", " ".join(self.settings.models)
        yield "shortcuts", " ".join(self.settings.shortcuts)
        yield "isolation", self.settings.isolation
        yield "keep", str(self.settings.keep)
        yield "execute", str(self.settings.execute)
        yield "machine", json.dumps([machine.variables(), machine.threads, machine.onednn], sort_keys=True)

    def _of_harness(self) -> Iterator[tuple[str, str]]:
        for source in exporting_sources(self.harness):
            yield _label(source), self._digest(source.file)

    def _of_case(self, name: str) -> Ingredients:
        if name not in self._of_cases:
            case = self.cases[name]
            own, sources = self._sources(case)
            values = {key: value for key, value in fields_of(case).items() if key != "guards"}
            found = {"case": json.dumps(values, sort_keys=True, default=repr)}
            sources = list(self._with_harness(sources))
            found.update({_label(source): self._digest(source.file) for source in sources})
            files = {file for source in sources for file in self._files(source)}
            if own is not None:
                text = text_for(self._text(own), builder_of(case))
                found[f"case {own.name}"] = hashlib.sha256(_bytes(text)).hexdigest()
                files.update(self._files(own, text))
            found.update({f"data {self._named(file)}": self._digest(file) for file in files})
            whole = (source.file for source in sources if not _is_harness(source))
            self._read_by[name] = (own, frozenset((*files, *whole)))
            self._of_cases[name] = tuple(found.items())
        return self._of_cases[name]

    def _sources(self, case: registry.Case) -> tuple[Source | None, list[Source]]:
        if case.module not in self._of_zoos:
            self._of_zoos[case.module] = case_sources(self.modules, case, self.settings.models)
        return self._of_zoos[case.module]

    def _of_target(self, name: str) -> Ingredients:
        if name not in self._of_targets:
            target = targets.find(name)
            modules = [
                function.partition(":")[0] for function in (target.partitioner, target.quantizer) if function
            ]
            modules += _entry_modules(extensions.TARGETS, name)
            text = json.dumps(asdict(target), sort_keys=True, default=repr)
            files = list(self._module_files(modules))
            self._target_files[name] = frozenset(file for _, file in files)
            self._of_targets[name] = (
                ("target", text),
                *((label, self._digest(file)) for label, file in files),
            )
        return self._of_targets[name]

    def _of_patch(self, name: str) -> Ingredients:
        if name not in self._of_patches:
            patch = patches.known()[name]
            modules = [patch.install.__module__, *_entry_modules(extensions.PATCHES, name)]
            self._of_patches[name] = tuple(
                (label, self._digest(file)) for label, file in self._module_files(modules)
            )
        return self._of_patches[name]

    def _module_files(self, names: Iterable[str]) -> Iterator[tuple[str, Path]]:
        """Yield modules, what they import and their data, each with the name of its ingredient."""
        starts = [source for name in names if (source := self.modules.find(name)) is not None]
        for source in self._with_harness(self.modules.closure(starts).values()):
            yield _label(source), source.file
            yield from ((f"data {self._named(file)}", file) for file in self._files(source))

    def _with_harness(self, sources: Iterable[Source]) -> Iterator[Source]:
        """Yield `sources`, and what those of the harness among them import of it."""
        of_harness = [source for source in sources if _is_harness(source)]
        yield from (source for source in sources if not _is_harness(source))
        yield from self.harness.closure(of_harness).values()

    def _files(self, source: Source, text: str | None = None) -> Iterator[Path]:
        """Yield the data of a module: what its package holds beside modules, and the files that its `text` names."""
        if _is_harness(source):
            return
        folder = source.file.parent
        if source.is_package or "." in source.name:
            if folder not in self._data:
                self._data[folder] = tuple(
                    file for file in files_in(folder, self.without) if file.suffix not in NO_DATA
                )
            yield from self._data[folder]
        if text is not None:
            yield from self._files_named(source, text)
        elif source.is_text:
            if source.file not in self._named_in:
                self._named_in[source.file] = tuple(self._files_named(source, self._text(source)))
            yield from self._named_in[source.file]

    def _files_named(self, source: Source, text: str) -> Iterator[Path]:
        folder = source.file.parent
        root = next((root for root in self.roots if folder.is_relative_to(root)), folder)
        around = [each for each in (folder, *folder.parents) if each.is_relative_to(root)]
        for file in files_named(text, tuple(dict.fromkeys((*around, *self.roots))), self.without):
            if file.suffix != ".pyc":
                yield file

    def _text(self, source: Source) -> str:
        if source.file not in self._texts:
            self._digest(source.file)
            self._texts[source.file] = source.text()
        return self._texts[source.file]

    def _named(self, file: Path) -> str:
        root = next((root for root in self.roots if file.is_relative_to(root)), None)
        return str(file.relative_to(root) if root is not None else file)

    def _digest(self, file: Path) -> str:
        if file not in self._digests:
            # Before it is read: a change from now on is noticed.
            self.states[file] = state_of(file)
            self._digests[file] = digest_of(file)
        return self._digests[file]


def exporting_sources(modules: Modules) -> list[Source]:
    """Return the modules of the harness that an exporting process may run."""
    folder = modules.mapping["harness"]
    names = [WORKER]
    for room in FOLDERS:
        for file in sorted((folder / room).rglob("*.py")):
            parts = file.relative_to(folder.parent).with_suffix("").parts
            names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    starts = [source for name in names if (source := modules.find(name)) is not None]
    return list(modules.closure(starts).values())


def case_sources(
    modules: Modules, case: registry.Case, zoos: Sequence[str]
) -> tuple[Source | None, list[Source]]:
    """Return the module of a case, if only a part of its text counts, and the modules that count as a whole.

    The second are what it imports, and what loading the zoos imports beside it; not other modules with cases, unless
    its own imports them: these only register.
    """
    own = modules.find(case.module)
    starts = [own] if own is not None else []
    reached = modules.closure(starts, without=_around_it(case.module))
    others = {each.module for each in registry.CASES} - {case.module}
    loaded = [
        source for name in (*zoos, *_around_it(case.module)) if (source := modules.find(name)) is not None
    ]
    beside = modules.closure([source for source in loaded if source.name not in others], without=others)
    sources = {**beside, **reached}
    whole = own is None or any(
        own in modules.imports(source) for name, source in reached.items() if name != case.module
    )
    if not whole:
        sources.pop(case.module, None)
    return (None if whole else own), list(sources.values())


def _around_it(module: str) -> frozenset[str]:
    parts = module.split(".")
    return frozenset(".".join(parts[:length]) for length in range(1, len(parts)))


def _is_harness(source: Source) -> bool:
    return source.name == "harness" or source.name.startswith("harness.")


def _label(source: Source) -> str:
    return f"harness {source.name}" if _is_harness(source) else f"module {source.name}"


def _entry_modules(group: str, name: str) -> list[str]:
    return [point.module for point in extensions.points(group) if point.name == name]


def builder_of(case: registry.Case) -> str:
    """Return the name of the function of its module that builds a case; empty where something made that function."""
    name = getattr(case.build, "__name__", "")
    return name if name == getattr(case.build, "__qualname__", None) else ""


def fields_of(case: registry.Case) -> Mapping[str, object]:
    """Return the fields of a case but its builder, whose source counts."""
    return {name: value for name, value in vars(case).items() if name != "build"}


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogateescape")

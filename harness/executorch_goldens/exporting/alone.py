"""Loads one case of a zoo without the modules of the others: they cannot change its export."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Collection, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from executorch_goldens.zoo.registry import CASES, Case, load


def load_alone(zoos: Sequence[str], name: str, module: str | None, others: Collection[str]) -> Case:
    """Return the case called `name`; raises as `executorch_goldens.zoo.registry.load`.

    Parameters
    ----------
    module
        The module that its builder is in; None where nobody knows.
    others
        Modules of other cases: where a module imports them, they run once something of theirs is asked for.
    """
    # `load` below reports errors in one of them.
    if module is not None:
        with putting_off(set(others) - {module}), contextlib.suppress(Exception):
            for each in (*zoos, module):
                importlib.import_module(each)
            if name in (found := CASES.within(zoos, name)):
                return found[name]
    # Another module than its builder's registers it.
    return load_all(zoos, name)[name]


def load_all(zoos: Sequence[str], only: str | None = None) -> dict[str, Case]:
    """Return the cases of zoos as `executorch_goldens.zoo.registry.load` does, with the deferred imports."""
    for module in list(sys.modules.values()):
        if isinstance(module, PutOff):
            module.run()
    return load(zoos, only)


class PutOff(ModuleType):
    """A module that runs when something of it is first asked for.

    What the import system says of it does not count: others look through all modules for that.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        self.run()
        return getattr(self, name)

    def run(self) -> None:
        self.__class__ = ModuleType  # type: ignore[assignment]
        assert self.__spec__ is not None
        self.__file__ = self.__spec__.origin
        try:
            self.__loader__.exec_module(self)  # type: ignore[union-attr]
        except BaseException:
            sys.modules.pop(self.__name__, None)
            raise


class _Later(Loader):
    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return PutOff(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__loader__ = module.__spec__.loader = self.loader
        # Who looks for the module of some code asks all modules for their files, and then the file.
        vars(module).pop("__file__", None)


class _Finder(MetaPathFinder):
    def __init__(self, names: Collection[str]) -> None:
        self.names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for finder in sys.meta_path if fullname in self.names else ():
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Later(spec.loader)
                return spec
        return None


@contextlib.contextmanager
def putting_off(names: Collection[str]) -> Iterator[None]:
    """Let modules of these names run when something of theirs is asked for, in place of when they are imported."""
    finder = _Finder(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)

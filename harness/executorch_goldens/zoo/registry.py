"""The ``@case`` registry of models. It imports no torch; the functions that build models do.

A zoo is a module, or a package with what is in it, that registers cases; ``--models`` names it. Its cases have a
namespace of their own: two zoos may both have a case ``linear``, and only a run over both is refused.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from executorch_goldens.errors import UsageError, nearest, placed
from executorch_goldens.zoo import targets

#: Makes an `Example` from a `Data`, or a whole program from a `Build`.
Builder: TypeAlias = Callable[[Any], Any]

#: The most that a case may accept in place of it: beyond this nothing is checked.
MOST_IMPRECISE = 0.25

#: Goldens that are a decision: of an artifact that is no program, and of a program that delegates nothing.
FAILS, UNDELEGATED = "FAILURE", "NO DELEGATE"

#: The kernels of the runtime that a program is for: those of a product, which may be more than the wheel's, or the
#: wheel's and no others.
WHEEL, SELECTIVE = KERNELS = ("wheel", "selective")

#: Case names become directory names and parts of pytest ids: no separators, no dots, no upper case, no length at which
#: a file system or a snapshot library would cut them.
NAME_PATTERN = re.compile(r"(?=.{1,64}$)[a-z0-9]+(-[a-z0-9]+)*")

#: The sets of inputs that a lowered program is run on: the example's; zeros; each element the smallest or the largest
#: of the example's; and values drawn again between these.
SAMPLES = ("example", "zeros", "extremes", "drawn")

#: Names of samples: these, others of the sizes that dimensions may have, and runs of several steps.
SAMPLE_NAMES = (*SAMPLES, "least", "largest", "second step", "third step")

#: Between the name of a case and each thing that is changed of it.
CHANGED = "-x-"

#: A version of ExecuTorch (PEP 440, public, final or not).
RELEASE = re.compile(r"\d+(\.\d+)+((a|b|rc|\.dev)\d+)?")


B = TypeVar("B", bound="Builder")


class ZooError(UsageError):
    """A zoo that cannot be loaded, or a case that it cannot have; the message names it and the way out."""


class UnsteadyError(ZooError):
    """A case whose model gives other outputs when it is called again: they do not follow from its inputs."""


@dataclass(frozen=True, kw_only=True)
class CaseOptions:
    """What ``@case`` may say of a model.

    Attributes
    ----------
    issue
        Number of the upstream issue this case shows, or None.
    quantization
        Name of the quantizer settings (`executorch_goldens.zoo.targets.QUANTIZATIONS`) that the quantized targets use.
    constant_outputs
        True where every output is a constant of the model, so that lowering must fold it: the harness then
        looks for the eager (quantized) output among the decoded constants.
    run_on
        The `SAMPLES` that its program runs on; not those that the model has no meaningful result for, for instance
        zeros where it divides by an input.
    backends
        The backends (`targets.Target.backend`) that it is for, or what the names of its targets start with;
        empty for all. Without one where nothing of the model would be delegated, or where the runtime has no kernel for
        what is left outside.
    also
        Targets it is exported for in addition to those that every case is: some of those that are ``opt_in``.
    imprecise
        Target to how far rounding alone may move its outputs there, as a fraction of the largest absolute value, where
        that is more than `IMPRECISE`, up to `MOST_IMPRECISE`; the case says why.
    sqnr
        Target to the least ratio of signal to quantization noise of its outputs there, in dB, in place of the target's
        `floor`; the case says why. Minus infinity takes anything. With one that is at least the `floor`, the case is
        judged by it there, however far rounding may move its outputs.
    releases
        The releases that it can be built on; empty for all.
    kernels
        `WHEEL`: an operator that the wheel's runtime has no kernel for runs in eager, as a product may have one.
        `SELECTIVE`: the product has the wheel's kernels and no others, and the program does not run without one.
    """

    issue: int | None = None
    quantization: str = "symmetric"
    constant_outputs: bool = False
    run_on: tuple[str, ...] = SAMPLES
    backends: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    imprecise: Mapping[str, float] = field(default_factory=dict)
    sqnr: Mapping[str, float] = field(default_factory=dict)
    releases: tuple[str, ...] = ()
    kernels: str = WHEEL


@dataclass(frozen=True)
class Case(CaseOptions):
    """One model of a zoo.

    Attributes
    ----------
    name
        Name, unique in its zoo, `NAME_PATTERN`.
    family
        Last part of the name of the module it is in.
    guards
        One line: what this case would show if it broke.
    build
        Makes the example; called in the exporting process only.
    is_build
        Whether `build` makes a whole program, given an `executorch_goldens.exporting.building.Build`: it is exported
        for `executorch_goldens.zoo.targets.BUILD` alone.
    """

    name: str
    family: str
    guards: str
    build: Builder = field(repr=False)
    is_build: bool = field(default=False, kw_only=True)

    @property
    def module(self) -> str:
        """Name of the module that it is registered in."""
        return self.build.__module__


class Registry:
    """The cases of all zoos that this process has imported, in order of registration."""

    def __init__(self) -> None:
        self._cases: dict[tuple[str, str], Case] = {}
        self._later: list[tuple[set[str], Mapping[str, Any], Callable[[Any], Case]]] = []

    def __iter__(self) -> Iterator[Case]:
        self._make(None)
        return iter(self._cases.values())

    def add_later(self, models: Mapping[str, Any], make: Callable[[Any], Case]) -> None:
        """Register many cases, each made from what is of its name here once it is asked for, behind all others."""
        self._later.append((set(), models, make))

    def _make(self, only: str | None) -> None:
        """Register what is to be made later, or only one of it: an export needs no other."""
        for made, models, make in self._later:
            for name in models if only is None else models.keys() & {only}:
                if name not in made:
                    made.add(name)
                    self.add(make(models[name]))

    def add(self, case: Case) -> None:
        """Register `case`; raise `ZooError` for an invalid field, or a name already used in its module.

        Raises
        ------
        executorch_goldens.extensions.ExtensionError
            For a name that may be one of a distribution's target, where an entry point gives no target.
        """
        if not isinstance(case.name, str) or not NAME_PATTERN.fullmatch(case.name):
            raise ZooError(
                f"case name {case.name!r} is not of the form 'lower-case-words', 64 characters at most"
            )
        if (case.module, case.name) in self._cases:
            raise ZooError(f"case {case.name!r} is registered twice in {case.module}: rename one")
        if not isinstance(case.guards, str) or not case.guards.strip() or "\n" in case.guards:
            raise ZooError(f"case {case.name!r} needs guards=..., one line that names the behaviour it tests")
        for what in wrongs(case):
            raise ZooError(f"case {case.name!r} of {case.module}: {what}")
        self._cases[case.module, case.name] = case

    def within(self, zoos: Sequence[str], only: str | None = None) -> dict[str, Case]:
        """Return the cases of the zoos named, by name, in order of registration; raise `ZooError` if two share one.

        Parameters
        ----------
        only
            A case that is wanted, where others need not be made.
        """
        self._make(only)
        found: dict[str, Case] = {}
        for case in self._cases.values():
            zoo = zoo_of(case, zoos)
            if zoo is None:
                continue
            if case.name in found:
                raise _collision(found[case.name], case, zoos)
            found[case.name] = case
        return found


def wrongs(case: Case) -> Iterator[str]:
    """Yield the errors in the fields of `case`, names and their spelling first."""
    for field_of_names in ("run_on", "backends", "also", "releases"):
        names = getattr(case, field_of_names)
        if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
            yield f"{field_of_names} is a tuple of names, ('a',) or ('a', 'b'), and not {names!r}"
            return
    for field_of_targets in ("imprecise", "sqnr"):
        if not isinstance(given := getattr(case, field_of_targets), Mapping):
            yield f"{field_of_targets} is a mapping of targets to numbers, and not {given!r}"
            return
    yield from _uncallable(case)
    if case.is_build:
        yield from _not_of_builds(case)
    yield from _unknown("quantization", [case.quantization], targets.QUANTIZATIONS)
    yield from _unknown("kernels", [case.kernels], KERNELS)
    yield from _unknown("run_on", case.run_on, SAMPLES)
    yield from _unknown("backends", case.backends, _backends)
    yield from _unknown("also", case.also, targets.available)
    yield from _unknown("imprecise", case.imprecise, targets.available)
    yield from _unknown("sqnr", case.sqnr, targets.available)
    yield from _unusable(case)


def _uncallable(case: Case) -> Iterator[str]:
    """Yield the error of a function that cannot be called with one argument."""
    try:
        inspect.signature(case.build, follow_wrapped=False).bind(None)
    except TypeError as error:
        name = getattr(case.build, "__name__", "f")
        yield f"{name}() is called with one argument ({error}): write def {name}(data)"


def _not_of_builds(case: Case) -> Iterator[str]:
    """Yield the fields that say something to targets, and nothing to a function that makes a whole program."""
    for name in ("backends", "also", "quantization", "constant_outputs"):
        if getattr(case, name) != getattr(Case, name):
            yield f"{name}: a build lowers by itself, for {targets.BUILD!r} alone; leave it out"


def _unusable(case: Case) -> Iterator[str]:
    """Yield the errors in values that are no names."""
    if not case.run_on:
        yield f"run_on is empty; there are {', '.join(SAMPLES)}"
    for target, limit in case.imprecise.items():
        # To Python, true is 1.
        if not isinstance(limit, int | float) or isinstance(limit, bool) or not 0.0 < limit < math.inf:
            yield f"imprecise: {limit!r} of {target} is no number above 0"
        elif limit > MOST_IMPRECISE:
            yield (
                f"imprecise: {limit!r} of {target} is more than {MOST_IMPRECISE:g}, and would check nothing; "
                f"{targets.better_conditioned(target)}"
            )
    for target, least in case.sqnr.items():
        if isinstance(least, bool) or not isinstance(least, int | float) or not least < math.inf:
            yield f"sqnr: {least!r} of {target} is no number of dB"
    if case.issue is not None and (not isinstance(case.issue, int) or isinstance(case.issue, bool)):
        yield f"issue is the number of an upstream issue, and not {case.issue!r}"
    if not isinstance(case.constant_outputs, bool):
        yield f"constant_outputs is True or False, and not {case.constant_outputs!r}"
    for release in case.releases:
        if not RELEASE.fullmatch(release):
            yield f"releases: {release!r} is no version, such as 1.4.1"


def _unknown(
    field_of_names: str, names: Iterable[object], known: Collection[str] | Callable[[], Collection[str]]
) -> Iterator[str]:
    """Yield the names that are not `known`, which is asked for where there are any, with the nearest that is."""
    for name in names:
        there = known() if callable(known) else known
        if name in there:
            continue
        yield f"{field_of_names}: {name!r} is unknown; {nearest(str(name), there)}"


def _backends() -> Sequence[str]:
    """Return the words a case may use in `backends`: backends, and prefixes of targets."""
    return _words(tuple((target.backend, target.name) for target in targets.available().values()))


@functools.cache
def _words(known: Iterable[tuple[str, str]]) -> Sequence[str]:
    return tuple({word: None for backend, name in known for word in (backend, *_beginnings(name))})


def _beginnings(name: str) -> Iterator[str]:
    """Yield the prefixes of a name, whole words and numbers.

    >>> list(_beginnings("tosa-bf16"))
    ['tosa', 'tosa-', 'tosa-bf', 'tosa-bf16']
    """
    for end in range(1, len(name) + 1):
        around = name[end - 1 : end + 1]
        if end == len(name) or not (around.isalpha() or around.isdigit()):
            yield name[:end]


def changed_name(case: str, changes: Iterable[str]) -> str:
    """Return the name of a case with some changes.

    >>> changed_name("cat-h-v", ("ones", "rotated"))
    'cat-h-v-x-ones-x-rotated'
    """
    return CHANGED.join((case, *changes))


def zoo_of(case: Case, zoos: Sequence[str]) -> str | None:
    """Return the zoo out of `zoos` that `case` is of, the innermost of several; None if it is of none."""
    around = [zoo for zoo in zoos if f"{case.module}.".startswith(f"{zoo}.")]
    return max(around, key=len, default=None)


def _collision(one: Case, other: Case, zoos: Sequence[str]) -> ZooError:
    first, second = zoo_of(one, zoos), zoo_of(other, zoos)
    if first == second:
        return ZooError(
            f"case {one.name!r} is registered twice in {first}: in {one.module} and in {other.module}; rename one"
        )
    return ZooError(
        f"case {one.name!r} is both in {first} and in {second}: goldens are named by the case, so run each of these "
        "zoos on its own, with --models and a --goldens root for each"
    )


CASES = Registry()


def load(zoos: Sequence[str], only: str | None = None) -> dict[str, Case]:
    """Import the zoos named and return their cases, by name, as `Registry.within` does; raise `ZooError`.

    Examples
    --------
    >>> load(["json"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    executorch_goldens.zoo.registry.ZooError: --models json: no case is registered there, in ...json/__init__.py ...
    """
    for zoo in zoos:
        try:
            importlib.import_module(zoo)
        except ZooError as error:
            raise ZooError(f"--models {zoo}: {error}") from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            why = f": {placed(error)}"
            if isinstance(error, ModuleNotFoundError) and f"{zoo}.".startswith(f"{error.name}."):
                why = f" from {Path.cwd()}: {error}; name a module that registers cases"
            raise ZooError(f"--models {zoo} cannot be imported{why}") from error
    cases = CASES.within(zoos, only)
    if not cases and only is None:
        # A module of Python's own or an installed package may hide that of the repository.
        files = ", ".join(str(getattr(sys.modules[zoo], "__file__", zoo)) for zoo in zoos)
        raise ZooError(
            f"--models {' '.join(zoos)}: no case is registered there, in {files} (see executorch_goldens.case)"
        )
    return cases


@dataclass(frozen=True, kw_only=True)
class case(CaseOptions):  # noqa: N801 - it is called as a decorator
    """Registers the decorated builder; the case's name is `name`, or the function's with dashes.

    It takes a `Data` and returns an `Example`, which is lowered for every target. Or it takes a `Build`, as its
    annotation says, and returns a whole program, as the repository ships it.
    """

    guards: str
    name: str | None = None

    def __call__(self, build: B) -> B:
        own = {each.name: getattr(self, each.name) for each in fields(CaseOptions)}
        name, family = self.name or build.__name__.replace("_", "-"), build.__module__.rpartition(".")[2]
        CASES.add(Case(name, family, self.guards, build, is_build=takes_build(build), **own))
        return build


def takes_build(build: Builder) -> bool:
    """Return whether a builder makes a whole program: its parameter is annotated as a `Build`."""
    parameter = next(iter(inspect.signature(build).parameters.values()), None)
    annotation = getattr(parameter, "annotation", None)
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return name.rpartition(".")[2] == "Build"

"""The ``@case`` registry: which models there are. It imports no torch; what builds a model does.

A zoo is a module, or a package with what is in it, that registers cases; ``--models`` names it. Its cases have a
namespace of their own: two zoos may both have a case ``linear``, and only a run over both is refused.
"""

from __future__ import annotations

import importlib
import math
import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.errors import HarnessError

if TYPE_CHECKING:
    from harness.exporting.data import Data, Example

#: Case names become directory names and parts of pytest ids: no separators, no dots, no upper case, no length at which
#: a file system or a snapshot library would cut them.
NAME_PATTERN = re.compile(r"(?=.{1,64}$)[a-z0-9]+(-[a-z0-9]+)*")

#: The sets of inputs that a lowered program is run on: the example's; zeros; each element the smallest or the largest
#: of the example's; and values drawn anew between these.
SAMPLES = ("example", "zeros", "extremes", "drawn")


class ZooError(HarnessError, ValueError):
    """A zoo that cannot be loaded, or a case that it cannot have; the message names it and the way out."""


@dataclass(frozen=True)
class Case:
    """One model of a zoo.

    Attributes
    ----------
    name
        Name, unique in its zoo, `NAME_PATTERN`.
    family
        Last part of the name of the module it stands in.
    guards
        One line: what this case would show if it broke.
    build
        Makes the example; called in the exporting process only.
    report
        Number of the upstream report this case shows, or None.
    quantization
        Name of the quantizer settings (`harness.targets.SETTINGS`) that the quantized targets use.
    constant_outputs
        True where every output is a constant of the model, so that lowering must fold it: the harness then
        looks for the eager (quantized) output among the decoded constants.
    run_on
        Which of `SAMPLES` its program is run on; not those that the model has no meaningful result for, for instance
        zeros where it divides by an input.
    backends
        The backends (`harness.targets.Target.backend`) that it is for, or what the names of its targets start with;
        empty for all. Without one where nothing of the model would be delegated, or where the runtime has no kernel for
        what is left outside.
    also
        Targets it is exported for in addition to those that every case is: some of those that are ``further``.
    imprecise
        Target to how far rounding alone may move its outputs there, as a fraction of the largest absolute value, where
        that is more than `IMPRECISE`; the case says why.
    sqnr
        Target to the least ratio of signal to quantization noise of its outputs there, in dB, in place of the target's
        `floor`; the case says why.
    releases
        The releases that it can be built on; empty for all.
    """

    name: str
    family: str
    guards: str
    build: Callable[[Data], Example] = field(repr=False)
    report: int | None = None
    quantization: str = "symmetric"
    constant_outputs: bool = False
    run_on: tuple[str, ...] = SAMPLES
    backends: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    imprecise: Mapping[str, float] = field(default_factory=dict)
    sqnr: Mapping[str, float] = field(default_factory=dict)
    releases: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """Name of the module that it is registered in."""
        return self.build.__module__


class Registry:
    """The cases of all zoos that this process has imported, in order of registration."""

    def __init__(self) -> None:
        self._cases: dict[tuple[str, str], Case] = {}

    def __iter__(self) -> Iterator[Case]:
        return iter(self._cases.values())

    def __len__(self) -> int:
        return len(self._cases)

    def add(self, case: Case) -> None:
        """Register `case`; raise `ZooError` for an unusable name, or one that its module has taken."""
        if not NAME_PATTERN.fullmatch(case.name):
            raise ZooError(
                f"case name {case.name!r} is not of the form 'lower-case-words', 64 characters at most"
            )
        if (case.module, case.name) in self._cases:
            raise ZooError(f"case {case.name!r} is registered twice in {case.module}: rename one")
        for target, least in case.sqnr.items():
            if isinstance(least, bool) or not isinstance(least, int | float) or not math.isfinite(least):
                raise ZooError(
                    f"case {case.name!r}: sqnr[{target!r}] is {least!r}: a number of dB is expected"
                )
        if not case.guards.strip() or "\n" in case.guards:
            raise ZooError(f"case {case.name!r} must say in one line what it guards")
        self._cases[case.module, case.name] = case

    def within(self, zoos: Sequence[str]) -> dict[str, Case]:
        """Return the cases of the zoos named, by name, in order of registration; raise `ZooError` if two share one."""
        found: dict[str, Case] = {}
        for case in self:
            zoo = zoo_of(case, zoos)
            if zoo is None:
                continue
            if case.name in found:
                raise _collision(found[case.name], case, zoos)
            found[case.name] = case
        return found


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


def load(zoos: Sequence[str]) -> dict[str, Case]:
    """Import the zoos named and return their cases, by name; raise `ZooError`.

    Examples
    --------
    >>> load(["json"])
    Traceback (most recent call last):
    harness.registry.ZooError: --models json: no case is registered there (see harness.case)
    """
    for zoo in zoos:
        try:
            importlib.import_module(zoo)
        except ZooError as error:
            raise ZooError(f"--models {zoo}: {error}") from error
        except ImportError as error:
            raise ZooError(f"--models {zoo} cannot be imported: {error}") from error
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            raise ZooError(
                f"--models {zoo} cannot be imported: {where.filename}, line {where.lineno}: "
                f"{type(error).__name__}: {error}"
            ) from error
    cases = CASES.within(zoos)
    if not cases:
        raise ZooError(f"--models {' '.join(zoos)}: no case is registered there (see harness.case)")
    return cases


def case(
    *,
    guards: str,
    report: int | None = None,
    quantization: str = "symmetric",
    constant_outputs: bool = False,
    run_on: tuple[str, ...] = SAMPLES,
    backends: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    imprecise: Mapping[str, float] | None = None,
    sqnr: Mapping[str, float] | None = None,
    name: str | None = None,
) -> Callable[[Callable[[Data], Example]], Callable[[Data], Example]]:
    """Register the decorated builder; the case's name is `name`, or the function's with dashes."""

    def register(build: Callable[[Data], Example]) -> Callable[[Data], Example]:
        CASES.add(
            Case(
                name=name or build.__name__.replace("_", "-"),
                family=build.__module__.rpartition(".")[2],
                guards=guards,
                build=build,
                report=report,
                quantization=quantization,
                constant_outputs=constant_outputs,
                run_on=run_on,
                backends=backends,
                also=also,
                imprecise=imprecise or {},
                sqnr=sqnr or {},
            )
        )
        return build

    return register

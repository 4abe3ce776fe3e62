"""The ``@case`` registry: which models there are. It imports no torch; what builds a model does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.exporting.data import Data, Example

#: Case names become directory names and parts of pytest ids: no separators, no dots, no upper case, no length at which
#: a file system or a snapshot library would cut them.
NAME_PATTERN = re.compile(r"(?=.{1,64}$)[a-z0-9]+(-[a-z0-9]+)*")

#: The sets of inputs that a lowered program is run on: the example's; zeros; each element the smallest or the largest
#: of the example's; and values drawn anew between these.
SAMPLES = ("example", "zeros", "extremes", "drawn")


@dataclass(frozen=True)
class Case:
    """One model of the zoo.

    Attributes
    ----------
    name
        Unique name, `NAME_PATTERN`.
    family
        The module of ``models/`` it stands in.
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
        Targets it is exported for beside those that every case is: some of those that are ``further``.
    bounds
        Target to how far its outputs may be from eager there, as a part of the largest absolute value, where the
        target's own bound is too narrow; the case says why.
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
    bounds: Mapping[str, float] = field(default_factory=dict)


class Registry:
    """The cases known to this process, by name, in order of registration."""

    def __init__(self) -> None:
        self._cases: dict[str, Case] = {}

    def __iter__(self) -> Iterator[Case]:
        return iter(self._cases.values())

    def __len__(self) -> int:
        return len(self._cases)

    def __getitem__(self, name: str) -> Case:
        return self._cases[name]

    def __contains__(self, name: str) -> bool:
        return name in self._cases

    def add(self, case: Case) -> None:
        """Register `case`; raise ValueError for an unusable or a taken name."""
        if not NAME_PATTERN.fullmatch(case.name):
            raise ValueError(
                f"case name {case.name!r} is not of the form 'lower-case-words', 64 characters at most"
            )
        if case.name in self._cases:
            other = self._cases[case.name].family
            raise ValueError(f"case {case.name!r} is registered twice: in {other} and in {case.family}")
        if not case.guards.strip() or "\n" in case.guards:
            raise ValueError(f"case {case.name!r} must say in one line what it guards")
        self._cases[case.name] = case


CASES = Registry()


def case(
    *,
    guards: str,
    report: int | None = None,
    quantization: str = "symmetric",
    constant_outputs: bool = False,
    run_on: tuple[str, ...] = SAMPLES,
    backends: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    bounds: Mapping[str, float] | None = None,
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
                bounds=bounds or {},
            )
        )
        return build

    return register

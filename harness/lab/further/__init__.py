"""Sources of cases without goldens: measurements with them compare exports of the same session.

The map of reach has their cells, so that `goldens compare` and the drawn mutants take from them. Which target a case is
exported for follows from a rule, and the rule from no fix:

- ``zoo-further``: each case of the zoo, for some of the targets that it does not ask for, which take turns;
- ``wider``: the wider matrix of situations (`lab.pairs.wider`), each model for the target that its row names;
- ``arm-ops-further``, ``xnnpack-ops-further``, ``suite-ops-further``: every case of upstream's own tests, the core's or
  not. The cases of a file, which is an operator, take turns in the targets that the guest zoo does not have
  (`further`): every case and every target comes at least once;
- ``unit-tests``: upstream's tests of passes and quantizers, which no guest zoo has, for the common targets and, taking
  turns, some others;
- ``torch-ops-further``: each of the samples of PyTorch's database of operators alone, taking turns in all targets;
  those of float32 come in bfloat16 as well;
- ``torch-modules``: each of those of its database of modules, for some of all targets, which take turns as well;
- ``drawn``: models of the generator (`lab.fuzz`), each for some of all targets, which take turns as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from executorch_goldens.zoo.targets import TARGETS

T = TypeVar("T", bound=Hashable)


#: The modules that register the cases, by name.
SOURCES = {
    "zoo-further": f"{__name__}.zoo",
    "wider": f"{__name__}.wider",
    "arm-ops-further": f"{__name__}.arm_ops",
    "xnnpack-ops-further": f"{__name__}.xnnpack_ops",
    "suite-ops-further": f"{__name__}.suite_ops",
    "unit-tests": f"{__name__}.unit_tests",
    "torch-ops-further": f"{__name__}.torch_ops",
    "torch-modules": f"{__name__}.torch_modules",
    "drawn": f"{__name__}.drawn",
}


def further(backends: Sequence[str], quantized: bool) -> tuple[str, ...]:
    """Return the targets of some backends that a case must ask for: those that quantize, or those that do not."""
    return tuple(
        name
        for name, target in TARGETS.items()
        if target.opt_in and target.backend in backends and target.is_quantized == quantized
    )


def turns(cases: Sequence[T], targets: Sequence[str]) -> Iterator[tuple[T, str]]:
    """Yield pairs of a case and a target: each takes its turn, until every one of both has come.

    >>> list(turns(["a", "b", "c"], ["fp", "int"]))
    [('a', 'fp'), ('b', 'int'), ('c', 'fp')]
    """
    if cases and targets:
        for number in range(max(len(cases), len(targets))):
            yield cases[number % len(cases)], targets[number % len(targets)]


def shared(cases: Iterable[T], targets: Sequence[str], each: int) -> dict[T, tuple[str, ...]]:
    """Return the targets of each case: `each` of them, all taking turns.

    >>> shared(["a", "b"], ["fp", "int", "u55"], 2)
    {'a': ('fp', 'int'), 'b': ('u55', 'fp')}
    """
    found: dict[T, list[str]] = {}
    for case, target in turns([case for case in cases for _ in range(each)], targets):
        found.setdefault(case, []).append(target)
    return {case: tuple(of_case) for case, of_case in found.items()}

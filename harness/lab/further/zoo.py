"""The models of this project's zoo, each for some of the targets that it does not ask for."""

from __future__ import annotations

import functools
import hashlib
import inspect
from dataclasses import replace

from executorch_goldens.zoo import registry
from executorch_goldens.zoo.registry import CASES, Case
from executorch_goldens.zoo.targets import TARGETS
from lab.further import turns

#: Targets of a case.
EACH = 3


def assigned() -> dict[str, tuple[str, ...]]:
    """Return the targets of each case: `EACH` of those that a case must ask for and it does not, all taking turns."""
    targets = [name for name, target in TARGETS.items() if target.opt_in]
    cases = untaught()
    found: dict[str, list[str]] = {}
    # A build lowers by itself, for no target.
    names = [name for name, case in cases.items() if not case.is_build for _ in range(EACH)]
    for name, target in turns(names, targets):
        case = cases[name]
        if target not in case.also and TARGETS[target].is_for(case.backends):
            found.setdefault(name, []).append(target)
    return {name: tuple(chosen) for name, chosen in found.items()}


def untaught() -> dict[str, Case]:
    """Return the cases of the zoo that were not made for fixes, by name."""
    cases = registry.load(["models"])
    return {name: case for name, case in cases.items() if not case.module.startswith("models.situations.")}


def here(case: Case, targets: tuple[str, ...]) -> Case:
    """Return a case of the zoo as one of this module, for other targets; its `guards` names its source as well."""
    builder = functools.update_wrapper(functools.partial(case.build), case.build)
    builder.__module__ = __name__
    source = hashlib.sha256(inspect.getsource(inspect.unwrap(case.build)).encode()).hexdigest()
    return replace(
        case, build=builder, backends=targets, also=targets, guards=f"{case.guards} ({source[:12]})"
    )


for _name, _targets in assigned().items():
    CASES.add(here(untaught()[_name], _targets))

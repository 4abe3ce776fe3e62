"""Draws samples from PyTorch's own database of modules, ``module_db``, in the installed torch.

The rule is that of `lab.guests.opinfo`, where it applies to a module:

- A module is taken that is made of numbers, strings, dtypes, None and lists of these, and called with such and tensors;
  no lazy one, which has no weights before it is called.
- Of what ``module_inputs_func`` yields for float32, those are chosen that add most pairs of facts, of what makes the
  module and of the call, at most `CHOSEN`; tensors have up to `opinfo.ELEMENTS` elements in all.
- ``torch.export`` takes the module in evaluation mode, and its results are tensors alone, finite, none complex.
- At least one operator that it is decomposed to is in the tables of a partitioner of the installed release, and none
  draws at random.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.modules.lazy import LazyModuleMixin

from lab.guests import modules, opinfo
from lab.guests.modules import ModuleSample
from lab.guests.opinfo import Call, NotTakenError, Reader

#: Samples of a module.
CHOSEN = 4


def calls_of(entry: Any) -> list[tuple[str, Call]]:
    """Return the construction of each sample of a module, as Python, and its call."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = entry.module_inputs_func(
            entry, device="cpu", dtype=torch.float32, requires_grad=False, training=False
        )
    found = []
    for sample in drawn:
        with contextlib.suppress(NotTakenError):
            found.append(read(entry.module_cls, sample))
    return found


def read(made: type, sample: Any) -> tuple[str, Call]:
    """Return the construction of a sample and its call; raise `NotTakenError`."""
    if sample.forward_input is None:
        raise NotTakenError("no call")
    reader = Reader()
    given = sample.constructor_input
    texts = [reader.read(value, f"made {place}") for place, value in enumerate(given.args)]
    texts += [f"{name}={reader.read(value, f'made {name}')}" for name, value in sorted(given.kwargs.items())]
    if reader.tensors:
        raise NotTakenError("made of tensors")
    call = reader.call(sample.forward_input.args, sample.forward_input.kwargs)
    return f"{made.__module__.partition('.modules')[0]}.{made.__name__}({', '.join(texts)})", call


def samples_of(entry: Any, tables: frozenset[str]) -> Iterator[ModuleSample]:
    """Yield the samples of a module that the rule takes."""
    found = calls_of(entry)
    made_of = {id(call): made for made, call in found}
    number = 0
    for call in opinfo.chosen([call for _, call in found], CHOSEN):
        name = f"{entry.module_cls.__name__.lower()}-{number}"
        taken = exported(ModuleSample(name, made_of[id(call)], call.text(""), call.tensors))
        if taken is None or not opinfo.is_known(taken[1], tables):
            continue
        number += 1
        yield taken[0]


def exported(sample: ModuleSample) -> tuple[ModuleSample, torch.export.ExportedProgram] | None:
    """Return a sample and its program; None for one that the rule leaves out."""
    try:
        example = modules.example(sample)
        module = example.module.eval()
        with torch.no_grad():
            output = module(*example.inputs)
        if not all(map(opinfo.is_plain, torch.utils._pytree.tree_leaves(output))):
            return None
        return sample, torch.export.export(module, example.inputs, strict=True)
    except Exception:
        return None


def drawn() -> Iterator[ModuleSample]:
    """Yield the samples of every module of ``module_db``, in its order."""
    from torch.testing._internal.common_modules import module_db

    tables = opinfo.tables_of_release()
    seen: set[str] = set()
    for entry in module_db:
        if issubclass(entry.module_cls, LazyModuleMixin):
            continue
        for sample in samples_of(entry, tables):
            if sample.name not in seen:
                seen.add(sample.name)
                yield sample
        torch._dynamo.reset()

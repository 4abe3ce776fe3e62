"""Draws samples from PyTorch's own database of operators, ``op_db``, in the installed torch.

Nobody here wrote these calls. The rule looks at no fix; whoever wrote it had seen the table of docs/history.md:

- An entry of ``op_db`` is taken under the name by which torch has it, a function or a method. What has no such name is
  left out.
- Of what ``sample_inputs`` yields, a sample counts that has tensors of up to `ELEMENTS` elements in all, finite, none
  empty, and for the rest numbers, strings, dtypes, None, slices, and lists of these.
- Samples have facts: number, rank, sharing of a shape and dtype of the tensors; the sign or the value of every other
  argument that is there, its length where it is a list. The sample that adds most pairs of facts is chosen
  first, then the next, at most `CHOSEN` of a dtype; equal ones by size.
- Chosen samples take turns in the forms of the call: function, method, in place on a clone, each alias. In float32, a
  form that no turn comes to is called with the first sample.
- All tensors but the first are constants that the program holds where the operator is one of ``nn.functional``, and in
  every second sample of others.
- ``torch.export`` takes the call, and its result is tensors alone, finite, none complex.
- At least one of the operators that the first sample of an entry is decomposed to is in the tables of a partitioner of
  the installed release, Arm's or XNNPACK's, and none of them draws at random.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from lab.guests import sheets
from lab.guests.sheets import HELD, INPUT, Sample, Tensor

#: Elements that the tensors of a sample may have in all.
ELEMENTS = 2000
#: Samples of one operator by dtype; of the first there are more where no turn comes to a form.
CHOSEN = {"float32": 5, "int64": 2, "int32": 1, "int8": 1, "bool": 1, "float16": 1}
#: The dtype of `CHOSEN` without which an entry has no samples.
FIRST = "float32"
#: Samples of one operator and dtype that are looked at.
LOOKED_AT = 200


class NotTakenError(Exception):
    """A sample that is left out; the message is the reason."""


@dataclass(frozen=True)
class Call:
    """The arguments of a sample, tensors by their place in `tensors`.

    Attributes
    ----------
    args, kwargs
        Python of each argument, ``{0}`` for a tensor.
    facts
        Of the arguments; see the module.
    """

    args: tuple[str, ...]
    kwargs: tuple[tuple[str, str], ...]
    tensors: tuple[Tensor, ...]
    facts: frozenset[str]

    @property
    def size(self) -> int:
        return sum(math.prod(each.shape) for each in self.tensors)

    def text(self, head: str, skipped: int = 0) -> str:
        named = (f"{name}={value}" for name, value in self.kwargs)
        return f"{head}({', '.join((*self.args[skipped:], *named))})"


class Reader:
    """Reads the arguments of one sample."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []
        self.facts: set[str] = set()

    def call(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Call:
        """Return the call; raise `NotTakenError`."""
        texts = tuple(self.read(value, str(place)) for place, value in enumerate(args))
        named = tuple((name, self.read(value, name)) for name, value in sorted(kwargs.items()))
        if not self.tensors:
            raise NotTakenError("no tensor")
        if sum(each.numel() for each in self.tensors) > ELEMENTS:
            raise NotTakenError("large")
        self.facts.add(f"{len(self.tensors)} tensors")
        return Call(texts, named, tuple(map(described, self.tensors)), frozenset(self.facts))

    def read(self, value: Any, place: str) -> str:
        """Return an argument as Python; note its facts."""
        if isinstance(value, torch.Tensor):
            return self.tensor(value, place)
        if type(value) in (list, tuple, torch.Size):
            texts = [self.read(each, f"{place}.{number}") for number, each in enumerate(value)]
            self.facts.add(f"{place} {type(value).__name__} of {len(value)}")
            if type(value) is list:
                return f"[{', '.join(texts)}]"
            return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
        if isinstance(value, bool | str | torch.dtype | torch.memory_format | slice) or value in (None, ...):
            self.facts.add(f"{place} {value!r}")
            return "..." if value is ... else repr(value).replace("{", "{{")
        if type(value) in (int, float) and math.isfinite(value):
            kind = type(value).__name__
            self.facts.add(f"{place} {kind} {(value > 0) - (value < 0)}")
            return repr(value)
        raise NotTakenError(f"holds a {type(value).__name__}")

    def tensor(self, value: torch.Tensor, place: str) -> str:
        for number, other in enumerate(self.tensors):
            if other is value:
                self.facts.add(f"{place} is tensor {number}")
                return f"{{{number}}}"
        first = self.tensors[0] if self.tensors else value
        self.facts.add(f"{place} rank {value.dim()}")
        self.facts.add(f"{place} {value.dtype} {value.shape == first.shape}")
        self.tensors.append(value)
        return f"{{{len(self.tensors) - 1}}}"


def described(value: torch.Tensor) -> Tensor:
    """Return a tensor's dtype, shape and range; raise `NotTakenError`."""
    if value.layout is not torch.strided or value.is_complex() or value.is_quantized:
        raise NotTakenError("holds no plain tensor")
    dtype = str(value.dtype).removeprefix("torch.")
    wide = value.detach().to(torch.float64)
    if not bool(torch.isfinite(wide).all()):
        raise NotTakenError("not finite")
    if not value.numel():
        raise NotTakenError("empty")
    low, high = float(wide.min()), float(wide.max())
    if value.is_floating_point():
        low, high = math.floor(low * 16) / 16, math.ceil(high * 16) / 16
        if high - low <= 1 / 16 and value.numel() == 1:
            low = high = (low + high) / 2
    return Tensor(dtype, tuple(value.shape), low, high)


def chosen(calls: Sequence[Call], most: int) -> list[Call]:
    """Return those calls that add most pairs of facts, one after the other, `most` at the most."""
    seen: set[tuple[str, str]] = set()
    pairs = [{*itertools.combinations_with_replacement(sorted(call.facts), 2)} for call in calls]
    taken: list[int] = []
    while len(taken) < min(most, len(calls)):
        best = max(range(len(calls)), key=lambda n: (len(pairs[n] - seen), -calls[n].size, -n))
        if not pairs[best] - seen:
            break
        seen |= pairs[best]
        taken.append(best)
    return [calls[n] for n in taken]


def calls_of(entry: Any, dtype: torch.dtype) -> list[Call]:
    """Return the calls of the samples of an entry of ``op_db``; none where they need a device or a package."""
    found = []
    torch.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            drawn = list(itertools.islice(entry.sample_inputs("cpu", dtype), LOOKED_AT))
    except Exception:
        return []
    for sample in drawn:
        with contextlib.suppress(NotTakenError):
            found.append(Reader().call((sample.input, *sample.args), sample.kwargs))
    return found


def forms_of(entry: Any) -> list[Callable[[Call], str | None]]:
    """Return the forms in which an entry can be called: each gives Python, or None where it cannot have the call."""

    def function(name: str) -> Callable[[Call], str | None]:
        return lambda call: call.text(f"torch.{name}")

    def method(name: str, receiver: str) -> Callable[[Call], str | None]:
        # A number is no tensor that a method could be called of.
        return lambda call: call.text(f"{receiver}.{name}", 1) if call.args[0] == "{0}" else None

    found = []
    if has(torch, entry.name):
        found.append(function(entry.name))
    leaf = entry.name.rpartition(".")[2]
    if "." not in entry.name and has(torch.Tensor, leaf):
        found.append(method(leaf, "{0}"))
        if entry.inplace_variant is not None and has(torch.Tensor, f"{leaf}_"):
            found.append(method(f"{leaf}_", "{0}.clone()"))
    found.extend(function(alias.name) for alias in entry.aliases if has(torch, alias.name))
    return found


def has(owner: Any, name: str) -> bool:
    for part in name.split("."):
        if not hasattr(owner, part):
            return False
        owner = getattr(owner, part)
    return True


def called(entry: Any, calls: Sequence[Call]) -> Iterator[tuple[str, Call]]:
    """Yield Python and arguments of each chosen call, forms taking turns."""
    forms = forms_of(entry)
    if not forms or not calls:
        return
    turns = [(forms[n % len(forms)], call) for n, call in enumerate(calls)]
    if calls[0].tensors[0].dtype == FIRST:
        turns += [(form, calls[0]) for form in forms[len(calls) :]]
    for number, (form, call) in enumerate(turns):
        text = form(call)
        if text is not None:
            held = entry.name.startswith("nn.functional.") or number % 2 == 1
            first, *others = call.tensors
            kind = HELD if held else INPUT
            yield text, replace(call, tensors=(first, *(replace(each, kind=kind) for each in others)))


def samples_of(entry: Any, tables: frozenset[str]) -> Iterator[Sample]:
    """Yield the samples of an entry that the rule takes."""
    known = False
    for name, most in CHOSEN.items():
        dtype = getattr(torch, name)
        if dtype not in entry.dtypes:
            continue
        number = 0
        for text, call in called(entry, chosen(calls_of(entry, dtype), most)):
            taken = exported(Sample(f"{words(entry)}-{name}-{number}", text, call.tensors))
            if taken is None:
                continue
            sample, program = taken
            known = known or is_known(program, tables)
            if not known:
                return
            number += 1
            yield sample


def words(entry: Any) -> str:
    """Return the name of an entry in the form of cases; those of Python's operators begin with ``operator``."""
    name = f"{entry.name}-{entry.variant_test_name}" if entry.variant_test_name else entry.name
    kind = "operator " if name.startswith("__") else "private " if name.startswith("_") else ""
    return "-".join("".join(c if c.isalnum() else " " for c in kind + name.lower()).split())


def exported(sample: Sample) -> tuple[Sample, torch.export.ExportedProgram] | None:
    """Return a sample as a sheet can have it, and its program; None for one that the rule leaves out."""
    try:
        example = sheets.example([sample])
        with torch.no_grad():
            (output,) = example.module(*example.inputs)
        several = isinstance(output, list | tuple)
        outputs = output if several else (output,)
        if not outputs or not all(map(is_plain, outputs)):
            return None
        made = replace(sample, call=f"*{sample.call}") if several else sample
        example = sheets.example([made])
        return made, torch.export.export(example.module, example.inputs, strict=True)
    except Exception:
        return None


def is_plain(output: object) -> bool:
    if not isinstance(output, torch.Tensor) or output.is_complex() or output.layout is not torch.strided:
        return False
    return bool(torch.isfinite(output.to(torch.float64)).all())


def is_known(program: torch.export.ExportedProgram, tables: frozenset[str]) -> bool:
    """Return whether a partitioner's table has an operator of a program, and no operator draws at random."""
    try:
        nodes = program.run_decompositions().graph.nodes
    except Exception:
        return False
    operators = [node.target for node in nodes if node.op == "call_function"]
    return not tables.isdisjoint(map(str, operators)) and not any(map(_is_random, operators))


def _is_random(operator: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(operator, "tags", ())


def tables_of_release() -> frozenset[str]:
    """Return the names of the ATen operators that the partitioners of the installed release know."""
    from executorch.backends.arm.operator_support import tosa_supported_operators as arm
    from executorch.backends.arm.tosa.specification import TosaSpecification
    from executorch.backends.xnnpack.partition.config import ALL_PARTITIONER_CONFIGS

    known = {*arm.TOSA_PRO_FP_SupportList, *arm.TOSA_PRO_INT_SupportList}
    for profile in ("FP", "INT"):
        specification = TosaSpecification.create_from_string(f"TOSA-1.0+{profile}")
        for check in arm.get_registered_tosa_support_checks(specification):
            known.update(check.targets)
    named = {str(getattr(each, "_op", each)) for each in known}
    return frozenset(named | {f"aten.{each.target_name}" for each in ALL_PARTITIONER_CONFIGS})


def drawn() -> Iterator[Sample]:
    """Yield the samples of every entry of ``op_db``, in its order."""
    from torch.testing._internal.common_methods_invocations import op_db

    tables = tables_of_release()
    for entry in op_db:
        yield from samples_of(entry, tables)
        # Dynamo's cache of traced calls makes it slower.
        torch._dynamo.reset()

"""The kernels that a program needs outside its delegates, against the operators that a firmware's build selects.

Source of the format: ``gen_oplist.py`` and ``gen_selected_op_variants.py`` in ``executorch/codegen/tools`` of 1.4.1,
and ``torchgen/selective_build/selector.py`` of torch 2.13.
"""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from executorch_goldens.decode import Decoded, Graph, Value
from executorch_goldens.decode.pte import DTYPES
from executorch_goldens.errors import CommandError

#: Numbers of ``ScalarType`` in kernel keys (``runtime/core/portable_type/scalar_type.h``), by the schema's names.
SCALAR_TYPES: Mapping[str, int] = {
    name: number
    for number, name in enumerate(
        (
            *("BYTE", "CHAR", "SHORT", "INT", "LONG", "HALF", "FLOAT", "DOUBLE"),
            *(
                "COMPLEXHALF",
                "COMPLEXFLOAT",
                "COMPLEXDOUBLE",
                "BOOL",
                "QINT8",
                "QUINT8",
                "QINT32",
                "BFLOAT16",
            ),
        )
    )
}
#: An operator's name, with its overload.
OPERATOR = re.compile(r"\w+::\w+(\.\w+)?")
#: Top-level keys of ``selected_operators.yaml``, at least one of which selects kernels.
SELECTING = ("operators", "et_kernel_metadata", "include_all_operators")
#: Metadata of an operator in place of kernel keys: every dtype.
EVERY = "default"

#: Operator to the dtypes of the tensors that it is called with.
Needs = Mapping[str, frozenset[str]]


def needs(program: Decoded) -> Needs:
    """Return the operators that a decoded ``.pte`` calls outside its delegates, with the dtypes of their tensors."""
    found: dict[str, set[str]] = defaultdict(set)
    for graph in program.graphs:
        for operator in graph.operators:
            if "::" in operator.type:
                dtypes = found[operator.type]
                for name in operator.inputs:
                    dtypes.update(tensor.dtype for tensor in _tensors(graph, name))
    return {name: frozenset(dtypes) for name, dtypes in sorted(found.items())}


def _tensors(graph: Graph, name: str | None) -> Iterator[Value]:
    """Yield the tensors that an argument is: one, those of a list, or none."""
    value = graph.values.get(name) if name is not None else None
    if value is None:
        return
    if value.dtype in DTYPES:
        yield value
    elif value.dtype in ("TensorList", "OptionalTensorList"):
        items = value.attributes.get("items")
        for item in items if isinstance(items, tuple) else ():
            if isinstance(item, int):
                yield from _tensors(graph, f"%{item}")


@dataclass(frozen=True)
class Selection:
    """The operators that a build selects.

    Attributes
    ----------
    everything
        Whether the build is not selective.
    operators
        Their names.
    all_overloads
        Names without overload that select every overload.
    dtypes
        Operator to the numbers of its dtypes; without an entry, every dtype.
    """

    operators: frozenset[str]
    everything: bool = False
    all_overloads: frozenset[str] = frozenset()
    dtypes: Mapping[str, frozenset[int]] = field(default_factory=dict)

    def lacks(self, operator: str, dtypes: frozenset[str]) -> tuple[str, ...] | None:
        """Return the missing dtypes of an operator, none for all of it; None if nothing is missing."""
        overloads = operator.partition(".")[0] in self.all_overloads
        if not (self.everything or operator in self.operators or overloads):
            return ()
        if operator not in self.dtypes:
            return None
        return tuple(sorted(d for d in dtypes if SCALAR_TYPES.get(d) not in self.dtypes[operator])) or None


def read(data: bytes, name: str) -> Selection:
    """Read a ``selected_operators.yaml`` as ExecuTorch's codegen writes it, or a plain list of operators.

    A list has a name a line, or several with spaces or commas between them; ``#`` begins a comment.

    Raises
    ------
    CommandError
        For what is neither.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise _neither(name, "it is no text") from None
    words = [
        word for line in text.splitlines() for word in re.split(r"[\s,]+", line.partition("#")[0]) if word
    ]
    if words and all(map(OPERATOR.fullmatch, words)):
        return Selection(frozenset(words))
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise CommandError(f"{name} needs PyYAML to be read: pip install pyyaml") from None
    try:
        return _of_yaml(yaml.safe_load(text), name)
    except (yaml.YAMLError, RecursionError) as error:
        raise _neither(name, str(error).partition("\n")[0]) from None


def _neither(name: str, why: str) -> CommandError:
    return CommandError(
        f"{name} is neither a selected_operators.yaml of ExecuTorch's codegen nor a list of operators: {why}"
    )


def _of_yaml(content: Any, name: str) -> Selection:
    if not isinstance(content, dict) or not any(key in content for key in SELECTING):
        raise _neither(name, f"it has none of {', '.join(SELECTING)}")
    operators, metadata = content.get("operators") or {}, content.get("et_kernel_metadata") or {}
    if not isinstance(operators, dict) or not isinstance(metadata, dict):
        raise _neither(name, "operators and et_kernel_metadata are mappings by operator")
    dtypes = {str(operator): _dtypes(keys, name) for operator, keys in metadata.items()}
    every = {
        str(operator)
        for operator, facts in operators.items()
        if isinstance(facts, dict) and facts.get("include_all_overloads") is True
    }
    return Selection(
        frozenset(map(str, (*operators, *metadata))),
        content.get("include_all_operators") is True,
        frozenset(every),
        {operator: numbers for operator, numbers in dtypes.items() if numbers is not None},
    )


def _dtypes(keys: Any, name: str) -> frozenset[int] | None:
    """Return the dtypes in kernel keys, None for every one; raise CommandError.

    A dtype is selected for an operator wherever in its keys it is: so ``gen_selected_op_variants.py`` has it.

    >>> sorted(_dtypes(["v1/6;0,1|6;0,1|4;0", "v1/3;"], "x.yaml"))
    [3, 4, 6]
    """
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise _neither(name, "et_kernel_metadata has a list of kernel keys for each operator")
    found: set[int] = set()
    for key in keys:
        version, _, tensors = key.partition("/")
        if key == EVERY or not tensors:
            return None
        numbers = [tensor.partition(";")[0] for tensor in tensors.split("|")]
        if version != "v1" or not all(number.isdecimal() for number in numbers):
            raise _neither(name, f"{key!r} is no kernel key of version v1")
        found.update(map(int, numbers))
    return frozenset(found) or None

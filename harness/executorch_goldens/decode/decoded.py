"""The typed form that every payload decodes to, whatever its format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from executorch_goldens.decode.constant import Constant, type_text
from executorch_goldens.decode.flatbuffer import Table, Unread

#: Names of formats: the first word of a payload's text, and a part of the names of its files.
KIND = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

#: Hexadecimal digits of a SHA-256 in a golden: 64 bits, by which no two contents of a project are the same by chance.
DIGITS = 16

#: A value of an attribute. `bytes` for what the format itself leaves opaque, a `Constant` where its type is
#: known.
Attribute: TypeAlias = "bool | int | float | str | bytes | Constant | tuple[Attribute, ...] | None"


@dataclass(frozen=True)
class Value:
    """A value on an edge of a graph: a tensor, a shape, or another kind.

    Attributes
    ----------
    name
        Its name in the graph; where the format only numbers values, ``%`` and the number.
    dtype
        Data type in the words of the format.
    shape
        None where the payload gives none.
    attributes
        Everything else that the payload says about it and that differs from the schema's default.
    constant
        Its contents, if they are in the payload.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] | None
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    constant: Constant | None = None

    @property
    def type(self) -> str:
        """Data type and shape, for instance ``INT8[1,3,8,8]``."""
        return self.dtype if self.shape is None else type_text(self.dtype, self.shape)


@dataclass(frozen=True)
class Operator:
    """One operator, node or instruction.

    Attributes
    ----------
    type
        Type of the operator: ``CONV2D``, ``XNNFullyConnected``, ``aten::add.out``.
    inputs, outputs
        Names of values of its graph, by position. None where the position holds nothing (an absent bias).
    input_roles, output_roles
        The name of each position, where the format has one.
    attributes
        Everything else, by name, in the schema's order, defaults included.
    """

    type: str
    inputs: tuple[str | None, ...]
    outputs: tuple[str | None, ...]
    attributes: Mapping[str, Attribute]
    input_roles: tuple[str, ...] = ()
    output_roles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Graph:
    """A block of a TOSA region, an XNNPACK graph, or a plan of a ``.pte``.

    Attributes
    ----------
    name
        ``region/block``, or the plan's name.
    inputs, outputs
        Names of values, in calling order.
    values
        Values by name, in the payload's order.
    operators
        Operators in order of execution.
    attributes
        Everything else.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    values: Mapping[str, Value]
    operators: tuple[Operator, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


@dataclass(frozen=True)
class Delegated:
    """A delegate of a ``.pte``.

    Attributes
    ----------
    name
        The plan and the delegate's index in it: ``forward/0``.
    backend
        Backend id.
    attributes
        Compile specs and where the payload is.
    payload
        The payload's bytes.
    decoded
        The payload decoded, None for backends whose format is not known here.
    """

    name: str
    backend: str
    attributes: Mapping[str, Attribute]
    payload: bytes | memoryview = field(repr=False)
    decoded: Decoded | None = None


@dataclass(frozen=True)
class Decoded:
    """A payload, completely.

    Attributes
    ----------
    kind
        ``tosa``, ``xnnpack``, ``pte`` or the `decode.formats.Format.kind` of an installed distribution's.
    size
        Bytes of the payload.
    facts
        Facts about the whole payload: versions, headers, tables of contents.
    blobs
        Constants by name that no value of a graph refers to: unused ones, segments, named data.
    delegates
        Delegates of a ``.pte``, in order.
    unread
        Bytes that nothing in the payload refers to and that are not zero: none in a sound payload.
    tree
        The FlatBuffer as read, field by field; None for a format that is none.
    """

    kind: str
    size: int
    facts: Mapping[str, Attribute]
    graphs: tuple[Graph, ...]
    tree: Table | None = field(default=None, repr=False)
    blobs: Mapping[str, Constant] = field(default_factory=dict)
    delegates: tuple[Delegated, ...] = ()
    unread: tuple[Unread, ...] = ()

    def lines(self, *, delegates: bool = True) -> Iterator[str]:
        """Yield the golden text, line by line, without line ends.

        Parameters
        ----------
        delegates
            Whether to write out the delegates of a ``.pte`` as well as to list them.
        """
        from executorch_goldens.decode.text import lines

        return lines(self, delegates=delegates)

    def text(self, *, delegates: bool = True) -> str:
        """Return the golden text; it ends with a newline."""
        return "".join(line + "\n" for line in self.lines(delegates=delegates))

    def constants(self) -> Mapping[str, Constant]:
        """Return every constant by name.

        Where graphs share a name, and for the constants of delegates, the key says which:
        ``region/block: name``, ``delegate forward/0: name``.
        """
        named: dict[str, Constant] = {}
        values = ((graph, value) for graph in self.graphs for value in graph.values.values())
        for graph, value in values:
            if value.constant is not None:
                key = value.name if value.name not in named else f"{graph.name}: {value.name}"
                named[key] = value.constant
        named |= {name: blob for name, blob in self.blobs.items() if name not in named}
        for delegate in self.delegates:
            inner = delegate.decoded.constants() if delegate.decoded else {}
            named |= {f"delegate {delegate.name}: {name}": constant for name, constant in inner.items()}
        return named

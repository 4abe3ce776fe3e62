"""Vulkan payloads: a header, a FlatBuffer with the graph, and constants after it or in the named data.

Sources of the format: ``schema.fbs`` and ``VulkanDelegateHeader`` in ``backends/vulkan/serialization`` of ExecuTorch
(the same header in 1.1.0 to 1.5.1; 1.2.0 adds memory layouts).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from executorch_goldens.decode import Decoded, DecodeError, Format, Graph, Operator, Schemas, Value
from executorch_goldens.decode.constant import CODECS, Codec, Constant, make_constant, opaque
from executorch_goldens.decode.decoded import Attribute
from executorch_goldens.decode.flatbuffer import read_flatbuffer, unread_between
from executorch_goldens.decode.tables import Fields

SCHEMA = ("executorch/backends/vulkan/serialization/schema.fbs", "vulkan.fbs")
#: Four zeros, magic, size of the header, offset and size of the FlatBuffer, offset and size of the constants.
HEADER = struct.Struct("<4s4sHIIIQ")
#: Offset of a constant that is in the named data (``serialize_constant_tensors``).
NOT_HERE = 0xFFFFFFFFFFFFFFFF
#: Encodings of constants by ``VkDataType``.
DTYPES: Mapping[str, Codec] = {
    "BOOL": CODECS["bool"],
    "UINT8": CODECS["u8"],
    "INT8": CODECS["i8"],
    "INT32": CODECS["i32"],
    "INT64": CODECS["i64"],
    "FLOAT16": CODECS["f16"],
    "FLOAT32": CODECS["f32"],
    "FLOAT64": CODECS["f64"],
}

NamedData = Mapping[str, bytes | memoryview]


@dataclass(frozen=True)
class _Entry:
    """An entry of ``VkGraph.values``: a value of the graph, or an operator's number, list or nothing.

    Attributes
    ----------
    value
        None for what is no value of the graph.
    items
        The values that a ``ValueList`` names.
    """

    value: Value | None
    attribute: Attribute = None
    items: tuple[int, ...] | None = None


def decode(payload: memoryview, schemas: Schemas, named_data: NamedData) -> Decoded:
    """Decode a Vulkan payload; raise `DecodeError` for bytes that are none."""
    (start, stop), (base, end) = _header(payload)
    buffer = read_flatbuffer(schemas.of_format("vulkan", "executorch", SCHEMA), payload, start, stop)
    root = Fields(buffer.root, buffer.root.type)
    facts: dict[str, Attribute] = {"flatbuffer_offset": start, "flatbuffer_size": stop - start}
    facts |= {"constants_offset": base, "constants_size": end - base}
    data, spans = [], [(0, HEADER.size), (start, stop)]
    for at, entry in enumerate(root.tables("constants")):
        stored, attributes = _datum(entry, payload[base:end], named_data)
        data.append(stored)
        if stored is not None and "offset" in attributes:
            begin = base + int(attributes["offset"])
            spans.append((begin, begin + len(stored)))
        facts |= {f"constants[{at}].{name}": value for name, value in attributes.items()}
    used: set[int] = set()
    graph = _graph(root, data, used)
    blobs = {
        f"constants[{at}]": opaque(stored)
        for at, stored in enumerate(data)
        if at not in used and stored is not None and len(stored)
    }
    unread = (*buffer.unread, *unread_between(spans, payload))
    return Decoded("vulkan", len(payload), facts, (graph,), buffer.root, blobs, unread=unread)


def _header(payload: memoryview) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return where the FlatBuffer is and where the constants are."""
    path = "VulkanDelegateHeader"
    if len(payload) < HEADER.size:
        raise DecodeError(path, 0, f"the header takes {HEADER.size} bytes, {len(payload)} are there")
    zeros, _magic, length, start, size, base, data_size = HEADER.unpack_from(payload)
    if any(zeros) or length != HEADER.size:
        raise DecodeError(path, 0, f"four zeros and a header of {HEADER.size} bytes expected, found {length}")
    if not HEADER.size <= start <= start + size <= base <= base + data_size <= len(payload):
        raise DecodeError(
            path, 10, "the FlatBuffer and the constants are not one after the other in the payload"
        )
    return (start, start + size), (base, base + data_size)


def _datum(
    entry: Fields, constants: memoryview, named_data: NamedData
) -> tuple[memoryview | None, dict[str, Attribute]]:
    """Return the bytes of an entry of ``VkGraph.constants``, None if they are not at hand, and its facts."""
    offset, length, key = entry.number("offset"), entry.number("length"), entry.text("named_key")
    attributes: dict[str, Attribute] = {"length": length}
    attributes |= {"named_key": key} if offset == NOT_HERE else {"offset": offset}
    attributes |= entry.rest()
    if offset == NOT_HERE:
        found = named_data.get(key) if key else None
        stored = None if found is None else memoryview(found).cast("B").toreadonly()
    else:
        stored = constants[offset:]
    if stored is not None and len(stored) < length:
        raise entry.fail(f"{length} bytes expected, {len(stored)} are there")
    return None if stored is None else stored[:length], attributes


def _graph(root: Fields, data: list[memoryview | None], used: set[int]) -> Graph:
    entries = [_entry(f"%{at}", entry, data, used) for at, entry in enumerate(root.tables("values"))]
    values = {entry.value.name: entry.value for entry in entries if entry.value is not None}
    operators = tuple(_operator(call, entries) for call in root.tables("chain"))
    inputs, outputs = (root.integers(name) or () for name in ("input_ids", "output_ids"))
    return Graph(
        name="VkGraph",
        inputs=tuple(f"%{at}" for at in inputs),
        outputs=tuple(f"%{at}" for at in outputs),
        values=values,
        operators=operators,
        attributes={name: value for name, value in root.rest().items() if value not in (None, ())},
    )


def _entry(name: str, entry: Fields, data: list[memoryview | None], used: set[int]) -> _Entry:
    kind, held = entry.text("value_type"), entry.table("value")
    if kind is None or held is None:
        raise entry.fail("holds nothing")
    if kind == "VkTensor":
        return _Entry(_tensor(name, held, data, used))
    if kind == "SymInt":
        return _Entry(Value(name, kind, None, held.rest()))
    if kind == "ValueList":
        return _Entry(None, items=held.integers("items") or ())
    found = tuple(held.rest().values())
    return _Entry(None, found[0] if found else None)


def _tensor(name: str, tensor: Fields, data: list[memoryview | None], used: set[int]) -> Value:
    dtype, shape, at = tensor.name("datatype"), tensor.integers("dims") or (), tensor.number("constant_id")
    if dtype not in DTYPES:
        raise tensor.fail(f"is of type {dtype}, which this decoder does not know")
    attributes: dict[str, Attribute] = {"constant_id": at} if at >= 0 else {}
    attributes |= tensor.rest()
    if at >= len(data):
        raise tensor.fail(f"refers to constant {at} of {len(data)}")
    if at < 0:
        return Value(name, dtype, shape, attributes)
    used.add(at)
    constant: Constant | None = None
    stored = data[at]
    if stored is None:
        attributes["constant.missing"] = True
    else:
        try:
            constant, surplus = make_constant(dtype, shape, stored, DTYPES[dtype])
        except ValueError as error:
            raise tensor.fail(str(error)) from None
        if surplus:
            attributes["data_beyond_shape"] = bytes(surplus)
    return Value(name, dtype, shape, attributes, constant)


def _operator(call: Fields, entries: list[_Entry]) -> Operator:
    """Return an operator: its last argument is its output, a value or a list of them."""
    arguments = call.integers("args") or ()
    if not arguments or not all(0 <= at < len(entries) for at in arguments):
        raise call.fail(f"takes {list(arguments)} of {len(entries)} values")
    inputs: dict[str, str] = {}
    attributes: dict[str, Attribute] = {}
    for place, at in enumerate(arguments[:-1]):
        for role, entry, number in _flat(f"arg{place}", at, entries):
            if entry.value is None:
                attributes[role] = entry.attribute
            else:
                inputs[role] = f"%{number}"
    outputs = {role: f"%{number}" for role, _, number in _flat("out", arguments[-1], entries)}
    return Operator(
        type=call.name("name"),
        inputs=tuple(inputs.values()),
        outputs=tuple(outputs.values()),
        attributes=attributes | call.rest(),
        input_roles=tuple(inputs),
        output_roles=tuple(outputs),
    )


def _flat(role: str, at: int, entries: list[_Entry]) -> Iterator[tuple[str, _Entry, int]]:
    """Yield an argument, or the members of the list that it is."""
    items = entries[at].items
    if items is None:
        yield role, entries[at], at
        return
    for place, item in enumerate(items):
        if not 0 <= item < len(entries):
            raise DecodeError(role, 0, f"a list of values names {item} of {len(entries)}")
        yield f"{role}[{place}]", entries[item], item


FORMAT = Format("vulkan", b"VH00", "executorch", decode)

"""XNNPACK payloads: a header, a FlatBuffer with the graph, and constants after it or in the named data.

Sources of the format: ``schema.fbs`` and ``XNNHeader`` in ``backends/xnnpack/serialization`` of ExecuTorch
(the same in 1.1.0 to 1.5.1); ``operators/node_visitor.py`` there for how constants are stored.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from executorch_goldens.decode.constant import CODECS, Codec, Constant, opaque
from executorch_goldens.decode.decoded import Attribute, Decoded, Graph, Operator, Value
from executorch_goldens.decode.errors import DecodeError
from executorch_goldens.decode.flatbuffer import read_flatbuffer
from executorch_goldens.decode.schema import Schema
from executorch_goldens.decode.tables import Fields

#: Four zeros, magic, size of the header, offset and size of the FlatBuffer, offset and size of the constants.
_HEADER = struct.Struct("<4s4sHIIIQ")

#: ``XNN_INVALID_VALUE_ID`` of xnnpack.h: no value, for instance no bias.
NO_VALUE = 0xFFFFFFFF
#: Offset of constant data that are not in the payload (schema.fbs, ConstantDataOffset).
NOT_HERE = 0xFFFFFFFFFFFFFFFF

DTYPE_PREFIX = "xnn_datatype_"
#: Encodings of constants by ``XNNDatatype``.
DTYPES: Mapping[str, Codec] = {
    "fp32": CODECS["f32"],
    "fp16": CODECS["f16"],
    "bf16": CODECS["bf16"],
    "int32": CODECS["i32"],
    "qint8": CODECS["i8"],
    "quint8": CODECS["u8"],
    "qint32": CODECS["i32"],
    "qcint8": CODECS["i8"],
    "qcint32": CODECS["i32"],
    "qcint4": CODECS["i4+8"],
    "qbint4": CODECS["i4+8"],
}
#: Datatypes of values that XNNPACK computes at run time and packs as it likes: never constants.
COMPUTED = frozenset({"invalid", "qdint8", "qpint8", "pfp32"})
#: Scales kept among the constants: the table of quantization parameters to the type of its scales.
SCALE_BUFFERS = {"PerChannelQuant": "fp32", "PerChannelGroupQuant": "bf16"}


@dataclass
class _ConstantData:
    """The constant data of a payload, and which of its entries values refer to.

    Attributes
    ----------
    entries
        Bytes and key of each; no bytes for one that is outside the payload and was not given.
    span
        (start, stop) of the constants in the payload.
    read
        (start, stop) of those that entries take.
    """

    payload: memoryview
    span: tuple[int, int]
    named: Mapping[str, bytes | memoryview]
    entries: list[tuple[memoryview | None, str | None]] = field(default_factory=list)
    used: set[int] = field(default_factory=set)
    read: list[tuple[int, int]] = field(default_factory=list)

    def add(self, entry: Fields) -> dict[str, Attribute]:
        """Add an entry, as the payload lists it; return its attributes."""
        offset, size, key = entry.number("offset"), entry.number("size"), entry.text("named_key")
        attributes: dict[str, Attribute] = {"size": size}
        if offset != NOT_HERE:
            attributes["offset"] = offset
        if key:
            attributes["named_key"] = key
        data = self._by_key(entry, key, size) if offset == NOT_HERE else self._at(entry, offset, size)
        self.entries.append((data, key))
        return attributes | entry.rest()

    def _by_key(self, entry: Fields, key: str | None, size: int) -> memoryview | None:
        found = self.named.get(key) if key else None
        if found is None:
            return None
        if len(found) < size:
            raise entry.fail(f"named data {key!r} should hold {size} bytes and holds {len(found)}")
        return memoryview(found).cast("B").toreadonly()[:size]

    def _at(self, entry: Fields, offset: int, size: int) -> memoryview:
        start = self.span[0] + offset
        if start + size > self.span[1]:
            raise entry.fail(f"{size} bytes at {offset} are not among the constants")
        self.read.append((start, start + size))
        return self.payload[start : start + size]

    def constant(
        self, owner: Fields, at: int, dtype: str, shape: tuple[int, ...], facts: dict[str, Attribute]
    ) -> Constant | None:
        """Return entry `at` as a constant; None if it is not at hand."""
        codec = DTYPES.get(dtype)
        if codec is None:
            raise owner.fail(f"a value of type {dtype} cannot be a constant")
        if at >= len(self.entries):
            raise owner.fail(f"refers to constant {at} of {len(self.entries)}")
        self.used.add(at)
        stored, key = self.entries[at]
        if stored is None:
            facts["constant_data.missing"] = key or None
            return None
        if codec.bits < 8 and shape and shape[-1] % 2:
            # Rows are filled up to whole bytes (convert_to_qc4w in node_visitor.py).
            shape = (*shape[:-1], shape[-1] + 1)
        constant, surplus = owner.constant(dtype, shape, stored, codec)
        if surplus:
            facts["data_beyond_shape"] = bytes(surplus)
        return constant

    def unused(self) -> Iterator[tuple[str, Constant]]:
        """Yield the entries that no value refers to; their type is unknown."""
        for at, (data, _) in enumerate(self.entries):
            if at not in self.used and data:
                yield f"constant_data[{at}]", opaque(data)


def decode_xnnpack(
    payload: memoryview, schema: Schema, named_data: Mapping[str, bytes | memoryview]
) -> Decoded:
    """Decode an XNNPACK payload.

    Parameters
    ----------
    named_data
        Constants that are kept outside the payload, by key.

    Raises
    ------
    DecodeError
        If the bytes are not an XNNPACK header and FlatBuffer of this schema.
    """
    (start, stop), span = _header(payload)
    buffer = read_flatbuffer(schema, payload, start, stop)
    root = Fields(buffer.root, buffer.root.type)
    facts: dict[str, Attribute] = {
        "flatbuffer_offset": start,
        "flatbuffer_size": stop - start,
        "constant_data_offset": span[0],
        "constant_data_size": span[1] - span[0],
    }
    data = _ConstantData(payload, span, named_data)
    for at, entry in enumerate(root.tables("constant_data")):
        facts |= {f"constant_data[{at}].{name}": value for name, value in data.add(entry).items()}
    graph = _graph(root, data)
    return Decoded(
        kind="xnnpack",
        size=len(payload),
        facts=facts,
        graphs=(graph,),
        tree=buffer.root,
        blobs=dict(data.unused()),
        unread=buffer.unread_with([(0, _HEADER.size), (start, stop), *data.read], payload),
    )


def _header(payload: memoryview) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return where the FlatBuffer is, and where the constants are."""
    path = "XNNHeader"
    if len(payload) < _HEADER.size:
        raise DecodeError(path, 0, f"the header takes {_HEADER.size} bytes, {len(payload)} are there")
    zeros, _magic, length, fb_offset, fb_size, data_offset, data_size = _HEADER.unpack_from(payload)
    if any(zeros):
        raise DecodeError(path, 0, f"four zeros expected, {zeros.hex()} found")
    if length != _HEADER.size:
        raise DecodeError(path, 8, f"a header of {_HEADER.size} bytes expected, it says {length}")
    if fb_offset < _HEADER.size:
        raise DecodeError(path, 10, f"the FlatBuffer at {fb_offset} overlaps the header")
    if fb_offset + fb_size > len(payload):
        what = f"the FlatBuffer's {fb_size} bytes at {fb_offset} are not in the payload's {len(payload)}"
        raise DecodeError(path, 14, what)
    if data_offset < fb_offset + fb_size:
        raise DecodeError(path, 18, f"the constants at {data_offset} overlap the FlatBuffer")
    # Without constants the offset may follow the payload's end: the padding before it is left out then.
    if data_size and data_offset + data_size > len(payload):
        what = f"the constants' {data_size} bytes at {data_offset} are not in the payload's {len(payload)}"
        raise DecodeError(path, 22, what)
    return (fb_offset, fb_offset + fb_size), (data_offset, data_offset + data_size)


def _graph(root: Fields, data: _ConstantData) -> Graph:
    values: dict[str, Value] = {}
    for entry in root.tables("xvalues"):
        value = _value(entry, data)
        if value.name in values:
            raise entry.fail(f"two values have the id {value.name}")
        values[value.name] = value
    return Graph(
        name="XNNGraph",
        inputs=tuple(f"%{number}" for number in root.integers("input_ids") or ()),
        outputs=tuple(f"%{number}" for number in root.integers("output_ids") or ()),
        values=values,
        operators=tuple(map(_operator, root.tables("xnodes"))),
        attributes={name: value for name, value in root.rest().items() if value is not None},
    )


def _value(entry: Fields, data: _ConstantData) -> Value:
    attributes: dict[str, Attribute] = {}
    entry.text("xvalue_union_type")
    tensor = entry.table("xvalue_union")
    if tensor is not None and tensor.type != "XNNTensorValue":
        quantized = tensor
        tensor = quantized.table("tensor_value")
        attributes |= _quantization(quantized, data)
        attributes |= quantized.rest()
    if tensor is None:
        raise entry.fail("holds no tensor")
    dtype = tensor.name("datatype").removeprefix(DTYPE_PREFIX)
    if dtype not in DTYPES and dtype not in COMPUTED:
        raise tensor.fail(f"is of type {dtype}, which this decoder does not know")
    shape = tensor.integers("dims")
    name = f"%{tensor.number('id_out')}"
    rank = tensor.number("num_dims")
    if rank != len(shape or ()):
        attributes["num_dims"] = rank
    external = tensor.number("external_id")
    at = tensor.number("constant_buffer_idx")
    facts: dict[str, Attribute] = {"external_id": None if external == NO_VALUE else external}
    facts |= {"flags": tensor.number("flags")} | tensor.rest() | entry.rest()
    constant = None
    if at:
        facts["constant_data"] = at
        constant = data.constant(tensor, at, dtype, shape or (), facts)
    return Value(name, dtype, shape, facts | attributes, constant)


def _quantization(quantized: Fields, data: _ConstantData) -> dict[str, Attribute]:
    kind = quantized.text("quant_params_type")
    parameters = quantized.table("quant_params")
    attributes: dict[str, Attribute] = {"quantization": kind}
    if parameters is None:
        return attributes
    stored = parameters.rest()
    at, count = stored.get("scale_buffer_idx"), stored.get("num_scales")
    if kind in SCALE_BUFFERS and isinstance(at, int) and isinstance(count, int) and at:
        scales = data.constant(parameters, at, SCALE_BUFFERS[kind], (count,), stored)
        if scales is not None:
            stored["scale_buffer"] = scales
    return attributes | {f"quantization.{name}": value for name, value in stored.items()}


def _operator(node: Fields) -> Operator:
    type_ = node.text("xnode_union_type")
    body = node.table("xnode_union")
    if type_ is None or body is None:
        raise node.fail("holds no operator")
    inputs: dict[str, str | None] = {}
    outputs: dict[str, str | None] = {}
    attributes: dict[str, Attribute] = {}
    for name, value in body.rest().items():
        if not name.endswith("_id"):
            attributes[name] = value
            continue
        edges = outputs if name.startswith("output") else inputs
        edges[name.removesuffix("_id")] = None if value == NO_VALUE else f"%{value!r}"
    attributes |= node.rest()
    return Operator(
        type=type_,
        inputs=tuple(inputs.values()),
        outputs=tuple(outputs.values()),
        attributes=attributes,
        input_roles=tuple(inputs),
        output_roles=tuple(outputs),
    )

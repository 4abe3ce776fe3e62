"""TOSA payloads: a FlatBuffer of regions of blocks of operators.

Source of the format: ``tosa.fbs`` of tosa-tools (TOSA 1.0 and 1.1). Which fields an operator's attributes
have is read from there; only what a field *means* for edges, tensors and constants is written down here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from executorch_goldens.decode.constant import CODECS, Codec, Constant
from executorch_goldens.decode.decoded import Attribute, Decoded, Graph, Operator, Value
from executorch_goldens.decode.flatbuffer import read_flatbuffer
from executorch_goldens.decode.schema import Schema
from executorch_goldens.decode.tables import Fields

#: TOSA 1.1, section 1.9 (data types) and ``DType`` of tosa.fbs, to how its numbers are stored by tosa-tools'
#: serializer.
DTYPES: Mapping[str, Codec] = {
    "BOOL": CODECS["bool"],
    "INT4": CODECS["i4"],
    "INT8": CODECS["i8"],
    "INT16": CODECS["i16"],
    "INT32": CODECS["i32"],
    "INT48": CODECS["i48"],
    "INT64": CODECS["i64"],
    "SHAPE": CODECS["i64"],
    "FP16": CODECS["f16"],
    "BF16": CODECS["bf16"],
    "FP32": CODECS["f32"],
    "FP8E4M3": CODECS["f8e4m3fn"],
    "FP8E5M2": CODECS["f8e5m2"],
    "FP8UE8M0": CODECS["e8m0"],
    "FP6E2M3": CODECS["f6e2m3"],
    "FP6E3M2": CODECS["f6e3m2"],
    "FP4E2M1": CODECS["f4e2m1"],
    "MXINT8": CODECS["mxi8"],
}


#: Attributes stored as the bytes of one number of the operator's input type (TOSA 1.1, section 2.3.1, CLAMP).
NUMBERS_OF_INPUT_TYPE = {"CLAMP": ("min_val", "max_val")}


def decode_tosa(payload: memoryview, schema: Schema) -> Decoded:
    """Decode a TOSA payload.

    Raises
    ------
    DecodeError
        If the bytes are not a TOSA FlatBuffer of this schema, or name a data type that `DTYPES` lacks.
    """
    buffer = read_flatbuffer(schema, payload)
    fields = Fields(buffer.root, buffer.root.type)
    facts: dict[str, Attribute] = {}
    for name in ("version", "software_version"):
        version = fields.table(name)
        if version is not None:
            facts |= {f"{name}.{part.strip('_')}": value for part, value in version.rest().items()}
    graphs = [graph for region in fields.tables("regions") for graph in _region(region, payload)]
    facts |= fields.rest()
    return Decoded(
        kind="tosa",
        size=len(payload),
        facts=facts,
        graphs=tuple(graphs),
        tree=buffer.root,
        unread=buffer.unread,
    )


def _region(region: Fields, payload: memoryview) -> Iterator[Graph]:
    name = region.text("name")
    for block in region.tables("blocks"):
        yield _block(block, name, payload)
    left = region.rest()
    if left:
        raise region.fail(f"holds {', '.join(left)}, which this decoder does not know")


def _block(block: Fields, region: str | None, payload: memoryview) -> Graph:
    name = block.text("name")
    values: dict[str, Value] = {}
    for entry in (*map(_tensor, block.tables("tensors")), *map(_shape, block.tables("shapes"))):
        if entry.name in values:
            raise block.fail(f"two values are called {entry.name!r}")
        values[entry.name] = entry
    return Graph(
        name=f"{region}/{name}",
        inputs=block.texts("inputs"),
        outputs=block.texts("outputs"),
        values=values,
        operators=tuple(_operator(operator, values) for operator in block.tables("operators")),
        attributes=block.rest(),
    )


def _tensor(tensor: Fields) -> Value:
    name = tensor.name("name")
    dtype = tensor.name("type")
    shape = tensor.integers("shape")
    constant, surplus = _constant(tensor, dtype, shape or ())
    return Value(name, dtype, shape, tensor.set_apart() | surplus, constant)


def _shape(shape: Fields) -> Value:
    name = shape.name("name")
    rank = shape.number("rank")
    constant, surplus = _constant(shape, "SHAPE", (rank,))
    return Value(name, "SHAPE", (rank,), shape.set_apart() | surplus, constant)


def _constant(
    owner: Fields, dtype: str, shape: tuple[int, ...]
) -> tuple[Constant | None, dict[str, Attribute]]:
    """Return the data of a tensor or shape, if it has any, and the bytes after them."""
    data = owner.octets("data")
    codec = DTYPES.get(dtype)
    if codec is None and dtype != "UNKNOWN":
        raise owner.fail(f"is of type {dtype}, which this decoder does not know")
    # The serializer writes an empty vector for tensors that are no constants. A constant may be empty too.
    if data is None or (not data and 0 not in shape):
        return None, {}
    if codec is None:
        raise owner.fail("holds data of unknown type")
    constant, surplus = owner.constant(dtype, shape, data, codec)
    return constant, {"data_beyond_shape": bytes(surplus)} if surplus else {}


def _operator(operator: Fields, values: Mapping[str, Value]) -> Operator:
    op = operator.name("op")
    inputs = operator.texts("inputs")
    outputs = operator.texts("outputs")
    stored_type = operator.text("attribute_type")
    stored = operator.table("attribute")
    attributes: dict[str, Attribute] = {}
    if stored_type is None or stored_type.removesuffix("Attribute").lower() != op.replace("_", "").lower():
        attributes["attribute_type"] = stored_type
    if stored is not None:
        attributes |= stored.rest()
    attributes |= operator.set_apart()
    for name in NUMBERS_OF_INPUT_TYPE.get(op, ()):
        attributes[name] = _number(attributes.get(name), values.get(inputs[0]) if inputs else None)
    return Operator(op, inputs, outputs, attributes)


def _number(stored: Attribute, operand: Value | None) -> Attribute:
    """Return stored bytes as a number of the operand's type, or as they are where they cannot be one."""
    codec = DTYPES.get(operand.dtype) if operand else None
    if codec is None or operand is None or not isinstance(stored, bytes) or len(stored) * 8 != codec.bits:
        return stored
    return Constant(operand.dtype, (), stored, codec)

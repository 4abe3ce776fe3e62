"""``.pte`` programs: a FlatBuffer with an extended header in it, and segments after it.

Sources of the format: ``schema/program.fbs``, ``schema/scalar_type.fbs`` and ``exir/_serialize/_program.py``
of ExecuTorch (1.1.0 to 1.5.1).
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from executorch_goldens.decode.constant import CODECS, Codec, Constant, opaque
from executorch_goldens.decode.decoded import Attribute, Decoded, Delegated, Graph, Operator, Value
from executorch_goldens.decode.errors import DecodeError
from executorch_goldens.decode.flatbuffer import read_flatbuffer
from executorch_goldens.decode.schema import Schema
from executorch_goldens.decode.tables import Fields

#: The extended header follows the root offset and the identifier.
HEADER_OFFSET = 8
#: Magic, size of the header, size of the program, offset of the segments.
_HEADER = struct.Struct("<4sIQQ")
_HEADER_MAGIC = b"eh00"
#: Size of all segments; absent from short headers.
_SEGMENT_SIZE = struct.Struct("<Q")

#: Encodings of tensors by ``ScalarType``.
DTYPES: Mapping[str, Codec] = {
    "BYTE": CODECS["u8"],
    "CHAR": CODECS["i8"],
    "SHORT": CODECS["i16"],
    "INT": CODECS["i32"],
    "LONG": CODECS["i64"],
    "HALF": CODECS["f16"],
    "FLOAT": CODECS["f32"],
    "DOUBLE": CODECS["f64"],
    "BOOL": CODECS["bool"],
    "QINT8": CODECS["i8"],
    "QUINT8": CODECS["u8"],
    "QINT32": CODECS["i32"],
    "BFLOAT16": CODECS["bf16"],
    "QUINT4X2": CODECS["u8"],
    "QUINT2X4": CODECS["u8"],
    "COMPLEXHALF": CODECS["c32"],
    "COMPLEXFLOAT": CODECS["c64"],
    "COMPLEXDOUBLE": CODECS["c128"],
    **dict.fromkeys(("BITS1X8", "BITS2X4", "BITS4X2", "BITS8"), CODECS["u8"]),
    "BITS16": CODECS["u16"],
    "FLOAT8E5M2": CODECS["f8e5m2"],
    "FLOAT8E4M3FN": CODECS["f8e4m3fn"],
    "FLOAT8E5M2FNUZ": CODECS["f8e5m2fnuz"],
    "FLOAT8E4M3FNUZ": CODECS["f8e4m3fnuz"],
    "UINT16": CODECS["u16"],
    "UINT32": CODECS["u32"],
    "UINT64": CODECS["u64"],
}

#: Decodes a delegate's payload, given the program's named data; None for a backend that is not known.
DecodeDelegate = Callable[[memoryview, Mapping[str, bytes | memoryview]], Decoded | None]


@dataclass
class _Program:
    """A program's bytes, by their references, and a record of those read.

    Attributes
    ----------
    segments
        (start, stop) in the payload.
    constants, mutable
        The number of a segment, and the offsets in it.
    delegates
        Decoded payloads by the number and the start of their data: several delegates may share one.
    read
        (start, stop) of everything decoded outside the FlatBuffer.
    """

    payload: memoryview
    decode_delegate: DecodeDelegate
    segments: list[tuple[int, int]] = field(default_factory=list)
    constants: tuple[int, tuple[int, ...]] = (0, ())
    mutable: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    inline_constants: list[memoryview] = field(default_factory=list)
    inline_delegates: list[memoryview] = field(default_factory=list)
    named: dict[str, memoryview] = field(default_factory=dict)
    delegates: dict[tuple[int, int], Decoded | None] = field(default_factory=dict)
    read: list[tuple[int, int]] = field(default_factory=list)

    def segment(self, at: int, owner: Fields) -> memoryview:
        """Return a whole segment, and count it as read."""
        data, _ = self.part(at, 0, owner)
        self.read.append(self.segments[at])
        return data

    def part(self, at: int, offset: int, owner: Fields) -> tuple[memoryview, int]:
        """Return the rest of a segment from an offset on, not counted as read, and its offset."""
        if at >= len(self.segments):
            raise owner.fail(f"refers to segment {at} of {len(self.segments)}")
        start, stop = self.segments[at]
        if start + offset > stop:
            raise owner.fail(f"refers to byte {offset} of segment {at}, which has {stop - start}")
        return self.payload[start + offset : stop], start + offset


def decode_pte(payload: memoryview, schema: Schema, decode_delegate: DecodeDelegate) -> Decoded:
    """Decode a ``.pte`` and the delegates in it.

    Raises
    ------
    DecodeError
        If the bytes are not a program of this schema, or a delegate's payload is not what it says it is.
    """
    facts, apart, size, base = _header(payload)
    buffer = read_flatbuffer(schema, payload, 0, size, apart)
    program = _Program(payload, decode_delegate)
    root = Fields(buffer.root, buffer.root.type)
    facts |= {"version": root.number("version")}
    facts |= _segments(root, program, base)
    graphs = []
    delegates: list[Delegated] = []
    for plan in root.tables("execution_plan"):
        name = plan.text("name") or ""
        stubs = list(plan.tables("delegates"))
        ids = [stub.text("id") or "" for stub in stubs]
        for at, stub in enumerate(stubs):
            delegates.append(_delegate(f"{name}/{at}", ids[at], stub, program))
        graphs.append(_plan(name, plan, ids, program))
    facts |= root.rest()
    return Decoded(
        kind="pte",
        size=len(payload),
        facts=facts,
        graphs=tuple(graphs),
        tree=buffer.root,
        blobs={f"named_data {key}": opaque(data) for key, data in program.named.items()},
        delegates=tuple(delegates),
        unread=buffer.unread_with([(0, size), *program.read], payload),
    )


def _header(payload: memoryview) -> tuple[dict[str, Attribute], tuple[int, int], int, int]:
    """Return the header's facts, where it is, the program's size, and the segments' offset."""
    path = "ExtendedHeader"
    size = len(payload)
    if bytes(payload[HEADER_OFFSET : HEADER_OFFSET + 4]) != _HEADER_MAGIC:
        return {"header": None}, (0, 0), size, size
    end = HEADER_OFFSET + _HEADER.size
    if size < end:
        raise DecodeError(path, HEADER_OFFSET, f"the header takes {_HEADER.size} bytes, {size - 8} are there")
    _magic, length, program_size, base = _HEADER.unpack_from(payload, HEADER_OFFSET)
    facts: dict[str, Attribute] = {
        "header.length": length,
        "header.program_size": program_size,
        "header.segment_base_offset": base,
    }
    segments_size = 0
    if length >= _HEADER.size + _SEGMENT_SIZE.size and size >= end + _SEGMENT_SIZE.size:
        segments_size = _SEGMENT_SIZE.unpack_from(payload, end)[0]
        facts["header.segment_data_size"] = segments_size
        end += _SEGMENT_SIZE.size
    if length != end - HEADER_OFFSET:
        raise DecodeError(path, HEADER_OFFSET + 4, f"a header of {length} bytes is not known here")
    if program_size > size or program_size < end:
        raise DecodeError(path, HEADER_OFFSET + 8, f"a program of {program_size} bytes in {size}")
    if base and (base < program_size or base > size):
        raise DecodeError(
            path, HEADER_OFFSET + 16, f"segments at {base}: inside the program or past the end at {size}"
        )
    if segments_size > size - base:
        raise DecodeError(path, end - 8, f"segments of {segments_size} bytes at {base} in {size}")
    return facts, (HEADER_OFFSET, end), program_size, base or size


def _segments(root: Fields, program: _Program, base: int) -> dict[str, Attribute]:
    """Locate everything outside the FlatBuffer; return it as facts."""
    facts: dict[str, Attribute] = {}
    program.segments += located(root, base, program.payload, facts)
    constants = root.table("constant_segment")
    if constants is not None:
        program.constants = _subsegments(constants)
        segment, offsets = program.constants
        facts |= {"constant_segment.segment_index": segment, "constant_segment.offsets": offsets}
        facts |= constants.rest("constant_segment.")
    program.mutable += map(_subsegments, root.tables("mutable_data_segments", facts))
    for named in root.tables("named_data", facts):
        key = named.text("key") or ""
        if key in program.named:
            raise named.fail(f"two named data have the key {key!r}")
        program.named[key] = program.segment(named.number("segment_index"), named)
    for constant in root.tables("constant_buffer", facts, without="storage"):
        program.inline_constants.append(constant.octets("storage") or memoryview(b""))
    for inline in root.tables("backend_delegate_data", facts, without="data"):
        program.inline_delegates.append(inline.octets("data") or memoryview(b""))
    return facts


def _subsegments(table: Fields) -> tuple[int, tuple[int, ...]]:
    """Return the number of a segment and the offsets in it."""
    return table.number("segment_index"), table.integers("offsets") or ()


def located(
    root: Fields, base: int, payload: memoryview, facts: dict[str, Attribute]
) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of each segment of a payload, whose segments begin at `base`; add them to the facts."""
    for segment in root.tables("segments", facts):
        offset, size = segment.number("offset"), segment.number("size")
        if base + offset + size > len(payload):
            raise segment.fail(f"{size} bytes at {base} + {offset} are not in the payload")
        yield base + offset, base + offset + size


def _delegate(name: str, backend: str, stub: Fields, program: _Program) -> Delegated:
    attributes: dict[str, Attribute] = {}
    stub.tables("compile_specs", attributes)
    processed = stub.table("processed")
    if processed is None:
        raise stub.fail("has no payload")
    location, index = processed.name("location"), processed.number("index")
    attributes |= {"processed.location": location, "processed.index": index}
    attributes |= processed.rest("processed.") | stub.rest()
    if location == "SEGMENT":
        payload = program.segment(index, processed)
        start = program.segments[index][0]
    elif index < len(program.inline_delegates):
        payload = program.inline_delegates[index]
        start = 0
    else:
        raise processed.fail(f"refers to inline data {index} of {len(program.inline_delegates)}")
    key = (index, start)
    if key not in program.delegates:
        try:
            program.delegates[key] = program.decode_delegate(payload, program.named)
        except DecodeError as error:
            raise error.inside(f"delegate {name}: ", start) from None
    attributes["size"] = len(payload)
    decoded = program.delegates[key]
    if decoded is None:
        attributes["payload"] = opaque(payload)
    return Delegated(name, backend, attributes, payload, decoded)


def _plan(name: str, plan: Fields, delegates: list[str], program: _Program) -> Graph:
    values = {value.name: value for value in _values(plan, program)}
    kernels = []
    attributes: dict[str, Attribute] = {}
    for at, kernel in enumerate(plan.tables("operators")):
        kernels.append(f"{kernel.text('name')}.{kernel.text('overload')}".removesuffix("."))
        attributes[f"operators[{at}]"] = kernels[-1]
        attributes |= kernel.rest(f"operators[{at}].")
    chains = list(plan.tables("chains", attributes, without="instructions"))
    operators: list[Operator] = []
    for at, chain in enumerate(chains):
        for instruction in chain.tables("instructions"):
            within: dict[str, Attribute] = {"chain": at} if len(chains) > 1 else {}
            operators.append(_instruction(instruction, kernels, delegates, within))
    inputs, outputs = plan.integers("inputs") or (), plan.integers("outputs") or ()
    return Graph(
        name=name,
        inputs=tuple(f"%{index}" for index in inputs),
        outputs=tuple(f"%{index}" for index in outputs),
        values=values,
        operators=tuple(operators),
        attributes={name: value for name, value in (plan.rest() | attributes).items() if value is not None},
    )


def _instruction(
    instruction: Fields, kernels: list[str], delegates: list[str], attributes: dict[str, Attribute]
) -> Operator:
    kind = instruction.text("instr_args_type")
    call = instruction.table("instr_args")
    if kind is None or call is None:
        raise instruction.fail("holds no instruction")
    inputs = tuple(f"%{index}" for index in call.integers("args") or ())
    roles = ("arg",) * len(inputs)
    type_ = kind
    if kind == "KernelCall":
        at = call.number("op_index")
        if not 0 <= at < len(kernels):
            raise call.fail(f"calls operator {at} of {len(kernels)}")
        type_ = kernels[at]
        if kernels.count(type_) > 1:
            attributes["op_index"] = at
    elif kind == "DelegateCall":
        at = call.number("delegate_index")
        if not 0 <= at < len(delegates):
            raise call.fail(f"calls delegate {at} of {len(delegates)}")
        attributes |= {"delegate_index": at, "delegate": delegates[at]}
    elif kind not in ("MoveCall", "JumpFalseCall", "FreeCall"):
        raise instruction.fail(f"holds a {kind}, which this decoder does not know")
    return Operator(type_, inputs, (), call.rest() | attributes | instruction.rest(), roles)


def _values(plan: Fields, program: _Program) -> Iterator[Value]:
    for at, entry in enumerate(plan.tables("values")):
        kind = entry.text("val_type") or "None"
        content = entry.table("val")
        if content is None:
            yield Value(f"%{at}", kind, None, entry.rest())
        elif kind == "Tensor":
            tensor = _tensor(f"%{at}", content, program)
            yield dataclasses.replace(tensor, attributes={**tensor.attributes, **entry.rest()})
        else:
            yield Value(f"%{at}", kind, None, content.rest() | entry.rest())


def _tensor(name: str, tensor: Fields, program: _Program) -> Value:
    dtype, shape, order = _described(tensor)
    attributes: dict[str, Attribute] = {"dim_order": order}
    dynamism = tensor.text("shape_dynamism")
    if dynamism != "STATIC":
        attributes["shape_dynamism"] = dynamism
    place = tensor.table("allocation_info")
    if place is not None:
        attributes["memory_id"] = place.number("memory_id")
        low, high = place.number("memory_offset_low"), place.number("memory_offset_high")
        attributes["memory_offset"] = high << 32 | low
        attributes |= place.rest("allocation_info.")
    extra = tensor.table("extra_tensor_info")
    location = extra.text("location") if extra is not None else None
    subsegment = extra.number("mutable_data_segments_idx") if extra is not None else 0
    if extra is not None:
        attributes |= {"location": location, "mutable_data_segments_idx": subsegment}
        attributes |= extra.rest("extra_tensor_info.")
    at = tensor.number("data_buffer_idx")
    constant = None
    if at:
        attributes["data_buffer_idx"] = at
        if location != "EXTERNAL":
            data, start = _data(at, subsegment if place is not None else None, tensor, program)
            stored = _as_stored(tensor, shape or (), order)
            constant, _behind = tensor.constant(dtype, stored, data, DTYPES[dtype])
            program.read.append((start, start + len(constant.data)))
    return Value(name, dtype, shape, attributes | tensor.set_apart(), constant)


def _data(at: int, mutable: int | None, owner: Fields, program: _Program) -> tuple[memoryview, int]:
    """Return the bytes from the beginning of constant or initial state `at` onwards, and their offset."""
    if mutable is None and program.inline_constants:
        if at >= len(program.inline_constants):
            raise owner.fail(f"refers to constant {at} of {len(program.inline_constants)}")
        return program.inline_constants[at], 0
    if mutable is not None and mutable >= len(program.mutable):
        raise owner.fail(f"refers to mutable segment {mutable} of {len(program.mutable)}")
    segment, offsets = program.constants if mutable is None else program.mutable[mutable]
    if at >= len(offsets):
        raise owner.fail(f"refers to constant {at} of {len(offsets)}")
    return program.part(segment, offsets[at], owner)


def _as_stored(owner: Fields, shape: tuple[int, ...], order: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the dimensions in the order in which they are stored."""
    if order is None or len(shape) < 2:
        return shape
    if sorted(order) != list(range(len(shape))):
        raise owner.fail(f"dim_order {list(order)} is no order of {len(shape)} dimensions")
    return tuple(shape[at] for at in order)


def _described(tensor: Fields) -> tuple[str, tuple[int, ...] | None, tuple[int, ...] | None]:
    """Return the dtype, the sizes and the order of a tensor, which are fields of a table."""
    dtype = tensor.name("scalar_type")
    if dtype not in DTYPES:
        raise tensor.fail(f"is of type {dtype}, which this decoder does not know")
    return dtype, tensor.integers("sizes"), tensor.integers("dim_order")


def stored_tensor(owner: Fields, data: memoryview) -> tuple[Constant, dict[str, Attribute], memoryview]:
    """Return a tensor whose dtype, sizes and order are fields of a table, these two, and the bytes after it."""
    dtype, sizes, order = _described(owner)
    constant, after = owner.constant(dtype, _as_stored(owner, sizes or (), order), data, DTYPES[dtype])
    return constant, {"sizes": sizes, "dim_order": order}, after

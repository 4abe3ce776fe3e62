"""Flat tensors (``.ptd``): tensors that a program keeps in a file of their own.

Source of the format: ``flat_tensor.fbs`` and ``flat_tensor_header.h`` in ``extension/flat_tensor/serialize`` of
ExecuTorch 1.4.1.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

from executorch_goldens.decode import Decoded, DecodeError, Format, SchemaError, Schemas
from executorch_goldens.decode.constant import opaque
from executorch_goldens.decode.flatbuffer import read_flatbuffer
from executorch_goldens.decode.schema import load
from executorch_goldens.decode.tables import Fields

SCHEMA = Path("executorch/extension/flat_tensor/serialize/flat_tensor.fbs")
#: At byte 8: magic, length, offset and size of the FlatBuffer, offset and size of the segments.
HEADER_OFFSET, HEADER = 8, struct.Struct("<4sIQQQQ")


def decode(payload: memoryview, schemas: Schemas, named_data: Mapping[str, bytes | memoryview]) -> Decoded:
    """Decode a flat tensor file: a fact for each name, a blob for its bytes."""
    if len(payload) < HEADER_OFFSET + HEADER.size:
        raise DecodeError("FlatTensorHeader", HEADER_OFFSET, f"{HEADER.size} bytes expected")
    magic, _length, start, size, base, _segments_size = HEADER.unpack_from(payload, HEADER_OFFSET)
    if magic != b"FH01":
        raise DecodeError("FlatTensorHeader", HEADER_OFFSET, f"b'FH01' expected, {magic!r} found")
    schema = next((place / SCHEMA for place in schemas.places if (place / SCHEMA).is_file()), None)
    if schema is None:
        raise SchemaError("flat_tensor", f"{SCHEMA} not found; name a release's site-packages by --schemas")
    apart = (HEADER_OFFSET, HEADER_OFFSET + HEADER.size)
    buffer = read_flatbuffer(load(schema), payload, 0, start + size, apart)
    root = Fields(buffer.root, buffer.root.type)
    segments = [(each.number("offset"), each.number("size")) for each in root.tables("segments")]
    blobs = {}
    for named in root.tables("named_data"):
        offset, length = segments[named.number("segment_index")]
        if base + offset + length > len(payload):
            raise named.fail(f"{length} bytes at {base + offset} are not in the payload")
        blobs[f"tensor {named.name('key')}"] = opaque(payload[base + offset : base + offset + length])
    facts = {"version": root.number("version"), "tensors": len(blobs)}
    return Decoded("flat-tensor", len(payload), facts, (), buffer.root, blobs, unread=buffer.unread)


FORMAT = Format("flat-tensor", b"FT01", "executorch", decode)

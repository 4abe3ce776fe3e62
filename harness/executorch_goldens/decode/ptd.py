"""Data files of a program (``.ptd``): a FlatBuffer that names pieces of data, a header in it, and the data after it.

Sources of the format: ``extension/flat_tensor/serialize`` of ExecuTorch (the same in 1.1.0 to 1.5.1).
"""

from __future__ import annotations

import struct

from executorch_goldens.decode.constant import Constant, opaque
from executorch_goldens.decode.decoded import Attribute, Decoded
from executorch_goldens.decode.errors import DecodeError
from executorch_goldens.decode.flatbuffer import read_flatbuffer
from executorch_goldens.decode.pte import located, stored_tensor
from executorch_goldens.decode.schema import Schema
from executorch_goldens.decode.tables import Fields

#: The header follows the root offset and the identifier.
HEADER_OFFSET = 8
#: Magic, size of the header, offset and size of the FlatBuffer, offset and size of the data.
_HEADER = struct.Struct("<4sIQQQQ")
_MAGIC = b"FH01"


def decode_ptd(payload: memoryview, schema: Schema) -> Decoded:
    """Decode a data file: every piece of data by its key, as a tensor where the file says its layout.

    Raises
    ------
    DecodeError
        If the bytes are not a data file of this schema.
    """
    inserted, size, base, data_size = _header(payload)
    apart = (HEADER_OFFSET, HEADER_OFFSET + inserted)
    buffer = read_flatbuffer(schema, payload, 0, size, apart)
    root = Fields(buffer.root, buffer.root.type)
    facts: dict[str, Attribute] = {"version": root.number("version"), "segment_data_size": data_size}
    segments = list(located(root, base, payload, facts))
    blobs: dict[str, Constant] = {}
    for at, named in enumerate(root.tables("named_data")):
        key, index = named.text("key") or "", named.number("segment_index")
        if key in blobs:
            raise named.fail(f"two pieces of data have the key {key!r}")
        if index >= len(segments):
            raise named.fail(f"refers to segment {index} of {len(segments)}")
        blobs[key] = _tensor(named, payload[slice(*segments[index])], facts, f"named_data[{at}].")
        facts |= {f"named_data[{at}].key": key, f"named_data[{at}].segment_index": index}
        facts |= named.rest(f"named_data[{at}].")
    return Decoded(
        kind="ptd",
        size=len(payload),
        facts=facts | root.rest(),
        graphs=(),
        tree=buffer.root,
        blobs=blobs,
        unread=buffer.unread_with([(0, size), *segments], payload),
    )


def _header(payload: memoryview) -> tuple[int, int, int, int]:
    """Return the bytes that the header takes, where the FlatBuffer ends, and the data's offset and size."""
    end, size = HEADER_OFFSET + _HEADER.size, len(payload)
    if size < end:
        raise DecodeError(
            "FlatTensorHeader", HEADER_OFFSET, f"the header takes {end} bytes, {size} are there"
        )
    magic, length, inserted, taken, base, data_size = _HEADER.unpack_from(payload, HEADER_OFFSET)
    if magic != _MAGIC:
        raise DecodeError("FlatTensorHeader", HEADER_OFFSET, f"{_MAGIC!r} expected, {magic!r} found")
    if length != _HEADER.size:
        raise DecodeError(
            "FlatTensorHeader", HEADER_OFFSET + 4, f"a header of {length} bytes is not known here"
        )
    if inserted < _HEADER.size or inserted + taken > size:
        raise DecodeError("FlatTensorHeader", HEADER_OFFSET + 8, f"{taken} bytes after {inserted} in {size}")
    if base < inserted + taken or base + data_size > size:
        raise DecodeError("FlatTensorHeader", HEADER_OFFSET + 24, f"{data_size} bytes at {base} in {size}")
    return inserted, inserted + taken, base, data_size


def _tensor(named: Fields, data: memoryview, facts: dict[str, Attribute], prefix: str) -> Constant:
    """Return a piece of data as the tensor that its layout says it is; bytes where there is none."""
    layout = named.table("tensor_layout")
    if layout is None:
        return opaque(data)
    constant, described, after = stored_tensor(layout, data)
    if any(after):
        raise layout.fail(f"{len(after)} bytes are left after {constant.dtype}{list(constant.shape)}")
    facts |= {f"{prefix}{name}": value for name, value in described.items()}
    facts |= layout.rest(f"{prefix}tensor_layout.")
    return constant

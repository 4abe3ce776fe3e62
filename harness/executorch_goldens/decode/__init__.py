"""Payloads to text and arrays, completely and exactly: TOSA, XNNPACK, ``.pte``, and formats of installed packages.

>>> from executorch_goldens.decode import decode
>>> decoded = decode(payload)            # doctest: +SKIP
>>> decoded.kind                         # doctest: +SKIP
'tosa'
>>> print(decoded.text(), end="")        # doctest: +SKIP

Neither torch nor ExecuTorch is imported. The formats' schemas are read from the release that is installed, or
from where `schemas` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from executorch_goldens.decode.constant import Constant
from executorch_goldens.decode.decoded import Attribute, Decoded, Delegated, Graph, Operator, Value
from executorch_goldens.decode.errors import DecodeError, SchemaError
from executorch_goldens.decode.formats import Format, decode_any
from executorch_goldens.decode.schemas import Schemas

__all__ = [
    "Attribute",
    "Constant",
    "DecodeError",
    "Decoded",
    "Delegated",
    "Format",
    "Graph",
    "Operator",
    "SchemaError",
    "Schemas",
    "Value",
    "decode",
]


def decode(
    payload: bytes | memoryview,
    *,
    schemas: Schemas | Path | str | None = None,
    named_data: Mapping[str, bytes | memoryview] | None = None,
) -> Decoded:
    """Decode a payload of any known format (`executorch_goldens.decode.formats`), recognized by its bytes.

    Parameters
    ----------
    payload
        Constants are views into it: it is kept as long as they are.
    schemas
        Where the schemas are: a `Schemas`, or the ``site-packages`` of a release. By default those of the
        environment variable ``EXECUTORCH_GOLDENS_SCHEMAS`` and of the installed release.
    named_data
        Data that an XNNPACK payload refers to by key instead of holding it: the delegate's named data. A constant
        whose key is not here is described by its key and size.

    Raises
    ------
    DecodeError
        If the bytes are not what the schema says.
    SchemaError
        If the schema is not found.
    """
    if schemas is None:
        schemas = Schemas.default()
    elif not isinstance(schemas, Schemas):
        schemas = Schemas.under(schemas)
    return decode_any(memoryview(payload).cast("B").toreadonly(), schemas, named_data or {})

"""Bundled programs (``.bpte``): a program with inputs for its methods and their expected outputs.

Source of the format: ``devtools/bundled_program/schema`` of ExecuTorch (the same in 1.1.0 to 1.5.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from executorch_goldens.decode.constant import Constant
from executorch_goldens.decode.decoded import Attribute, Decoded
from executorch_goldens.decode.flatbuffer import read
from executorch_goldens.decode.pte import NOT_IN_SCHEMA, stored_tensor
from executorch_goldens.decode.schema import Schema
from executorch_goldens.decode.tables import Fields

#: Identifier of a bundled program at offset 4.
IDENTIFIER = b"BP08"


def decode_bundled(
    payload: memoryview, schema: Schema, decode_program: Callable[[memoryview], Decoded]
) -> Decoded:
    """Decode a bundled program: the program in it, with the tensors that it is to be tried on as constants.

    Raises
    ------
    DecodeError
        If the bytes are not a bundled program of this schema, or the program in it is none.
    """
    buffer = read(schema.extended("ScalarType", NOT_IN_SCHEMA), payload)
    root = Fields(buffer.root, buffer.root.type)
    facts: dict[str, Attribute] = {"bundle.version": root.number("version")}
    blobs: dict[str, Constant] = {}
    for suite in root.tables("method_test_suites"):
        method = suite.name("method_name")
        for number, case in enumerate(suite.tables("test_cases")):
            for what in ("inputs", "expected_outputs"):
                for at, value in enumerate(case.tables(what)):
                    _value(f"bundle {method}[{number}].{what}[{at}]", value, facts, blobs)
            facts |= case.rest(f"bundle {method}[{number}].")
        facts |= suite.rest(f"bundle {method}.")
    program = decode_program(root.octets("program") or memoryview(b""))
    return replace(
        program,
        kind="bundled",
        size=len(payload),
        facts={**facts, **root.rest(), **program.facts},
        blobs={**blobs, **program.blobs},
        unread=(*buffer.unread, *program.unread),
    )


def program_in(payload: bytes, schema: Schema) -> bytes:
    """Return the program in a bundled one; raise `DecodeError`."""
    root = read(schema.extended("ScalarType", NOT_IN_SCHEMA), memoryview(payload)).root
    return bytes(Fields(root, root.type).octets("program") or b"")


def _value(name: str, value: Fields, facts: dict[str, Attribute], blobs: dict[str, Constant]) -> None:
    kind, content = value.text("val_type"), value.table("val")
    if content is None or kind != "Tensor":
        given = content.rest() if content is not None else {}
        facts[name] = next(iter(given.values()), None)
        return
    blobs[name], _, _ = stored_tensor(content, content.octets("data") or memoryview(b""))

"""Payloads named on a command line: read and decoded, with errors that name the file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from executorch_goldens.decode import Decoded, DecodeError, SchemaError, Schemas, decode
from executorch_goldens.errors import CommandError
from executorch_goldens.toolchains.toolchain import chosen
from executorch_goldens.zoo import registry, targets

#: Standard input or output.
STANDARD = "-"


def add_schemas(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a different release's schemas."""
    parser.add_argument(
        "--schemas",
        metavar="DIR",
        help="site-packages of the release that made the payload, or a directory with tosa.fbs, xnnpack.fbs, "
        "program.fbs; by default the installed release's; without ExecuTorch, those of the default toolchain",
    )


def is_cell(word: str) -> bool:
    """Return whether a word is ``TARGET/CASE``, and neither a file nor in a folder.

    >>> is_cell("tosa-fp+cf/linear"), is_cell("folder/file.pte"), is_cell("tosa-fp")
    (True, False, False)
    """
    target, slash, case = word.partition("/")
    if not (slash and targets.NAME_PATTERN.fullmatch(target) and registry.NAME_PATTERN.fullmatch(case)):
        return False
    return not Path(target).is_dir()


def read_payload(name: str) -> bytes:
    """Return the bytes of a file or of standard input."""
    try:
        return sys.stdin.buffer.read() if name == STANDARD else Path(name).read_bytes()
    except FileNotFoundError as error:
        raise CommandError(f"{name} is missing: {error.strerror}") from error
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}") from error


def schemas_of(toolchain: str | None) -> str | None:
    """Return where the schemas of a toolchain are, by default the chosen one's, if this Python has none; else None."""
    return None if Schemas.default().places else str(chosen(toolchain).site_packages)


def _decoded(payload: bytes, schemas: str | None) -> Decoded:
    try:
        return decode(payload, schemas=Schemas.under(schemas) if schemas else None)
    except SchemaError:
        # An environment is made only for what is a payload.
        if schemas or (place := schemas_of(None)) is None:
            raise
        return decode(payload, schemas=Schemas.under(place))


def decode_named(payload: bytes, name: str, schemas: str | None) -> Decoded:
    """Decode a payload; errors name it."""
    if schemas is not None and not Path(schemas).is_dir():
        raise CommandError(f"--schemas {schemas} is not a directory")
    try:
        return _decoded(payload, schemas)
    except (DecodeError, SchemaError) as error:
        raise CommandError(f"{name} cannot be decoded: {error}") from error

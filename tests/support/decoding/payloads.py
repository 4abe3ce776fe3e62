"""The payloads and schemas that the tests of the decoder read."""

from __future__ import annotations

from pathlib import Path

from executorch_goldens.decode import Decoded, Schemas, decode
from tests import DATA

FIXTURES = DATA / "decode"
#: Those of the installed release: schemas are upstream's, and no copy of them is kept here.
SCHEMAS = Schemas.installed()
PAYLOADS = sorted(path for path in FIXTURES.rglob("*") if path.suffix in (".tosa", ".xnnpack", ".pte"))
#: One small payload of each kind.
SMALL = (
    FIXTURES / "1.5.1/tosa-int-0.tosa",
    FIXTURES / "1.5.1/xnnpack-int8-0.xnnpack",
    FIXTURES / "1.5.1/xnnpack-int4.pte",
)


def identify(path: Path) -> str:
    """Name a payload in a test's id."""
    return str(path.relative_to(FIXTURES))


def load(name: str) -> Decoded:
    """Decode a fixture by name."""
    return decode((FIXTURES / name).read_bytes(), schemas=SCHEMAS)

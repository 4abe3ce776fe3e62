"""Errors that decoding raises."""

from __future__ import annotations


class DecodeError(ValueError):
    """The bytes break their format.

    Attributes
    ----------
    path
        Where in the format, for instance ``TosaGraph.regions[0].blocks[0].operators[3].attribute``.
    offset
        Byte offset of the unexpected thing in the payload.
    what
        The expectation and the finding.
    """

    def __init__(self, path: str, offset: int, what: str) -> None:
        super().__init__(path, offset, what)
        self.path = path
        self.offset = offset
        self.what = what

    def __str__(self) -> str:
        return f"{self.path}: byte {self.offset} (0x{self.offset:x}): {self.what}"

    def inside(self, step: str, base: int = 0) -> DecodeError:
        """Return the same error seen from one level further out.

        Parameters
        ----------
        step
            The name of the enclosing field or index, for instance ``blocks`` or ``[3]``.
        base
            Offset of the enclosed bytes within the enclosing ones.
        """
        joint = "" if not self.path or self.path.startswith("[") or step.endswith(" ") else "."
        return DecodeError(f"{step}{joint}{self.path}", self.offset + base, self.what)


class SchemaError(LookupError):
    """A format's schema cannot be found or read; the payload itself may be fine.

    Attributes
    ----------
    schema
        The schema: ``tosa``, ``xnnpack`` or ``program``, or the path of its file.
    what
        The missing or unknown part, and the way out.
    """

    def __init__(self, schema: str, what: str) -> None:
        super().__init__(schema, what)
        self.schema = schema
        self.what = what

    def __str__(self) -> str:
        return f"schema {self.schema}: {self.what}"

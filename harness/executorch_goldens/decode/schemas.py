"""Finds the schemas: those of the installed release, or a folder given by an argument or the environment.

Nothing is imported from the releases' packages: their directories are looked up, and the ``.fbs`` files in
them are read. So a schema costs milliseconds, and a payload of one release can be decoded in the environment
of another, or in one without ExecuTorch.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.decode.errors import SchemaError
from executorch_goldens.decode.schema import Schema, load

#: Names a directory to look in before the installed release: a ``site-packages``, or one that simply holds
#: the files. It is for payloads in files; what the harness exported is decoded with its own release's schemas.
ENVIRONMENT_VARIABLE = "EXECUTORCH_GOLDENS_SCHEMAS"

#: Where each schema is, best first, relative to a ``site-packages``; then what it is called in a plain
#: directory. tosa-tools' own schema comes before the older one that ExecuTorch's Arm backend carries.
PLACES: dict[str, tuple[str, ...]] = {
    "tosa": (
        "bin/tosa.fbs",
        "executorch/backends/arm/tosa/schemas/tosa_1.1.fbs",
        "executorch/backends/arm/tosa/schemas/tosa_1.0.fbs",
        "tosa.fbs",
    ),
    "xnnpack": ("executorch/backends/xnnpack/serialization/schema.fbs", "xnnpack.fbs"),
    "program": ("executorch/schema/program.fbs", "executorch/exir/_serialize/program.fbs", "program.fbs"),
    "flat-tensor": ("executorch/extension/flat_tensor/serialize/flat_tensor.fbs", "flat_tensor.fbs"),
}
#: The package that brings each schema, to be found without importing it.
PACKAGES = {"tosa": "tosa_serializer", **dict.fromkeys(list(PLACES)[1:], "executorch")}
#: The user's name for the schema's owner.
OWNERS = {"tosa": "tosa-tools", **dict.fromkeys(list(PLACES)[1:], "executorch")}


@dataclass(frozen=True)
class Schemas:
    """The places schemas are looked for in, in order."""

    places: tuple[Path, ...]

    @classmethod
    def under(cls, *places: Path | str) -> Schemas:
        """Return the schemas under the given directories, and nowhere else."""
        return cls(tuple(Path(place) for place in places))

    @classmethod
    def installed(cls) -> Schemas:
        """Return those of the release that is installed for this interpreter."""
        found: list[Path] = []
        for package in dict.fromkeys(PACKAGES.values()):
            spec = importlib.util.find_spec(package)
            locations = spec.submodule_search_locations if spec else None
            found += [Path(location).parent for location in locations or ()]
        return cls(tuple(dict.fromkeys(found)))

    @classmethod
    def default(cls) -> Schemas:
        """Return those that `ENVIRONMENT_VARIABLE` names, if it is set, and then those of the installed release."""
        named = os.environ.get(ENVIRONMENT_VARIABLE)
        return cls((*([Path(named)] if named else []), *cls.installed().places))

    def load(self, name: str) -> Schema:
        """Return the schema of that name, one of `PLACES`.

        Raises
        ------
        SchemaError
            If no place has it.
        """
        return self.of_format(name, OWNERS[name], PLACES[name])

    def of_format(self, name: str, owner: str, files: Sequence[str]) -> Schema:
        """Return the schema of a format, which may be one that a distribution adds.

        Parameters
        ----------
        owner
            The user's name for the schema's owner: ``executorch``.
        files
            Where it is, best first, relative to a ``site-packages`` or to a plain directory.

        Raises
        ------
        SchemaError
            If no place has it.
        """
        for place in self.places:
            for relative in files:
                if (place / relative).is_file():
                    return load(place / relative)
        looked = ", ".join(map(str, self.places)) or f"the packages of {sys.executable}"
        raise SchemaError(
            name,
            f"not found in {looked}. Run this where {owner} is installed, or name a release's "
            f"site-packages, or a directory with {files[-1]}, by --schemas or {ENVIRONMENT_VARIABLE}.",
        )

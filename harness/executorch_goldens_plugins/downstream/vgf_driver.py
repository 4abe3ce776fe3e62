"""Runs in an environment with the model converter and the VGF library: converts payloads, and lets the library read."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from executorch_goldens_plugins.downstream.driver import Compile

#: The converter's command: since 0.9.0, and before.
CONVERTERS = ("model-converter", "model_converter")
READER = "vgf_dump"


class ConverterError(Exception):
    """The converter has refused a payload; the message is the converter's."""


def load() -> Compile:
    """Return a caller of the converter, as in ``vgf_compile`` of ``backends/arm/vgf/backend.py``, and the library."""
    scripts = Path(sysconfig.get_path("scripts"))
    converter = next(scripts / name for name in CONVERTERS if (scripts / name).exists())
    reader = scripts / READER

    def compile_payload(
        arguments: Sequence[str], payload: Path, directory: Path
    ) -> tuple[bytes, dict[str, Any]]:
        source = directory / "output_.tosa"
        source.write_bytes(payload.read_bytes())
        made = directory / "output_.tosa.vgf"
        command = [str(converter), *arguments, "-i", str(source), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not made.exists():
            output = (done.stderr + done.stdout).replace(str(directory), "")
            errors = [line for line in output.splitlines() if "error" in line.lower()]
            raise ConverterError("\n".join(errors) or output.strip() or f"exit status {done.returncode}")
        return made.read_bytes(), tables(reader, made, directory)

    return compile_payload


def tables(reader: Path, made: Path, directory: Path) -> dict[str, Any]:
    """Return the tables of a VGF file as the library reads them, with a digest of each module and constant."""

    def read(*words: str) -> bytes:
        out = directory / "read"
        out.unlink(missing_ok=True)
        subprocess.run([reader, "-i", made, "-o", out, *words], capture_output=True, check=True)
        return out.read_bytes()

    found: dict[str, Any] = json.loads(read())
    for name, option in (("modules", "--dump-spirv"), ("constants", "--dump-constant")):
        for entry in found[name]:
            if name == "modules" and not entry["has_spirv"]:
                continue
            data = read(option, str(entry["index"]))
            entry["bytes"] = len(data)
            entry["sha256"] = hashlib.sha256(data).hexdigest()
    return found

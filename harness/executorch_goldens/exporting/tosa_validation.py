"""Has tosa-tools' ``tosa-opt`` check TOSA payloads against the specification that they were lowered for.

The reference model runs a payload whatever profile it was made for. This is a check beside it: operators and data types
belong to the profiles and extensions, arguments are within the level, and shapes are those that operators give.
``tosa-opt`` is a binary in the wheel of tosa-tools 2026.2.1 and of 2026.5.0; its passes ``tosa-deserialize``,
``tosa-attach-target`` and ``tosa-validate`` are MLIR's. Without ``strict-op-spec-alignment`` an int8 payload is valid
under a floating profile.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import torch
from executorch.exir.lowered_backend_module import LoweredBackendModule

from executorch_goldens.artifact import Validation
from executorch_goldens.exporting.limits import WALL

#: The backend whose payloads are TOSA.
BACKEND = "TOSABackend"
#: Names of a specification (``TOSA-1.0+INT+int16+cf``) that differ from ``tosa-opt``'s, or that ``tosa-opt`` has no
#: name for: the subset of an Ethos-U55, the level.
PROFILES: Mapping[str, str] = {"INT": "pro_int", "FP": "pro_fp"}
EXTENSIONS: Mapping[str, str] = {"cf": "controlflow", "var": "variable", "u55": "", "8k": ""}
VERSIONS: Mapping[str, str] = {"1.1": "1.1.draft"}
#: The level that the reference model runs payloads at, and the only one that TOSA 1.0 and 1.1 have (section 1.6).
LEVEL = "8k"

#: Seconds of wall time that one payload may take: it takes some hundredths, and a busy machine must not decide. What
#: takes processor time is ended with its export.
LIMIT = 60.0 * WALL
#: Lines of what is refused in one payload that are kept.
MOST = 4
#: A pass's message about an operator: it is refused. Anything else that goes wrong says nothing about the payload.
REFUSAL = re.compile(r"error: (?P<words>'(?:tosa|func)\.[^']*' op .*)$", re.MULTILINE)
#: Message about each operator of a payload of TOSA 1.0 that leaves a size open, as lowering with dynamic dimensions
#: makes them: whoever runs it gives the sizes first (`executorch_goldens.numerics.open_sizes`).
OPEN = "operand shape dimension cannot be dynamic"
#: Messages of ``tosa-opt`` that has read nothing, or does not know an option.
PROBLEM = re.compile(r"^(?:.*error: |ERROR: |tosa-opt: |Unknown |Fail)(?P<words>.*\S.*)$", re.MULTILINE)


def validation(program: torch.nn.Module, otherwise: str) -> Validation | None:
    """Return the messages of ``tosa-opt`` about the TOSA delegates of a lowered program; None where there are none.

    Parameters
    ----------
    otherwise
        The specification of those whose compile specs name none.
    """
    delegates = [
        (name, module)
        for name, module in program.named_modules()
        if isinstance(module, LoweredBackendModule) and module.backend_id == BACKEND
    ]
    if not delegates:
        return None
    invalid: list[tuple[str, str, str]] = []
    unread: list[str] = []
    for name, module in delegates:
        specification = specification_of(module) or otherwise
        refused, why = checked(bytes(module.processed_bytes), specification)
        invalid += [(specification, name, words) for words in refused]
        unread += [f"{name}: {why}"] if why else []
    return Validation(
        f"tosa-opt of tosa-tools {metadata.version('tosa-tools')}", tuple(invalid), tuple(unread)
    )


def specification_of(module: LoweredBackendModule) -> str:
    """Return the specification that a delegate's compile specs name; empty if there is none."""
    return next((bytes(spec.value).decode() for spec in module.compile_specs if spec.key == "tosa_spec"), "")


def checked(payload: bytes, specification: str) -> tuple[tuple[str, ...], str]:
    """Return the violations of a specification in a payload, and why it could not be checked; one is empty."""
    tool = Path(str(metadata.distribution("tosa-tools").locate_file("bin/tosa-opt")))
    if not tool.is_file():
        return (), f"tosa-tools has no {tool.name} here"
    with tempfile.NamedTemporaryFile(suffix=".tosa") as file:
        file.write(payload)
        file.flush()
        # The name of a file is an option of its own, for a pipeline would read what is special to it.
        command = [str(tool), "/dev/null", f"--tosa-deserialize-filename={file.name}", "-o", "/dev/null"]
        try:
            ended = subprocess.run(
                [*command, f"--pass-pipeline={pipeline(specification)}"],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return (), f"tosa-opt took more than {LIMIT:g} s"
        except OSError as error:
            # It has another machine's loader, or is a script whose Python is elsewhere.
            return (), f"{tool} cannot be run: {error.strerror}"
    return verdict(ended.returncode, (ended.stderr + ended.stdout).replace(file.name, "payload"))


def pipeline(specification: str) -> str:
    """Return the passes that check a payload, with the options of a specification.

    >>> pipeline("TOSA-1.0+INT+int16+u55").split(",")[1]
    'tosa-attach-target{profiles=pro_int extensions=int16 level=8k specification_version=1.0}'
    """
    version, *named = specification.removeprefix("TOSA-").split("+")
    profiles = [PROFILES[name] for name in named if name in PROFILES]
    extensions = [EXTENSIONS.get(name, name) for name in named if name not in PROFILES]
    options = {
        "profiles": ",".join(profiles),
        "extensions": ",".join(filter(None, extensions)),
        "level": LEVEL,
        "specification_version": VERSIONS.get(version, version),
    }
    target = " ".join(f"{name}={value}" for name, value in options.items() if value)
    passes = (
        "tosa-deserialize",
        f"tosa-attach-target{{{target}}}",
        "tosa-validate{strict-op-spec-alignment}",
    )
    return f"builtin.module({','.join(passes)})"


def verdict(code: int, said: str) -> tuple[tuple[str, ...], str]:
    """Return the refusals of ``tosa-opt``, and why it checked nothing, from its exit code and output."""
    refusals = dict.fromkeys(found["words"].strip() for found in REFUSAL.finditer(said))
    refused = tuple(words for words in refusals if OPEN not in words)
    if refusals and not refused:
        return (), "it leaves sizes open, and TOSA 1.0 has no form for that"
    if refused:
        more = (f"and {len(refused) - MOST} more",) if len(refused) > MOST else ()
        return (*refused[:MOST], *more), ""
    if code < 0:
        return (), f"tosa-opt died of {signal.Signals(-code).name}"
    if code > 0:
        problem = PROBLEM.search(said)
        return (), f"tosa-opt cannot read it: {problem['words'].strip() if problem else f'exit code {code}'}"
    return (), ""


def tell(found: Validation | None) -> None:
    """Write violations to the log: the runtime may die of them."""
    for specification, name, words in found.invalid if found is not None else ():
        print(f"invalid {specification} in {name}: {words}", file=sys.stderr, flush=True)

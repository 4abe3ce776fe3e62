"""Writes a program and its defect as one Python script, which needs torch, ExecuTorch and the target's packages."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from executorch_goldens.settings.releases import Release
from executorch_goldens.zoo.targets import TOSA, Quantization, Target, find
from executorch_goldens_plugins.repro.defect import Defect, NotShownError
from executorch_goldens_plugins.repro.edited import EditedPackage

if TYPE_CHECKING:
    from executorch_goldens_plugins.repro.program import GraphProgram

ARM, XNNPACK = "executorch.backends.arm", "executorch.backends.xnnpack"
PT2E = "torchao.quantization.pt2e"
#: Columns of the script, as of this project's own code (`repro.program.WIDTH`, which imports torch).
WIDTH = 110


#: `executorch_goldens.exporting.targets.snorm_int8`, written out.
SNORM_INT8 = """\
observer = FixedQParamsObserver.with_args(
    scale=1 / 127,
    zero_point=0,
    dtype=torch.qint8,
    qscheme=torch.per_tensor_symmetric,
    quant_min=-127,
    quant_max=127,
)
snorm = QuantizationSpec(torch.int8, observer, -127, 127, torch.per_tensor_symmetric, is_dynamic=False)
config = QuantizationConfig(snorm, snorm, None, None)"""

#: Integers of torch and of numpy that the reference model takes in place of the dtypes that numpy lacks.
BITS: Mapping[str, tuple[str, str]] = {
    "bfloat16": ("int16", "uint16"),
    "float8_e4m3fn": ("uint8", "uint8"),
    "float8_e5m2": ("uint8", "uint8"),
}

#: A kind of defect in the script's first line, and the expectation.
KINDS: Mapping[str, tuple[str, str]] = {
    "raises": ("an export fails", "It is exported, lowered and run."),
    "follows-seed": ("lowering follows the hash seed", "One program, whatever PYTHONHASHSEED is."),
    "outputs": ("outputs are wrong", "The values that eager computes."),
    "slots": ("a delegate's outputs are miswired", "An operator writes each output, in a slot of its own."),
    "alters": ("lowering writes to the model", "The model that is given stays as it is."),
    "crashes": ("a process dies", "It is exported, lowered and run."),
}


def quantization(target: str, settings: str) -> str:
    """Return the settings (`targets.QUANTIZATIONS`) that the script for a target repeats; raise `NotShownError`.

    Without the harness there are no observers but the release's own.
    """
    declared = find(target)
    if not declared.is_data:
        function = declared.functions[0]
        raise NotShownError(
            f"target {target!r} is made by {function}, which is more than a script can repeat: there is no script"
        )
    if declared.is_quantized and settings == "int8-head":
        raise NotShownError(
            f"quantizer settings {settings!r} name a part of the model, which a graph has not: there is no script"
        )
    return settings if settings == "snorm-int8" else "histogram"


def templates() -> jinja2.Environment:
    """Return the environment of the templates beside this file."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )


def script(
    program: GraphProgram,
    defect: Defect,
    release: Release,
    target: str,
    settings: str,
    subject: str,
    edited: EditedPackage | None = None,
) -> str:
    """Return the text of a script that shows `defect`.

    Parameters
    ----------
    settings
        The result of `quantization`.
    subject
        The origin of the program, for a reader.
    edited
        The edit of the release that shows it; None for the release as published.
    """
    declared = find(target)
    tosa = declared.backend == TOSA
    title, expected = KINDS[defect.kind]
    runs = defect.kind == "outputs" or defect.stage == "run"
    quantizer = _quantizer(tosa, declared.quantization, settings) if declared.quantization else ()
    two_processes = defect.kind in ("follows-seed", "crashes")
    standard = {"import os", "import sys", "" if two_processes else "import traceback"}
    standard |= {f"import {name}" for name in STANDARD.get(defect.kind, ())}
    standard |= {"import hashlib"} if edited is not None and edited.files else set()
    kernels = _kernels(program) if (runs and not tosa) or emits(defect) else ()
    standard |= {"import importlib"} if kernels else set()
    torch_imports = {"import torch", *_imports(declared, settings, defect, runs)}
    for line in program.imports():
        (standard if line.split()[1] in ("base64", "math", "zlib") else torch_imports).add(line)
    return (
        templates()
        .get_template("script.py.jinja")
        .render(
            release=release.version,
            target=target,
            title=title,
            requirements=_filled("pip install " + " ".join(f"{n}=={v}" for n, v in release.stack().items())),
            expected=expected,
            seen=_filled(defect.reason),
            subject=subject,
            defect=defect,
            program=program,
            standard_imports=_sorted(standard),
            imports=_sorted(torch_imports),
            two_processes=two_processes,
            kernels=kernels,
            runs=runs,
            tosa=declared.specification,
            quantizer=quantizer,
            dynamic=", dynamic_shapes=dynamic_shapes" if program.shapes() else "",
            dtype=declared.dtype,
            bits=BITS.get(declared.dtype, ()) if tosa else (),
            edited=edited,
            float8=declared.dtype.startswith("float8"),
            tolerances=list(defect.tolerances),
        )
    )


#: Imports of a script from the standard library, besides os, sys and traceback.
STANDARD: Mapping[str, Iterable[str]] = {
    "follows-seed": ("hashlib", "itertools", "subprocess"),
    "crashes": ("signal", "subprocess"),
}


#: Modules that load the runtime's kernels: those of `executorch_goldens.exporting.kernels`, the runtime's own first.
KERNELS = ("executorch.extension.pybindings.portable_lib", "executorch.kernels.quantized")
#: The module that brings the custom operators of language models, and what their names begin with.
CUSTOM = "executorch.extension.llm.custom_ops.custom_ops"
OF_CUSTOM = ("torch.ops.llama.", "torch.ops.preprocess.")


def emits(defect: Defect) -> bool:
    """Return whether a script makes the ``.pte``, without the variants that kernel libraries add."""
    return defect.stage == "emit" or defect.kind == "follows-seed"


def _kernels(program: GraphProgram) -> tuple[str, ...]:
    """Return the modules of `KERNELS` that a script loads, and `CUSTOM` where the program asks for it."""
    return (*KERNELS, CUSTOM) if any(name in program.source() for name in OF_CUSTOM) else KERNELS


def _sorted(lines: Iterable[str]) -> list[str]:
    """Return import statements as isort has them."""
    return sorted((line for line in lines if line), key=lambda line: (line.startswith("from"), line.lower()))


def _imports(target: Target, settings: str, defect: Defect, runs: bool) -> Iterable[str]:
    """Yield the imports from ExecuTorch."""
    tosa = target.backend == TOSA
    if tosa:
        yield f"from {ARM}.tosa.compile_spec import TosaCompileSpec"
    if target.quantization is not None:
        yield f"from {PT2E}.quantize_pt2e import convert_pt2e, prepare_pt2e"
        backend = f"{ARM}.quantizer" if tosa else f"{XNNPACK}.quantizer.xnnpack_quantizer"
        config = "" if settings == "snorm-int8" else f", {target.quantization.config}"
        yield f"from {backend} import {'TOSAQuantizer' if tosa else 'XNNPACKQuantizer'}{config}"
        if settings == "snorm-int8":
            where = "quantizer.quantization_config" if tosa else "quantizer.xnnpack_quantizer_utils"
            yield f"from {ARM if tosa else XNNPACK}.{where} import QuantizationConfig"
            yield f"from {PT2E} import FixedQParamsObserver"
            yield f"from {PT2E}.quantizer import QuantizationSpec"
    if defect.stage != "quantize":
        yield "from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower"
        partitioner = ("tosa.partitioner", "TOSA") if tosa else ("partition.xnnpack_partitioner", "Xnnpack")
        yield f"from {ARM if tosa else XNNPACK}.{partitioner[0]} import {partitioner[1]}Partitioner"
    if runs and tosa:
        yield from ("import numpy as np", "import tosa_reference_model")
        yield "from executorch.exir.delegate import executorch_call_delegate"
        if target.dtype.startswith("float8"):
            yield "from torch.utils import _pytree as pytree"
            yield "from torch.utils._python_dispatch import TorchDispatchMode"
    elif runs:
        yield "from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer"
    if defect.kind in ("follows-seed", "slots"):
        yield "from executorch.exir.lowered_backend_module import get_lowered_submodules"
    if defect.kind == "slots":
        yield "from tosa.TosaGraph import TosaGraph"


def _quantizer(tosa: bool, quantization: Quantization, settings: str) -> list[str]:
    """Return the lines that make ``quantizer``."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in quantization.arguments.items())
    config = [f"config = {quantization.config}({arguments})"]
    if settings == "snorm-int8":
        config = SNORM_INT8.splitlines()
    made = "quantizer = TOSAQuantizer(spec)" if tosa else "quantizer = XNNPACKQuantizer()"
    if not quantization.modules:
        return [*config, f"{made}.set_global(config){'.set_io(config)' if tosa else ''}"]
    types = "".join(f"{module}, " for module in quantization.modules)
    types = types[:-1] if len(quantization.modules) == 1 else types[:-2]
    return [
        *config,
        made,
        f"for module in ({types}):",
        "    quantizer.set_module_type(module, config)",
    ]


def _filled(text: str) -> str:
    """Return text that follows a word of the docstring."""
    safe = text.replace("\\", "\\\\").replace('"""', "'''")
    return textwrap.fill(safe, WIDTH - 10).replace("\n", "\n          ")

"""Functions that the target names; imported in exporting processes only."""

from typing import Any

import torch
from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
from executorch.exir import EdgeCompileConfig, EdgeProgramManager, to_edge

#: Operators that the passes take whole: ``edge_compile_config.py`` of 1.5.1, the tester of the backend before it.
WHOLE = ["linear", "hardsigmoid", "hardsigmoid_", "hardswish", "hardswish_"]


def quantizer(settings: str) -> Any:
    return CortexMQuantizer()


def compile_config() -> EdgeCompileConfig:
    try:
        from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config
    except ModuleNotFoundError:
        return EdgeCompileConfig(
            preserve_ops=[getattr(torch.ops.aten, name).default for name in WHOLE], _check_ir_validity=False
        )
    return cortex_m_edge_compile_config()


def lower(program: torch.export.ExportedProgram) -> EdgeProgramManager:
    """Lower as ``CortexMToEdge`` and ``CortexMRunPasses`` of the backend's tester do."""
    edge = to_edge(program, compile_config=compile_config())
    transformed = CortexMPassManager(edge.exported_program()).transform()
    return EdgeProgramManager(transformed, compile_config=compile_config())

"""Quantizes an exported model: calibrated, and trained where its case does that."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping

import torch
from torchao.quantization.pt2e import move_exported_model_to_eval
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e

from executorch_goldens.exporting import compat
from executorch_goldens.exporting.data import Example, in_mode
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.exporting.targets import Lowering
from executorch_goldens.zoo.registry import Case

#: Seed of torch's generator, where a case trains.
SEED = 0


def convert(
    lowering: Lowering,
    case: Case,
    example: Example,
    program: torch.export.ExportedProgram,
    fold: bool = True,
) -> torch.fx.GraphModule:
    """Return the quantized eager graph of a model, with its weights folded into constants unless asked for.

    Parameters
    ----------
    program
        The exported model.
    """
    quantizer = lowering.quantizer_for(case, example)
    # Without gradients throughout: a folded constant that has a history cannot be copied.
    with torch.no_grad():
        prepare = _calibrated if example.train is None else _trained
        prepared, before = prepare(example, program, quantizer)
        # Calibrating runs the model, and folding constants runs what writes to a state without reading an input;
        # the program starts in the state that the model came in.
        restore(prepared, before)
        converted: torch.fx.GraphModule = convert_pt2e(prepared, fold_quantize=fold)
        restore(converted, before)
    return converted


#: Quantized modules, and the buffers to restore, by name.
_Prepared = tuple[torch.fx.GraphModule, Mapping[str, torch.Tensor]]


def _calibrated(example: Example, program: torch.export.ExportedProgram, quantizer: object) -> _Prepared:
    prepared = prepare_pt2e(compat.graph_module(program), quantizer)
    before = _copies(prepared, program.graph_signature.inputs_to_buffers.values())
    _calibrate(prepared, example)
    return prepared, before


def _trained(example: Example, program: torch.export.ExportedProgram, quantizer: object) -> _Prepared:
    assert example.train is not None
    # Its batch norms follow their batches: quantizers look for such.
    module = in_mode(copy.deepcopy(example.module), training=True)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(SEED)
        trained = export_program(module, example)
        prepared = prepare_qat_pt2e(compat.graph_module(trained), quantizer)
        # Statistics of batch norms are trained; a state of the model's own is not. Only a functional graph lists it.
        functional = program.run_decompositions({})
        before = _copies(prepared, functional.graph_signature.buffers_to_mutate.values())
        _calibrate(prepared, example)
        example.train(prepared)
    move_exported_model_to_eval(prepared)
    return prepared, before


def _calibrate(prepared: torch.fx.GraphModule, example: Example) -> None:
    for inputs in example.calibrating or (example.tensors,):
        example.call.run(prepared, copy.deepcopy(inputs))


def _copies(module: torch.nn.Module, names: Iterable[str]) -> Mapping[str, torch.Tensor]:
    """Return copies of the buffers that are named."""
    wanted = set(names)
    return {name: buffer.clone() for name, buffer in module.named_buffers() if name in wanted}


def restore(module: torch.nn.Module, states: Mapping[str, torch.Tensor]) -> None:
    """Give the buffers of `module` that `states` names the values that it holds."""
    for name, buffer in module.named_buffers():
        if name in states:
            numerics.overwrite(buffer, states[name])


def export_program(module: torch.nn.Module, example: Example) -> torch.export.ExportedProgram:
    """Export `module`, which takes the inputs of `example`, strictly."""
    return torch.export.export(
        module,
        example.inputs,
        dict(example.kwargs),
        dynamic_shapes=example.dynamic_shapes,
        strict=True,
    )

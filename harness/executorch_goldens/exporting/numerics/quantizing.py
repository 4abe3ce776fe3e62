"""Quantizes an exported model: calibrated, and trained where its case does that."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from unittest import mock

import torch
from torchao.quantization.pt2e import move_exported_model_to_eval, qat_utils
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
        prepared, before, norms = prepare(example, program, quantizer)
        # Calibrating runs the model, and folding constants runs what writes to a state without reading an input;
        # the program starts in the state that the model came in.
        restore(prepared, before)
        with norms.folded():
            converted: torch.fx.GraphModule = convert_pt2e(prepared, fold_quantize=fold)
        restore(converted, before)
    return converted


class Norms:
    """Momentum and eps of the batch norms of a graph, by the name of the running variance.

    torchao's patterns of batch norms, in training, in eval mode and folded into a convolution, have a momentum of 0.1
    and an eps of `EPS` whatever the model has (``qat_utils``, ``export_utils``, all five releases).
    """

    OPERATOR = torch.ops.aten.batch_norm.default
    EPS = 1e-5

    def __init__(self, module: torch.fx.GraphModule | None = None) -> None:
        nodes = (
            module.graph.find_nodes(op="call_function", target=self.OPERATOR) if module is not None else ()
        )
        self.own = {_state(node.args[4]): node.args[6:8] for node in nodes}

    def give(self, module: torch.fx.GraphModule) -> None:
        """Give the batch norms of `module` their own, and the eps to the standard deviations that scale weights."""
        for node in module.graph.nodes:
            if node.target is self.OPERATOR:
                self._give(node)
            elif node.target is torch.ops.aten.add.Tensor and node.args[1] == self.EPS:
                node.args = (node.args[0], self.own.get(_state(node.args[0]), (None, self.EPS))[1])
        module.recompile()

    def _give(self, norm: torch.fx.Node) -> None:
        own = self.own.get(_state(norm.args[4]), norm.args[6:8])
        norm.args = (*norm.args[:6], *own, *norm.args[8:])

    @contextlib.contextmanager
    def folded(self) -> Iterator[None]:
        """Within this context, torchao folds batch norms with their own eps."""
        fold = qat_utils.fold_bn_weights_into_conv_node

        def with_own(*nodes: Any) -> None:
            self._give(nodes[3])
            fold(*nodes)

        with mock.patch.object(qat_utils, "fold_bn_weights_into_conv_node", with_own):
            yield


def _state(value: Any) -> str:
    """Return the name of the state that a value is, or that it is rounded from; empty for any other."""
    while isinstance(value, torch.fx.Node) and value.op == "call_module":
        value = value.args[0]
    return str(value.target) if isinstance(value, torch.fx.Node) and value.op == "get_attr" else ""


#: Quantized modules, the buffers to restore, by name, and their batch norms.
_Prepared = tuple[torch.fx.GraphModule, Mapping[str, torch.Tensor], Norms]


def _calibrated(example: Example, program: torch.export.ExportedProgram, quantizer: object) -> _Prepared:
    prepared = prepare_pt2e(compat.graph_module(program), quantizer)
    before = _copies(prepared, program.graph_signature.inputs_to_buffers.values())
    _calibrate(prepared, example)
    return prepared, before, Norms()


def _trained(example: Example, program: torch.export.ExportedProgram, quantizer: object) -> _Prepared:
    assert example.train is not None
    # Its batch norms follow their batches: quantizers look for such.
    module = in_mode(copy.deepcopy(example.module), training=True)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(SEED)
        trained = export_program(module, example)
        graph = compat.graph_module(trained)
        norms = Norms(graph)
        prepared = prepare_qat_pt2e(graph, quantizer)
        norms.give(prepared)
        # Statistics of batch norms are trained; a state of the model's own is not. Only a functional graph lists it.
        functional = program.run_decompositions({})
        before = _copies(prepared, functional.graph_signature.buffers_to_mutate.values())
        _calibrate(prepared, example)
        example.train(prepared)
    move_exported_model_to_eval(prepared)
    norms.give(prepared)
    return prepared, before, norms


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

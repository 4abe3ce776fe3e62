"""Runs jobs in the installed ExecuTorch, each in a forked child: ``python exports.py two_delegates:list-qparams``.

A job is a function of this file, a colon and the patches to apply, with commas between them; an argument of the
function follows a slash: ``finding/folded-scales:folded-scales``. For each job one line of JSON: what the function
returned, or ``{"error": ...}``. The parent has the shortcuts and has exported once for each backend
before it forks, as the harness's templates have, and applies no patch.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
import logging
import os
import runpy
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from executorch.exir.lowered_backend_module import get_lowered_submodules

from executorch_goldens import patches, plugins
from executorch_goldens.patches import guard

RELEASE = version("executorch").partition("+")[0]

#: The scripts of findings.
FINDINGS = Path(__file__).parents[3] / "findings"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Lambda(torch.nn.Module):
    def __init__(self, forward: Any) -> None:
        super().__init__()
        self.compute = forward

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.compute(*inputs)


def buffers(forward: Any, **values: torch.Tensor) -> torch.nn.Module:
    """Return a module of `forward(buffers, x)` with the buffers named."""

    class Buffers(torch.nn.Module):
        def forward(self, *inputs: torch.Tensor) -> Any:
            return forward(self, *inputs)

    module = Buffers()
    for name, value in values.items():
        module.register_buffer(name, value)
    return module


def steps(*shape: int) -> torch.Tensor:
    return (torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape) - 7) / 8


def tosa(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], spec: str = "TOSA-1.0+FP") -> Any:
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
    from executorch.backends.arm.tosa.partitioner import TOSAPartitioner

    return to_edge_transform_and_lower(
        torch.export.export(module.eval(), inputs, strict=True),
        partitioner=[TOSAPartitioner(TosaCompileSpec(spec))],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )


def block(program: Any) -> Any:
    """Return the block of the only delegate's TOSA flatbuffer."""
    from tosa.TosaGraph import TosaGraph

    ((_, delegate, _),) = get_lowered_submodules(program.exported_program().graph_module)
    return TosaGraph.GetRootAs(bytes(delegate.processed_bytes), 0).Regions(0).Blocks(0)


def outputs_and_writers(program: Any) -> dict[str, Any]:
    from tosa.Op import Op

    names = {code: name for name, code in vars(Op).items() if isinstance(code, int)}
    of = block(program)
    operators = [of.Operators(index) for index in range(of.OperatorsLength())]
    read = {
        operator.Inputs(slot).decode() for operator in operators for slot in range(operator.InputsLength())
    }
    written = {operator.Outputs(0).decode(): names[operator.Op()] for operator in operators}
    outputs = [of.Outputs(index).decode() for index in range(of.OutputsLength())]
    return {
        "outputs": outputs,
        "writers": [written[name] for name in outputs],
        "dead": sorted(name for name in written if name not in read and name not in outputs),
    }


def graph_digest(program: Any) -> dict[str, Any]:
    module = program.exported_program().graph_module
    payloads = [sha256(delegate.processed_bytes) for _, delegate, _ in get_lowered_submodules(module)]
    return {"graph": sha256(str(module.graph).encode()), "payloads": payloads}


# Issue #19045


class TwoDelegates(torch.nn.Module):
    """The issue's model; the names of its inputs are in the digests that the issue prints."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x + y
        s = torch.max(z)
        return s * z


def two_delegates() -> dict[str, Any]:
    return graph_digest(tosa(TwoDelegates(), (steps(10, 4, 5), steps(10, 4, 5))))


def twelve_delegates() -> dict[str, Any]:
    def forward(x: torch.Tensor) -> torch.Tensor:
        for _ in range(12):
            x = x + torch.max(x)
        return x

    return graph_digest(tosa(Lambda(forward), (steps(2, 3),)))


def constant_in_two_lists() -> dict[str, Any]:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        a = torch.cat([x, self.c], 1)
        return torch.cat([a * torch.max(a), self.c], 1)

    return graph_digest(tosa(buffers(forward, c=steps(1, 4, 6)), (steps(1, 4, 6),)))


def components() -> dict[str, Any]:
    from executorch.backends.arm.tosa.partitioner import _find_connected_components

    graph = torch.fx.Graph()
    pad = [
        bytearray(size) for size in range(0, 4000, 7)
    ]  # so that addresses do not follow the order of creation
    nodes = []
    for index in range(20):
        nodes.append(graph.placeholder(f"x{index}"))
        pad[index * 5] = bytearray(1)
    return {
        "order": [[node.name for node in component] for component in _find_connected_components(set(nodes))]
    }


# Issue #18866


def equal_buffers() -> dict[str, Any]:
    def forward(self: Any, x: torch.Tensor) -> Any:
        return x + self.a, self.a.clone(), self.b.clone()

    shape = (1, 2, 4, 5)
    return outputs_and_writers(tosa(buffers(forward, a=steps(*shape), b=steps(*shape)), (steps(*shape),)))


def equal_buffers_in_two_formats() -> dict[str, Any]:
    def forward(self: Any, x: torch.Tensor) -> Any:
        return x + self.a, self.a + 0.5, (self.b + 0.5).to(memory_format=torch.channels_last)

    shape = (1, 2, 4, 5)
    return outputs_and_writers(tosa(buffers(forward, a=steps(*shape), b=steps(*shape)), (steps(*shape),)))


def same_value_twice() -> dict[str, Any]:
    def forward(x: torch.Tensor) -> Any:
        y = x + 1.0
        return y, y

    program = tosa(Lambda(forward), (steps(1, 2, 4, 5),))
    return {**outputs_and_writers(program), **graph_digest(program)}


def identity_dtypes() -> dict[str, Any]:
    from executorch.backends.arm.tosa.specification import TosaSpecification

    from executorch_goldens.patches.tosa_identity import UniqueOutputNodesPass, supported_dtypes

    specs = ("TOSA-1.0+INT", "TOSA-1.0+FP", "TOSA-1.0+INT+int16", "TOSA-1.0+FP+bf16")
    return {
        **{
            spec: [dtype.name for dtype in supported_dtypes(TosaSpecification.create_from_string(spec))]
            for spec in specs
        },
        "annotation pass": UniqueOutputNodesPass(object()).is_tfa_pass,
    }


# Issue #18971


def folded(forward: Any, dtype: torch.dtype, largest: int, **values: torch.Tensor) -> dict[str, Any]:
    """Fold `forward` of quantized constants as the pass does; compare with the eagerly quantized result."""
    from executorch.backends.arm._passes.fuse_constant_ops_pass import FuseConstantArgsPass
    from executorch.backends.arm._passes.quant_args import QuantArgs
    from executorch.exir import to_edge

    parameters = QuantArgs(
        scale=1 / largest, zp=0, qmin=-largest, qmax=largest, dtype=dtype, axis=0, per_channel=False
    )
    module = buffers(lambda self: forward(*(getattr(self, name) for name in values)), **values)
    expected = parameters.quantize_value(module())
    program = to_edge(torch.export.export(module, (), strict=True)).exported_program()
    for name, value in program.state_dict.items():
        program.state_dict[name] = parameters.quantize_value(value)
    for node in program.graph.nodes:
        if node.op == "call_function":
            node.meta["input_qparams"] = {0: parameters}
            node.meta["output_qparams"] = {0: parameters}
    from executorch.backends.arm.tosa.specification import TosaLoweringContext, TosaSpecification

    with TosaLoweringContext(TosaSpecification.create_from_string("TOSA-1.0+INT+int16")):
        result = FuseConstantArgsPass(program).call(program.graph_module).graph_module
    (output,) = result.graph.output_node().args[0]
    found = program.state_dict[program.graph_signature.inputs_to_buffers[output.name]]
    difference = (found.to(torch.int32) - expected.to(torch.int32)).abs().float()
    return {
        "distinct": [len(channel.unique()) for channel in found[0]],
        "max": int(difference.max()),
        "mean": round(float(difference.mean()), 4),
    }


def ramps() -> tuple[torch.Tensor, torch.Tensor]:
    """Return the two gradients of the issue, across and down, [1, 1, 4, 5]."""
    across, down = torch.linspace(-0.8, 0.8, 5), torch.linspace(-0.75, 0.75, 4)
    return across.expand(1, 1, 4, 5).contiguous(), down[:, None].expand(1, 1, 4, 5).contiguous()


def cat_across_down(dtype: torch.dtype = torch.int8, largest: int = 127) -> dict[str, Any]:
    across, down = ramps()
    return folded(lambda a, d: torch.cat((a, d), 1), dtype, largest, a=across, d=down)


def cat_down_across() -> dict[str, Any]:
    across, down = ramps()
    return folded(lambda a, d: torch.cat((d, a), 1), torch.int8, 127, a=across, d=down)


def cat_of_one_twice() -> dict[str, Any]:
    return folded(lambda a: torch.cat((a, a), 1), torch.int8, 127, a=ramps()[0])


def cat_of_three() -> dict[str, Any]:
    across, down = ramps()
    return folded(lambda a, d, b: torch.cat((a, d, b), 1), torch.int8, 127, a=across, d=down, b=across / 2)


def cat_of_cats() -> dict[str, Any]:
    across, down = ramps()

    def forward(a: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
        return torch.cat((torch.cat((a, d), 1), torch.cat((d, a), 1)), 1)

    return folded(forward, torch.int8, 127, a=across, d=down)


def cat_int16() -> dict[str, Any]:
    return cat_across_down(torch.int16, 32767)


# Issue #19152


def xnnpack(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> dict[str, Any]:
    """Lower, run in ExecuTorch's runtime; the difference from eager is relative to an output's largest value."""
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

    exported = torch.export.export(module.eval(), inputs, strict=True)
    program = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    delegates = len(get_lowered_submodules(program.exported_program().graph_module))
    buffer = program.to_executorch().buffer
    outputs = _load_for_executorch_from_buffer(buffer).run_method("forward", inputs)
    eager = module(*inputs)
    pairs = zip(outputs, eager if isinstance(eager, tuple) else (eager,), strict=True)
    return {
        "delegates": delegates,
        "pte": sha256(bytes(buffer)),
        "difference": max(
            float((output - expected).abs().max() / expected.abs().max()) for output, expected in pairs
        ),
    }


def permuted(consumers: Any) -> dict[str, Any]:
    return xnnpack(Lambda(lambda x: consumers(x.permute(0, 2, 1))), (steps(2, 3, 5),))


def reshape_and_sum() -> dict[str, Any]:
    return permuted(lambda y: (y.reshape(2, -1), y.sum(dim=1)))


def clone_and_itself() -> dict[str, Any]:
    return permuted(lambda y: (y.clone(), y))


def contiguous_cumsum_and_sum() -> dict[str, Any]:
    return permuted(lambda y: (y.contiguous().cumsum(1), y.sum(1)))


def itself_and_sum() -> dict[str, Any]:
    return permuted(lambda y: (y, y.sum(dim=1)))


def relu_and_clone() -> dict[str, Any]:
    def forward(x: torch.Tensor) -> Any:
        y = torch.relu(x)
        return y, y.clone()

    return xnnpack(Lambda(forward), (steps(2, 3, 5),))


def clone_used_inside() -> dict[str, Any]:
    def forward(x: torch.Tensor) -> Any:
        y = x.permute(0, 2, 1)
        c = y.clone()
        return y.sum(1), c.cumsum(1), torch.relu(c) * c

    return xnnpack(Lambda(forward), (steps(2, 3, 5),))


def formats_undone() -> dict[str, Any]:
    def forward(x: torch.Tensor) -> Any:
        y = x.to(memory_format=torch.channels_last).to(memory_format=torch.contiguous_format)
        return y, torch.relu(y)

    return xnnpack(Lambda(forward), (steps(1, 3, 4, 4),))


class Convolution(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.convolution(x)))


def convolution() -> dict[str, Any]:
    torch.manual_seed(0)
    return xnnpack(Convolution(), (steps(1, 3, 6, 6),))


# Findings


def finding(name: str) -> dict[str, Any]:
    """Run the script of a finding, which compares with eager; return its exit code and its output."""
    printed = io.StringIO()
    code = 0
    with contextlib.redirect_stdout(printed):
        try:
            runpy.run_path(str(FINDINGS / f"{name}.py"))
        except SystemExit as end:
            code = end.code
    return {"code": code, "printed": printed.getvalue()}


def other_source(name: str) -> dict[str, Any]:
    """Apply a patch as if it had been written for another source of the first function that it names."""
    patch = patches.PATCHES[name]
    functions = patch.fits[RELEASE]
    first = next(iter(functions))
    other = {RELEASE: {**functions, first: "0" * 64}}
    patches.PATCHES[name] = dataclasses.replace(patch, fits=other)
    try:
        patches.apply([name], RELEASE)
    except guard.GuardError as error:
        return {"refused": str(error), "function": first}
    return {}


def run(job: str) -> dict[str, Any]:
    named, _, names = job.partition(":")
    name, *arguments = named.split("/")
    try:
        patches.apply(names.split(",") if names else (), RELEASE)
        result: dict[str, Any] = globals()[name](*arguments)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return result


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    patches.shorten(plugins.shortcuts().values(), RELEASE)
    two_delegates()
    itself_and_sum()
    for job in sys.argv[1:]:
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.close(reader)
            with os.fdopen(writer, "w") as pipe:
                json.dump(run(job), pipe)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            answer = pipe.read()
        os.wait()
        print("RESULT", json.dumps([job, json.loads(answer or '{"error": "the child died"}')]), flush=True)

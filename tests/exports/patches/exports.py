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

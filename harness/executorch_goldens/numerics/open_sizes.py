"""Gives the sizes that a TOSA payload leaves open, for inputs of given shapes, as whoever runs the payload must.

A tensor of symbolic size is in a payload with -1 in that place. tosa-tools' ``infer_shapes``, a binary in its wheel
from 2026.5.0 on, writes the sizes that follow from the shapes of the inputs. Upstream's tests call it as well
(``backends/arm/test/runner_utils.py``). With an older tosa-tools such a payload is not run.

``infer_shapes`` writes over stated sizes as well. A payload that states other sizes than it gives is not run: the
reference model does not check all of them, and writes beyond a tensor that is too small.
"""

from __future__ import annotations

import functools
import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from executorch_goldens.errors import HarnessError

#: Size that a payload leaves open.
OPEN = -1
#: The version of TOSA from which on a payload may leave sizes open.
FIRST = (1, 1)
#: Payloads with the sizes of their inputs that are kept: a program runs on a few samples, each more than once.
KEPT = 64

Sizes = tuple[int, ...]


class OpenSizeError(HarnessError, ValueError):
    """The sizes that a payload leaves open do not follow from its inputs."""


def lacking(payload: bytes) -> str:
    """Return why the sizes that `payload` leaves open cannot be given; empty if they can, or if it leaves none open."""
    if not leaves_open(payload):
        return ""
    version = _graph(payload).Version()
    if (version._Major(), version._Minor()) < FIRST:
        return "the reference model takes no dimension whose size the payload leaves open"
    if not _tool().is_file():
        return f"tosa-tools {metadata.version('tosa-tools')} has no infer_shapes, which gives the sizes left open"
    return ""


def leaves_open(payload: bytes) -> bool:
    """Return whether some tensor of a TOSA payload has a dimension of unstated size."""
    return any(OPEN in sizes for _, sizes in _sizes(payload))


def with_sizes(payload: bytes, shapes: Sequence[Sizes]) -> bytes:
    """Return `payload` with every size that it leaves open as it is for inputs of these shapes.

    Raises
    ------
    OpenSizeError
        If a size does not follow from the shapes, or differs from what the payload states.
    """
    return _inferred(payload, tuple(map(tuple, shapes))) if leaves_open(payload) else payload


@functools.lru_cache(maxsize=KEPT)
def _inferred(payload: bytes, shapes: tuple[Sizes, ...]) -> bytes:
    if problem := lacking(payload):
        raise OpenSizeError(problem)
    block = _graph(payload).Regions(0).Blocks(0)
    names = [block.Inputs(at).decode() for at in range(block.InputsLength())]
    with tempfile.TemporaryDirectory() as folder:
        model, job = Path(folder, "model.tosa"), Path(folder, "job.json")
        model.write_bytes(payload)
        job.write_text(json.dumps({"tosa_file": str(model), "shapes": dict(zip(names, shapes, strict=True))}))
        ended = subprocess.run(
            [_tool(), job], cwd=folder, capture_output=True, text=True, errors="replace", check=False
        )
        resolved = Path(folder, "resolved_model.tosa")
        if ended.returncode or not resolved.is_file():
            said = (ended.stderr + ended.stdout).strip().splitlines() or [f"exit code {ended.returncode}"]
            raise OpenSizeError(f"infer_shapes gives no sizes for inputs of {list(shapes)}: {said[-1]}")
        made = resolved.read_bytes()
    _require_stated(payload, dict(_sizes(made)))
    return made


def _require_stated(payload: bytes, given: Mapping[str, Sizes]) -> None:
    for name, stated in _sizes(payload):
        sizes = given.get(name, stated)
        if len(sizes) != len(stated) or any(
            one not in (OPEN, size) for one, size in zip(stated, sizes, strict=True)
        ):
            raise OpenSizeError(f"{name} is {list(stated)} where infer_shapes gives {list(sizes)}")


def _sizes(payload: bytes) -> Iterator[tuple[str, Sizes]]:
    """Yield the name and the sizes of each tensor that has dimensions."""
    graph = _graph(payload)
    for region in map(graph.Regions, range(graph.RegionsLength())):
        for block in map(region.Blocks, range(region.BlocksLength())):
            for tensor in map(block.Tensors, range(block.TensorsLength())):
                if tensor.ShapeLength():
                    yield tensor.Name().decode(), tuple(tensor.ShapeAsNumpy().tolist())


def _tool() -> Path:
    return Path(str(metadata.distribution("tosa-tools").locate_file("bin/infer_shapes")))


def _graph(payload: bytes) -> Any:
    from tosa.TosaGraph import TosaGraph

    return TosaGraph.GetRootAs(payload, 0)

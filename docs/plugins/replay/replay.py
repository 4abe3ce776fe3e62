"""Runs the programs of a corpus on its samples, and leaves what they give for `goldens thaw CORPUS --outputs OUTPUTS`.

    python replay.py CORPUS OUTPUTS [PREFIX]

PREFIX takes only the samples whose folders begin with it, e.g. xnnpack-int8/. It reads `replay.txt` and the files that
this names, as a runner of a device does (docs/plugins/field.md). It needs ExecuTorch and torch, and ends with 1
where a sample did not run.
"""

import math
import sys
from pathlib import Path

import numpy
import torch
from executorch.runtime import Runtime


def samples(corpus):
    """Yield the folder of each sample, its program's files, and its steps, each a method and its inputs."""
    for line in (corpus / "replay.txt").read_text().splitlines():
        word, *fields = line.split(" ")
        if word == "program":
            files = [corpus / fields[1]]
        elif word == "data":
            files.append(corpus / fields[1])
        elif word == "sample":
            steps = []
            yield fields[0], files, steps
        elif word == "step":
            steps.append((fields[0], []))
        elif word == "input":
            dtype, shape, order, file = fields
            steps[-1][1].append(tensor(dtype, numbers(shape), numbers(order), corpus / file))


def numbers(text):
    return [] if text == "-" else [int(number) for number in text.split(",")]


def tensor(dtype, shape, order, file):
    """Return the tensor whose bytes in memory a file has."""
    strides = [0] * len(shape)
    for at, dimension in enumerate(order):
        strides[dimension] = math.prod(shape[inner] for inner in order[at + 1 :])
    data = bytearray(file.read_bytes())
    if not data:
        return torch.empty(shape, dtype=getattr(torch, dtype))
    return torch.frombuffer(data, dtype=getattr(torch, dtype)).as_strided(shape, strides)


def run(files, steps):
    """Return what the last step gives, from the program's initial state."""
    program, *data = (file.read_bytes() for file in files)
    call = module_of(program, *data) if data else methods_of(program)
    given = []
    for name, inputs in steps:
        given = call(name, inputs)
    return given


def methods_of(program):
    """Return what runs a method of a program."""
    loaded = Runtime.get().load_program(program)
    methods = {}

    def call(name, inputs):
        if name not in methods:
            methods[name] = loaded.load_method(name)
        return methods[name].execute(inputs)

    return call


def module_of(program, data):
    """Return what runs a method of a program with a data file, which the interface above does not take."""
    from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

    return _load_for_executorch_from_buffer(program, data).run_method


def write(output, stem):
    """Write an output as a .npy, or what NumPy has no dtype for as its bytes in memory."""
    if output.dtype is torch.bfloat16:
        ordered = output.permute(output.dim_order()).contiguous()
        stem.with_suffix(".bin").write_bytes(ordered.flatten().view(torch.uint8).numpy().tobytes())
    else:
        numpy.save(stem.with_suffix(".npy"), output.contiguous().numpy())


corpus, outputs, prefix = Path(sys.argv[1]), Path(sys.argv[2]), "".join(sys.argv[3:])
failed = 0
# All lines of a sample are read before it is run.
for folder, files, steps in list(samples(corpus)):
    if not folder.startswith(prefix):
        continue
    try:
        given = run(files, steps)
    except RuntimeError as error:
        print(f"{folder}: {error}", file=sys.stderr)
        failed += 1
        continue
    (outputs / folder).mkdir(parents=True, exist_ok=True)
    for index, output in enumerate(given):
        write(output, outputs / folder / f"output-{index}")
sys.exit(failed > 0)

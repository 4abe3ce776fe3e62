"""Runs programs, each in a process of its own, in an interpreter that need have nothing of this project.

`field.running` starts it as ``PYTHON -I runner.py ANSWERS ENGINE...``: a file of its own that imports Python's
library, and then what the engines are: ExecuTorch and torch, or numpy and tosa-tools. It has to be understood by
whatever Python a later release needs.

Requests arrive on standard input, a JSON object a line: ``{"folder": PATH, "seconds": 60.0, "megabytes": 4096}``. In
the folder are ``job.json``, which names the engine, the number of data files and the samples, each a list of steps
``{"method": "forward", "inputs": [...]}``, ``program``, and a file for each input. Answers leave on the file
descriptor ANSWERS. The first says what was imported, ``{"versions": {"executorch": "1.5.1"}}`` or ``{"missing":
"executorch", "error": "..."}``. Then there is one for each request, ``{"status": 0, "timed_out": false, "seconds":
0.2}``, with a negative number for a signal. What the program gave is in the folder, ``out-<n>.json`` and
``out-<n>-<i>`` for output i of sample n; an exception of the engine is in ``error``; and ``log`` has what was
printed.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import resource
import runpy
import signal
import sys
import time
from pathlib import Path
from typing import Any

#: Exit status of a child whose engine raised.
RAISED = 3
#: Seconds between looks at a child.
POLL = 0.005
#: Wall time of a program, as a multiple of its limit of processor time: a busy machine does not end it.
WALL = 20.0
#: Bytes that a program may leave in one file.
LARGEST_FILE = 1 << 29
#: The distribution of each engine.
DISTRIBUTIONS = {"executorch": ("executorch", "torch"), "tosa-reference-model": ("tosa-tools",)}


def in_executorch(program: bytes, files: list[bytes], samples: list[list[Any]], leave: Any) -> None:
    """Run a ``.pte`` on each sample, step by step; write the outputs of the last step."""
    import torch

    for number, steps in enumerate(samples):
        # Loaded again for each: a program keeps its state.
        run = _with_files(program, files) if files else _by_itself(program)
        outputs: Any = ()
        for name, step in steps:
            outputs = run(name, [_tensor(torch, *given) for given in step])
        leave(number, [_of_tensor(torch, output) for output in outputs])


def _by_itself(program: bytes) -> Any:
    """Load a program, whose methods share their state; return a function that runs one of them."""
    from executorch.runtime import Runtime, Verification

    loaded = Runtime.get().load_program(program, verification=Verification.InternalConsistency)
    methods: dict[str, Any] = {}

    def run(name: str, inputs: list[Any]) -> Any:
        if name not in methods:
            methods[name] = loaded.load_method(name)
        return methods[name].execute(inputs)

    return run


def _with_files(program: bytes, files: list[bytes]) -> Any:
    """Load a program with its data file as the runtime's module: before 1.5.1 nothing else takes one."""
    from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

    if len(files) > 1:
        raise ValueError(f"the runtime's Python interface takes one data file, and there are {len(files)}")
    return _load_for_executorch_from_buffer(program, files[0]).run_method


def _tensor(torch: Any, meta: dict[str, Any], data: bytes) -> Any:
    dtype, shape, strides = getattr(torch, meta["dtype"]), meta["shape"], meta["strides"]
    if not data:
        return torch.empty(shape, dtype=dtype)
    tensor = torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape)
    return tensor if strides is None else torch.empty_strided(shape, strides, dtype=dtype).copy_(tensor)


def _of_tensor(torch: Any, output: Any) -> tuple[str, list[int], bytes]:
    if not isinstance(output, torch.Tensor):
        raise TypeError(f"the program gives a {type(output).__name__}, and no tensor")
    plain = output.detach().contiguous()
    # A single element may have any stride, which a view as bytes does not take.
    flat = plain.as_strided((plain.numel(),), (1,))
    data = flat.view(torch.uint8).numpy().tobytes() if plain.numel() else b""
    return str(plain.dtype).partition(".")[2], list(plain.shape), data


def in_reference_model(program: bytes, files: list[bytes], samples: list[list[Any]], leave: Any) -> None:
    """Run a TOSA flatbuffer in the reference model on each sample, which has one step."""
    import numpy
    import tosa_reference_model as model

    for number, steps in enumerate(samples):
        for _, step in steps:
            arrays = [numpy.frombuffer(data, meta["dtype"]).reshape(meta["shape"]) for meta, data in step]
            outputs, status = model.run(
                program,
                arrays,
                verbosity="LOW",
                initialize_variable_tensor_from_numpy=True,
                debug_mode=None,
            )
            if status != model.GraphStatus.TOSA_VALID:
                raise RuntimeError(f"the TOSA reference model says {status}")
        leave(number, [_of_array(output) for output in outputs])


def _of_array(output: Any) -> tuple[str, list[int], bytes]:
    """Return an output; of a dtype that numpy lacks, the bits as whole numbers."""
    known = output.dtype.kind in "biufc"
    bits = output if known else output.view(f"u{output.dtype.itemsize}")
    return str(bits.dtype), list(bits.shape), bits.tobytes()


ENGINES = {"executorch": in_executorch, "tosa-reference-model": in_reference_model}


def load(engine: str) -> None:
    """Import an engine's modules, once for all programs."""
    if engine == "executorch":
        import torch

        # As exports do: a file that imports Python's library, as this one.
        kernels = Path(__file__).parents[2] / "executorch_goldens" / "exporting" / "kernels.py"
        runpy.run_path(str(kernels))["load"]()
        # Threads do not survive a fork.
        torch.set_num_threads(1)
    else:
        import numpy  # noqa: F401
        import tosa_reference_model  # noqa: F401


def versions(engines: list[str]) -> dict[str, str]:
    """Return the installed versions."""
    from importlib import metadata

    return {name: metadata.version(name) for engine in engines for name in DISTRIBUTIONS[engine]}


def run(folder: Path) -> None:
    """Carry out one request in this process."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    samples = [
        [
            (step["method"], [(meta, (folder / meta["file"]).read_bytes()) for meta in step["inputs"]])
            for step in steps
        ]
        for steps in job["samples"]
    ]

    def leave(number: int, outputs: list[tuple[str, list[int], bytes]]) -> None:
        for index, (_, _, data) in enumerate(outputs):
            (folder / f"out-{number}-{index}").write_bytes(data)
        said = [{"dtype": dtype, "shape": shape} for dtype, shape, _ in outputs]
        (folder / f"out-{number}.json").write_text(json.dumps(said), encoding="utf-8")

    files = [(folder / f"data-{number}").read_bytes() for number in range(job["files"])]
    ENGINES[job["engine"]]((folder / "program").read_bytes(), files, samples, leave)


def child(folder: Path, megabytes: int, seconds: float) -> None:
    """Carry out one request, and leave the process as nothing of the parent's may be left."""
    status = RAISED
    try:
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        limit(megabytes, seconds)
        # The reference model has a debugger look at it before it dies.
        os.environ["PATH"] = ""
        run(folder)
        status = 0
    except BaseException as error:
        message = f"{type(error).__name__}: {error}"
        (folder / "error").write_text(message, encoding="utf-8", errors="backslashreplace")
    finally:
        # The reference model writes its errors through C's buffers.
        ctypes.CDLL(None).fflush(None)
        os._exit(status)


def limit(megabytes: int, seconds: float) -> None:
    """Limit this process: memory on top of its own, processor time."""
    most = min(math.ceil(seconds), 2**31 - 1)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(
        resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
    )
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def wait(process: int, seconds: float) -> tuple[int, bool]:
    """Wait for a child; return its status, and whether it was ended because of its time."""
    deadline, timed_out = time.monotonic() + WALL * seconds, False
    while True:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return code, timed_out or code == -signal.SIGXCPU
        if not timed_out and time.monotonic() > deadline:
            timed_out = True
            os.kill(process, signal.SIGKILL)
        time.sleep(POLL)


def main() -> None:
    """Import, then serve until the requests end."""
    answers, engines = int(sys.argv[1]), sys.argv[2:]
    os.set_inheritable(answers, False)

    def answer(message: dict[str, Any]) -> None:
        os.write(answers, json.dumps(message).encode() + b"\n")

    for engine in engines:
        try:
            load(engine)
        except BaseException as error:
            answer({"missing": engine, "error": f"{type(error).__name__}: {error}"})
            return
    answer({"versions": versions(engines)})
    for line in sys.stdin:
        request = json.loads(line)
        started = time.monotonic()
        process = os.fork()
        if process == 0:
            os.close(answers)
            child(Path(request["folder"]), request["megabytes"], request["seconds"])
        status, timed_out = wait(process, request["seconds"])
        seconds = time.monotonic() - started
        answer({"status": status, "timed_out": timed_out, "seconds": seconds})


if __name__ == "__main__":
    main()

"""Runs in a compiler's environment: compiles payloads, each in a process of its own.

A request comes as JSON on the standard input, see `CompileRequest`. The compiler is imported once; each payload is
compiled by a forked child, so that no payload sees the state of an earlier one, and one that kills the compiler takes
no other with it. A child leaves in its folder what it made, ``made`` and ``said.json``, or why there is nothing,
``refused.json``; and a log.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executorch_goldens.exporting.limits import FOREVER, WALL, limit_processor
from executorch_goldens.zoo.variations import perturb_heap, shuffle_listings

#: Requests of a compiler's own code, which is C++, go to the C library's allocator: blocks of these sizes are held.
NATIVE_SIZES = (16, 1024)
NATIVE_BLOCKS = 20_000
#: The file with a payload.
PAYLOAD = "payload"


@dataclass(frozen=True)
class CompileRequest:
    """A payload to compile.

    Attributes
    ----------
    folders
        Folders, which exist, with each `PAYLOAD`: its child leaves there what it made.
    arguments
        Arguments of the compiler for each.
    directory
        Name of the working and output directory in each.
    heap_seed, listings_seed, history_seed
        See `variations.Variation`. A history of n lets a child compile the n payloads that come after its own
        first.
    limit
        Seconds of processor time that one child may take.
    """

    folders: list[str]
    arguments: list[list[str]]
    directory: str
    heap_seed: int
    listings_seed: int
    history_seed: int
    limit: int


#: Compiles a payload, a file, with arguments in a new directory; returns what it made, and what it says of that.
Compile = Callable[[Sequence[str], Path, Path], tuple[bytes, dict[str, Any]]]


def serve(load: Callable[[], Compile]) -> None:
    """Carry out the request on standard input with the result of `load`, which imports the compiler."""
    request = CompileRequest(**json.load(sys.stdin))
    shuffle_listings(request.listings_seed)
    held = perturb_heap(request.heap_seed), perturb_native_heap(request.heap_seed)
    compile_payload = load()
    for index, folder in enumerate(request.folders):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with Path(folder, "log").open("wb") as log:
                    os.dup2(log.fileno(), 1)
                    os.dup2(log.fileno(), 2)
                # A sleeping process takes no processor time.
                limit_processor(request.limit)
                signal.alarm(min(math.ceil(WALL * request.limit), FOREVER))
                compile_one(compile_payload, request, index)
                sys.stdout.flush()
                code = 0
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        Path(folder, "status").write_text(str(os.waitstatus_to_exitcode(status)))
    del held


def perturb_native_heap(seed: int) -> list[int]:
    """Leave holes of random sizes in the C library's heap; return the blocks that stay, which nothing frees."""
    if seed == 0:
        return []
    generator = random.Random(seed)
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    blocks = [library.malloc(generator.randint(*NATIVE_SIZES)) for _ in range(NATIVE_BLOCKS)]
    generator.shuffle(blocks)
    for block in blocks[::2]:
        library.free(block)
    return blocks[1::2]


def compile_one(compile_payload: Compile, request: CompileRequest, index: int) -> None:
    """Compile one payload of a request, after those that its history names, and write the result."""
    folder = Path(request.folders[index])
    directory = folder / request.directory
    # Not its parents: what is made again where somebody deleted it is open to everybody.
    directory.mkdir(exist_ok=True)
    os.chdir(directory)
    os.environ["TMPDIR"] = str(directory)

    def one(number: int, name: str) -> tuple[bytes, dict[str, Any]]:
        place = directory / name
        place.mkdir()
        return compile_payload(request.arguments[number], Path(request.folders[number], PAYLOAD), place)

    for earlier in range(request.history_seed):
        with contextlib.suppress(Exception, SystemExit):
            one((index + 1 + earlier) % len(request.folders), f"earlier-{earlier}")
    try:
        made, said = one(index, "work")
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        # Its own directory differs every time.
        refused = {"type": type(error).__name__, "message": str(error).replace(str(directory), "…")}
        (folder / "refused.json").write_text(json.dumps(refused), encoding="utf-8")
        return
    (folder / "said.json").write_text(json.dumps(said), encoding="utf-8")
    (folder / "made").write_bytes(made)

"""Ways to load a program and to pass it to the runtime, with the chosen kernels."""

from __future__ import annotations

import os
import re
import signal
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch

from executorch_goldens.exporting import kernels
from executorch_goldens.exporting.data import example_of
from executorch_goldens.exporting.entry import export
from executorch_goldens.exporting.numerics import loading
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.settings import releases
from executorch_goldens.zoo.registry import load
from tests.support.making import lowered_by, objection
from tests.support.screens import of_verdict

ZOO = load(("models",))
RELEASE = releases.load().release(version("executorch"))

pytestmark = pytest.mark.usefixtures("own_flatc")


@pytest.mark.slow
def test_a_program_that_gives_something_else_from_a_file_is_corrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """For example a runtime that unmaps memory it still reads."""
    assert lowered_by(export(ZOO["linear"], "xnnpack-fp32")).loads == ()
    way = "from a file that is mapped into memory, as a module"

    def off_by_a_bit(path: str, steps: numerics.Steps, method: str) -> list[Any]:
        (output,) = loading.run_module(path, steps, method)
        return [torch.nextafter(output, torch.tensor(9.0))]

    def dying(path: str, steps: numerics.Steps, method: str) -> list[Any]:
        os.kill(os.getpid(), signal.SIGSEGV)
        raise AssertionError

    def raising(path: str, steps: numerics.Steps, method: str) -> list[Any]:
        raise RuntimeError("not this way")

    for run, said in (
        (
            off_by_a_bit,
            "the program gives something else than from a buffer: output 0 (example) float32[3, 8]: 24 of 24",
        ),
        (dying, "the program does not run: the process that looked into it died of SIGSEGV"),
        (raising, "the program does not run: RuntimeError: not this way"),
    ):
        monkeypatch.setattr(loading, "WAYS", {way: run})
        judged = objection(export(ZOO["linear"], "xnnpack-fp32"))
        assert judged.name == "corrupt"
        assert f": loaded {way}, {said}" in of_verdict(judged)


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what is mapped")
@pytest.mark.parametrize("load", ["_load_for_executorch", "_load_program"])
def test_the_runtime_maps_a_file_in_both_of_its_interfaces(tmp_path: Path, load: str) -> None:
    """If a release reads files differently, `loading.WAYS` lacks a way."""
    from executorch.extension.pybindings import portable_lib

    file = tmp_path / "linear.pte"
    file.write_bytes(lowered_by(export(ZOO["linear"], "xnnpack-fp32")).pte)
    loaded = getattr(portable_lib, load)(str(file))
    if load == "_load_for_executorch":
        # A module is read when its method is.
        loaded.run_method("forward", example_of(ZOO["linear"]).inputs)
    assert str(file) in Path("/proc/self/maps").read_text()


@pytest.mark.slow
def test_every_process_has_the_kernels_of_the_release() -> None:
    names = set(kernels.load())
    assert {"quantized_decomposed::quantize_per_tensor.out", "llama::update_cache.out"} <= names
    assert re.fullmatch(rf"{len(kernels.load())} operators sha256 [0-9a-f]{{64}}", kernels.summary())

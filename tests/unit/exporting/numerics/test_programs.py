"""Lowered programs run with the inputs of their signatures, which need not be tensors."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from executorch.exir import to_edge_transform_and_lower
from torch.export.graph_signature import InputKind, OutputKind

from executorch_goldens.artifact import Tensor
from executorch_goldens.exporting.inside.beginning import EdgeMethod
from executorch_goldens.exporting.numerics import programs
from executorch_goldens.exporting.program import Reference
from executorch_goldens.exporting.running import in_edge
from tests import DATA

GIVEN = torch.tensor([1.0, -2.0])


class Everything(torch.nn.Module):
    """Has an effect, a parameter, a state, a buffer that is not saved, and constants of both kinds."""

    count: torch.Tensor
    scale: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([2.0, 3.0]))
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("scale", torch.tensor([10.0, 20.0]), persistent=False)

    def forward(self, x: torch.Tensor, nothing: None, number: int, word: str) -> tuple[Any, ...]:
        torch.ops.aten._print("has an effect")
        self.count += 1.0
        return (
            x * self.weight * self.scale + number + torch.tensor([0.5, 0.25]),
            None,
            self.count + 0.0,
            number,
        )


def lowered() -> torch.export.ExportedProgram:
    program = torch.export.export(Everything(), (GIVEN, None, 7, "word"), strict=True)
    return to_edge_transform_and_lower(program).exported_program()


def run(program: torch.export.ExportedProgram, steps: programs.Steps) -> tuple[Tensor, ...]:
    return in_edge({"forward": EdgeMethod.from_program(program)}, Reference(("forward",), ()), steps)


def test_a_payload_that_the_reference_model_refuses_starts_no_debugger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gdb").write_text(f"#!/bin/sh\ntouch {tmp_path}/called\n")
    (tmp_path / "gdb").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("TOSA_MODEL_NO_BACKTRACE", raising=False)
    payload = (DATA / "payloads" / "cat-h-v-1.2.0.tosa").read_bytes()
    right, wrong = (struct.pack("<4i", 1, 2, 4, columns) for columns in (5, 6))
    assert payload.count(right) == 1
    with pytest.raises(ValueError, match="Invalid TOSA graph"):
        programs.run_model(payload.replace(right, wrong), [])
    assert not (tmp_path / "called").exists()


def test_a_program_has_a_value_for_each_input_that_torch_has(capfd: pytest.CaptureFixture[str]) -> None:
    program = lowered()
    kinds = {spec.kind for spec in program.graph_signature.input_specs}
    assert InputKind.TOKEN in kinds
    assert OutputKind.TOKEN in {spec.kind for spec in program.graph_signature.output_specs}
    result, nothing, count, number = run(program, [[GIVEN], [GIVEN]])
    assert result.array().tolist() == [27.5, -112.75]
    assert (nothing.kind, number.kind) == ("None", "int")
    assert number.array().item() == 7
    # The state of the first run is there in the second; the token is not in its place.
    assert count.array().tolist() == [2.0]
    assert capfd.readouterr().out.count("has an effect") == 2


def test_every_node_of_a_program_with_an_effect_is_computed() -> None:
    program = lowered()
    values = programs.evaluate(program, [GIVEN])
    assert values.keys() == {node.name for node in program.graph.nodes}
    assert values["token"].shape == (0,)


def test_inputs_that_are_no_tensors_are_not_counted() -> None:
    with pytest.raises(RuntimeError, match="the program takes 1 tensors where there are 2"):
        run(lowered(), [[GIVEN, GIVEN]])

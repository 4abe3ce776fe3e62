"""Every case builds the same bits on every torch release, runs, exports strictly, and states its purpose."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import models
from executorch_goldens.artifact import IMPRECISE, Cell
from executorch_goldens.exporting.building import Build
from executorch_goldens.exporting.data import Example, example_of
from executorch_goldens.goldens import golden
from executorch_goldens.settings import releases
from executorch_goldens.zoo.registry import Case, load
from executorch_goldens.zoo.targets import BUILD, TARGETS
from models import situations
from models.cat import HEIGHT, WIDTH, horizontal, vertical
from tests import DATA, GOLDENS

ZOO = load(("models",))

#: One line per case, ``<case> <SHA-256>``. A new or changed case gets the line that its test prints.
DIGESTS = DATA / "digests.txt"

ISSUES = {18866, 18971, 19045, 19152}

#: Values of weights and inputs are multiples of 2**-FRACTION_BITS (the widest: a weight of fan-in 640).
FRACTION_BITS = 7

#: The largest activation of a case must lie between these: far from int8 saturation by one outlier, and from
#: the tiny values whose quantization scale would be clamped to the observers' epsilon.
SMALLEST_PEAK, LARGEST_PEAK = 2.0**-4, 2.0**5

#: Those that make a program by themselves; what the others give is a module and its inputs.
BUILDS = [case for case in ZOO.values() if case.is_build]
#: Modules of the situations.
SITUATIONS = {case.module for case in ZOO.values() if case.module.startswith(f"{situations.__name__}.")}
#: Situations that are about values at the ends of a type, or about nothing but zeros.
AT_THE_ENDS = {
    *("large-number-added", "least-integer-inside", "square-of-places", "symbolic-adaptive-avg-whole"),
    "wide-constants",
}

EXAMPLES = [case for case in ZOO.values() if not case.is_build]

each_case = pytest.mark.parametrize("case", EXAMPLES, ids=lambda case: case.name)
each_build = pytest.mark.parametrize("case", BUILDS, ids=lambda case: case.name)

#: Those of the other families have the weights that training leaves.
DYADIC = [case for case in EXAMPLES if case.family not in ("realistic", "digits")]


def tensors(example: Example) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the weights, buffers and inputs of `example` with their names."""
    for name, held in (*example.module.named_parameters(), *example.module.named_buffers()):
        # torchao's four-bit weights are a tensor made of tensors.
        parts = held.__tensor_flatten__()[0] if hasattr(held, "__tensor_flatten__") else ()
        yield from ((f"{name}.{part}", getattr(held, part)) for part in parts)
        if not parts:
            yield name, held
    for position, value in enumerate(example.inputs):
        yield f"input {position}", value


def digest(example: Example) -> str:
    """Return the SHA-256 over name, dtype, shape, strides and bytes of every tensor of `example`."""
    sha = hashlib.sha256()
    for name, value in tensors(example):
        header = f"{name} {value.dtype} {tuple(value.shape)} {value.stride()}\n"
        sha.update(header.encode())
        bits = value.detach().contiguous()
        # numpy has no bfloat16.
        sha.update((bits.view(torch.int16) if bits.dtype is torch.bfloat16 else bits).numpy().tobytes())
    return sha.hexdigest()


def recorded() -> dict[str, str]:
    return dict(line.split() for line in DIGESTS.read_text(encoding="utf-8").splitlines())


def flat(outputs: object) -> list[torch.Tensor]:
    """Return the tensors of a model's result, a tensor or a tuple of tensors (nested for an LSTM)."""
    if isinstance(outputs, torch.Tensor):
        return [outputs]
    assert isinstance(outputs, tuple)
    return [tensor for output in outputs for tensor in flat(output)]


def run(example: Example) -> list[torch.Tensor]:
    with torch.no_grad():
        return flat(example.module(*example.inputs))


def test_weights_and_inputs_are_the_recorded_bits() -> None:
    known = recorded()
    made = {case.name: digest(example_of(case)) for case in EXAMPLES}
    # The lines for `DIGESTS`.
    assert [f"{name} {sha}" for name, sha in made.items() if known.get(name) != sha] == []


@each_build
@pytest.mark.slow
def test_the_modules_and_inputs_of_a_build_are_the_recorded_bits(case: Case) -> None:
    build = Build(case.name)
    case.build(build)
    examples = {name: method.example for name, method in build.methods.items()}
    assert examples
    sha = hashlib.sha256()
    for name, example in examples.items():
        assert example is not None
        sha.update(f"{name} {digest(example)}\n".encode())
    actual = sha.hexdigest()
    assert recorded().get(case.name) == actual, f"for {DIGESTS.name}: {case.name} {actual}"


def test_every_recorded_digest_belongs_to_a_case() -> None:
    assert list(recorded()) == sorted(case.name for case in ZOO.values())


def test_a_case_built_and_run_twice_gives_the_same_bits() -> None:
    def bits(case: Case) -> list[bytes]:
        return [output.numpy().tobytes() for output in run(example_of(case))]

    assert [case.name for case in EXAMPLES if bits(case) != bits(case)] == []


def test_weights_and_inputs_are_small_dyadic_numbers() -> None:
    def is_dyadic(value: torch.Tensor) -> bool:
        scaled = value.detach().double().numpy() * 2**FRACTION_BITS
        return np.array_equal(scaled, np.rint(scaled))

    # torchao's scales: the largest weight of a group by 7.5, one division, correctly rounded everywhere.
    assert [
        (case.name, name)
        for case in DYADIC
        for name, value in tensors(example_of(case))
        if not (name.endswith("weight.scale") or is_dyadic(value))
    ] == []


def test_the_ramps_of_the_cats_are_the_nearest_floats_on_every_torch() -> None:
    across = np.array([-0.8, -0.4, 0.0, 0.4, 0.8], dtype=np.float32)
    down = np.array([-0.75, -0.25, 0.25, 0.75], dtype=np.float32)
    assert np.array_equal(horizontal()[0, 0].numpy(), np.tile(across, (HEIGHT, 1)))
    assert np.array_equal(vertical()[0, 0].numpy(), np.tile(down[:, None], (1, WIDTH)))


def test_activations_neither_saturate_nor_fade() -> None:
    wide = {case.name: beyond for case in EXAMPLES if (beyond := peaks_beyond(example_of(case)))}
    assert wide.keys() == AT_THE_ENDS


def peaks_beyond(example: Example) -> dict[str, float]:
    """Return the largest inputs and activations, by module, that are not between `SMALLEST_PEAK` and `LARGEST_PEAK`."""
    inputs = {f"input {i}": value for i, value in enumerate(example.inputs) if value.is_floating_point()}
    peaks = {name: float(value.abs().max()) for name, value in inputs.items()}
    ran = []

    def record(name: str) -> None:
        def hook(module: torch.nn.Module, inputs: object, outputs: object) -> None:
            ran.append(name)
            for value in (value for value in flat(outputs) if value.is_floating_point()):
                peaks[name] = max(peaks.get(name, 0.0), float(value.abs().max()))

        example.module.get_submodule(name).register_forward_hook(hook)

    for name, _ in example.module.named_modules():
        record(name)
    # Hooks do what Dynamo does not take within a branch.
    with torch.compiler.set_stance("force_eager"):
        run(example)
    assert ran, "no module ran"
    return {name: peak for name, peak in peaks.items() if not SMALLEST_PEAK <= peak <= LARGEST_PEAK}


@each_case
@pytest.mark.slow
def test_a_case_exports_strictly(case: Case) -> None:
    example = example_of(case)
    exported = torch.export.export(
        example.module, example.inputs, dynamic_shapes=example.dynamic_shapes, strict=True
    )
    assert len(exported.graph_signature.user_outputs) == len(run(example))


def test_a_case_of_constant_outputs_takes_no_input_and_no_other_does() -> None:
    constant = {case.name for case in EXAMPLES if case.constant_outputs}
    assert constant == {case.name for case in EXAMPLES if example_of(case).inputs == ()}


def test_each_upstream_report_has_cases_and_no_other_number_is_claimed() -> None:
    assert {case.issue for case in ZOO.values() if case.issue is not None} == ISSUES


def test_no_two_cases_guard_the_same_thing() -> None:
    assert len({case.guards for case in ZOO.values()}) == len(ZOO)


def test_every_module_of_the_zoo_is_imported_by_its_package() -> None:
    assert models.__file__ is not None
    stems = {path.stem for path in Path(models.__file__).parent.glob("*.py")} - {"__init__"}
    of_package = {case.family for case in ZOO.values() if case.module not in SITUATIONS}
    assert of_package == stems
    assert {case.module.rpartition(".")[2] for case in ZOO.values() if case.module in SITUATIONS} == {
        path.stem for path in Path(situations.__file__ or "").parent.glob("*.py")
    } - {"__init__"}


#: Cells whose outputs rounding moves further than their case accepts, on some releases: each of their operators is
#: judged by itself there, or their SQNR judges them (`executorch_goldens.judging.rightness`, `registry.Case.sqnr`).
MOVED_FAR = {
    "built/depthwise-qat-tosa": ("1.4.1", "1.5.1"),
    "tosa-int/infinite-mask": ("1.2.0", "1.3.1", "1.4.1", "1.5.1"),
    "tosa-u55/narrow-product-inside": ("1.4.1", "1.5.1"),
    "tosa-int/digits-transformer": ("1.1.0", "1.2.0", "1.3.1", "1.4.1", "1.5.1"),
    "tosa-int/masked-attention": ("1.1.0", "1.2.0", "1.3.1", "1.4.1", "1.5.1"),
    "tosa-int/masks": ("1.4.1", "1.5.1"),
    "tosa-int/one-attention": ("1.3.1",),
    "tosa-int/scaled-attention": ("1.3.1", "1.4.1", "1.5.1"),
    "tosa-int/whisper-encoder": ("1.1.0", "1.2.0", "1.3.1", "1.4.1", "1.5.1"),
    "tosa-int/trained-vision-transformer": ("1.1.0", "1.2.0"),
    "xnnpack-int8/digits-transformer": ("1.1.0", "1.2.0", "1.3.1", "1.4.1", "1.5.1"),
    "xnnpack-int8/trained-conformer-block": ("1.1.0", "1.2.0", "1.3.1", "1.4.1", "1.5.1"),
    "xnnpack-int8/trained-vision-transformer": ("1.1.0", "1.2.0", "1.3.1", "1.4.1", "1.5.1"),
}


@pytest.mark.parametrize("release", releases.load().releases)
def test_goldens_were_checked_within_what_their_cases_accept(release: str) -> None:
    """An acceptance that is taken back without recording shows in a run of every cell only."""
    beyond = set()
    for cell in golden.recorded(GOLDENS / release):
        texts = golden.read(golden.file_of(GOLDENS / release, cell))
        checked = texts.numerics
        assert checked is not None, cell
        if checked.power is None:
            continue
        # Rounded up, and perhaps the next.
        accepted = ZOO[cell.case].imprecise.get(cell.target, IMPRECISE)
        if not 2.0 ** (checked.power - 2) < accepted:
            beyond.add(str(cell))
    assert beyond == {cell for cell, on in MOVED_FAR.items() if release in on}
    of_targets = {Cell.named(cell).target for cell in beyond} - {BUILD}
    assert all(TARGETS[target].is_quantized for target in of_targets)

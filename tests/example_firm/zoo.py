"""The firm's programs, one by one: the functions of its release scripts, and the expected results."""

from __future__ import annotations

from pathlib import Path

import torch
from executorch.exir import ExecutorchProgramManager
from firm import building, models
from torch import nn

from executorch_goldens import Build, Data, Example, case

HERE = Path(__file__).parent


@case(guards="the wake word, int8, calibrated on recorded frames")
def wake_word(build: Build) -> ExecutorchProgramManager:
    inputs = (build.data.tensor("frames", 1, 1, 49, 10),)
    model = build.method(build.data.fill(models.WakeWord()), inputs)
    data = [inputs, *(build.data.all_like(inputs, kind) for kind in ("drawn", "extremes"))]
    return building.lowered(build.quantized(building.quantized(model, inputs, data)), inputs)


@case(guards="the classifier, MobileNetV3 of timm, float32")
def classifier(build: Build) -> ExecutorchProgramManager:
    import timm

    inputs = (build.data.tensor("image", 1, 3, 64, 64),)
    network = timm.create_model("mobilenetv3_small_050", num_classes=10, exportable=True)
    return building.lowered(build.method(build.data.fill_normal(network), inputs), inputs)


@case(guards="the detector: boxes in pixels beside scores and masks, six outputs by name")
def detector(build: Build) -> ExecutorchProgramManager:
    inputs = (build.data.tensor("image", 1, 3, 32, 32),)
    return building.lowered(build.method(build.data.fill(models.Detector()), inputs), inputs)


@case(guards="the denoiser keeps its state from frame to frame")
def denoiser(build: Build) -> ExecutorchProgramManager:
    inputs = (build.data.tensor("frame", 1, 16),)
    return building.lowered(build.method(build.data.fill(models.Denoiser()), inputs), inputs)


@case(guards="the predictor's state goes in and out, nested", backends=("xnnpack-fp32", "tosa-fp"))
def predictor(data: Data) -> Example:
    state = {"layer": (data.tensor("hidden", 1, 8), data.tensor("cell", 1, 8))}
    return Example(models.Predictor(), (data.tensor("x", 1, 4), state), kwargs={"scale": 0.5})


def decoder(build: Build) -> models.Decoder:
    torch.manual_seed(0)
    return models.Decoder().eval()


def in_8da4w(model: nn.Module) -> nn.Module:
    """Quantize the weights of linear layers to int4 in groups of 32, in place, and return the model."""
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerGroup

    config = Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(32))
    quantize_(model, config)
    return model


@case(guards="the assistant, 8da4w by two partitioners, one token at a time", sqnr={"built": 10})
def assistant(build: Build) -> ExecutorchProgramManager:
    inputs = (torch.tensor([[3]]), torch.tensor([0]))
    model = build.method(decoder(build), inputs)
    return building.language_model({"forward": (build.quantized(in_8da4w(model)), inputs)})


@case(guards="prefill and decode in one program share weights and cache")
def dialogue(build: Build) -> ExecutorchProgramManager:
    whole = decoder(build)
    prompt = (torch.tensor([[5, 1, 4, 7]]), torch.arange(4))
    token = (torch.tensor([[2]]), torch.tensor([4]))
    methods = {
        "prefill": (build.method(models.Last(whole), prompt, "prefill"), prompt),
        "decode": (build.method(models.Step(whole), token, "decode"), token),
    }
    build.in_order("prefill", "decode")
    return building.language_model(methods)


@case(guards="the ranker as it was trained: a checkpoint, with a batch of any size")
def ranker(build: Build) -> ExecutorchProgramManager:
    model = models.Ranker()
    model.load_state_dict(torch.load(HERE / "cases" / "ranker.pt", weights_only=True))
    inputs = (build.data.tensor("features", 4, 16),)
    shapes = {"features": {0: torch.export.Dim("batch", min=2, max=16)}}
    build.method(model.eval(), inputs, dynamic_shapes=shapes)
    return building.lowered(model, inputs, shapes)


@case(
    guards="the wake word for a chip that has its weights in a file of their own, and runs all of it itself"
)
def wake_word_apart(build: Build) -> ExecutorchProgramManager:
    from executorch.exir import ExecutorchBackendConfig, to_edge

    inputs = (build.data.tensor("frames", 1, 1, 49, 10),)
    model = build.method(build.data.fill(models.WakeWord()), inputs)
    edge = to_edge(torch.export.export(model, inputs, strict=True), compile_config=building.CONFIG)
    return edge.to_executorch(ExecutorchBackendConfig(external_constants=True))


@case(
    guards="the keypoints, which come from a supplier without source",
    backends=("xnnpack-fp32", "xnnpack-int8"),
)
def keypoints(data: Data) -> Example:
    program = torch.export.load(HERE / "cases" / "keypoints.pt2")
    inputs = (data.tensor("image", 1, 1, 16, 16),)
    return Example(
        program.module(),
        inputs,
        fill=False,
        recorded="cases/keypoints.npz",
        program=program,
    )

"""Networks with weights from training on real images (``digits.npz``), as scikit-learn's ``load_digits`` has them.

The images are of "Optical Recognition of Handwritten Digits" (E. Alpaydin, C. Kaynak, UCI Machine Learning Repository,
1998, CC BY 4.0, https://doi.org/10.24432/C50P49), 8 by 8 pixels, 0 to 16. AdamW took 600 steps, each of 64 of the first
1,500.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import nn

from executorch_goldens import Data, Example, case
from models.image_networks import GatedBottleneck, conv_bn
from models.realistic import HISTOGRAM
from models.sequence_networks import VisionTransformer


def convolutional() -> nn.Module:
    """Return MobileNetV3's blocks over an image of 8 by 8."""
    return nn.Sequential(
        *(*conv_bn(1, 8), nn.Hardswish()),
        *(GatedBottleneck(8, 8, 1), GatedBottleneck(8, 12, 2), GatedBottleneck(12, 12, 1)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        *(nn.Linear(12, 32), nn.Hardswish(), nn.Linear(32, 10)),
    )


class BatchedTransformer(VisionTransformer):
    """A ViT whose class token is repeated for each image of a batch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat((self.token.expand(len(x), -1, -1), tokens), dim=1) + self.positions
        return self.head(self.blocks(tokens)[:, 0])  # type: ignore[no-any-return]


def transformer() -> nn.Module:
    """Return a ViT over sixteen patches of 2 by 2."""
    return BatchedTransformer(channels=1, size=8, patch=2, width=16, classes=10)


NETWORKS: Mapping[str, Callable[[], nn.Module]] = {"convolutional": convolutional, "transformer": transformer}


def from_training(name: str, images: int) -> Example:
    """Return a network with its trained weights (float16 in the file), and some images of its test set."""
    module = NETWORKS[name]()
    with np.load(Path(__file__).with_suffix(".npz")) as stored:
        state = {
            key.removeprefix(f"{name}."): torch.from_numpy(stored[key].astype(np.float32))
            for key in stored.files
            if key.startswith(f"{name}.")
        }
        x = torch.from_numpy(stored["images"][:images].astype(np.float32) / 16).unsqueeze(1)
    # A batch norm's count of batches is no float, and plays no part in inference.
    lacking = set(module.load_state_dict(state, strict=False).missing_keys)
    assert all(key.endswith("num_batches_tracked") for key in lacking), lacking
    return Example(module.eval(), (x,), fill=False)


#: What training leaves matters where it is quantized.
QUANTIZED = ("tosa-int", "xnnpack-int8")
#: Decibels that judge these cases. On 1.1.0 and 1.2.0 a process that reads the values inside them dies, so that their
#: operators cannot be judged one by one.
NEAR = {"xnnpack-int8": 20.0}


@case(
    guards="MobileNetV3's blocks with trained weights still tell digits apart",
    quantization=HISTOGRAM,
    backends=QUANTIZED,
    sqnr=NEAR,
)
def digits_mobilenet(data: Data) -> Example:
    return from_training("convolutional", images=4)


@case(
    guards="a ViT with trained weights still tells digits apart",
    quantization=HISTOGRAM,
    backends=QUANTIZED,
    sqnr=NEAR,
)
def digits_transformer(data: Data) -> Example:
    return from_training("transformer", images=4)

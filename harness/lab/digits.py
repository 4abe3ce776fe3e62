"""Trains the networks of ``models/digits.py`` and writes ``models/digits.npz``: run once, with scikit-learn.

The images are scikit-learn's copy of "Optical Recognition of Handwritten Digits" (E. Alpaydin, C. Kaynak, UCI Machine
Learning Repository, 1998, CC BY 4.0, https://doi.org/10.24432/C50P49): 1,797 of 8 by 8 pixels, 0 to 16. What is trained
here depends on the machine in its last bits; what is written is what the zoo has.

    python -m lab.digits
"""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np

#: Steps of Adam, images of each step, and images that are kept for the test.
STEPS, BATCH, TEST = 600, 64, 297
#: Images that the cases are run on.
SHOWN = 8


def main() -> None:
    import torch
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    # By name, as every instrument loads a zoo.
    digits = importlib.import_module("models.digits")
    images, classes = load_digits(return_X_y=True)
    x = torch.from_numpy(images.astype(np.float32) / 16).reshape(-1, 1, 8, 8)
    y = torch.from_numpy(classes)
    written = {"images": (x[-SHOWN:, 0].numpy() * 16).astype(np.uint8)}
    for name, network in digits.NETWORKS.items():
        torch.manual_seed(0)
        module = network().train()
        optimizer = torch.optim.AdamW(module.parameters(), lr=5e-3, weight_decay=1e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=STEPS)
        for _ in range(STEPS):
            picked = torch.randint(len(x) - TEST, (BATCH,))
            loss = torch.nn.functional.cross_entropy(module(x[picked]), y[picked])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
        values = {key: value for key, value in module.state_dict().items() if value.is_floating_point()}
        written |= {f"{name}.{key}": value.numpy().astype(np.float16) for key, value in values.items()}
        right = (module.eval()(x[-TEST:]).argmax(1) == y[-TEST:]).float().mean()
        print(f"{name}: {sum(map(torch.numel, values.values()))} values, {right:.1%} of {TEST} right")
    np.savez_compressed(Path(str(digits.__file__)).with_suffix(".npz"), **written)


if __name__ == "__main__":
    main()

"""A test of the product's own suite."""

import torch

from models import trained


def test_spotter_of_two_words(golden_export):
    golden_export(trained(), (torch.ones(2, 16),), targets=["xnnpack-fp32"])

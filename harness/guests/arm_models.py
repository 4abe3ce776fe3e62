"""Arm's tests of whole models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.guests.cases import built, register
from harness.guests.listing import Entry

if TYPE_CHECKING:
    from harness.exporting.data import Data, Example


def build(entries: Sequence[Entry], data: Data) -> Example:
    return built("arm-models", entries, data)


register("arm-models", build)

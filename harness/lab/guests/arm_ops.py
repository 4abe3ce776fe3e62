"""Arm's tests of single operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lab.guests.cases import built, register
from lab.guests.listing import Entry

if TYPE_CHECKING:
    from executorch_goldens.exporting.data import Data, Example


def build(entries: Sequence[Entry], data: Data) -> Example:
    return built("arm-ops", entries, data)


register("arm-ops", build)

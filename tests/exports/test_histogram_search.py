"""Ranges that histogram observers search: among numbers they are those that upstream finds among tensors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torchao.quantization.pt2e.observer import HistogramObserver

from executorch_goldens.patches.shortcuts import SHORTCUTS

Search = Callable[[HistogramObserver], tuple[torch.Tensor, torch.Tensor]]


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> tuple[Search, Search]:
    """Upstream's search, and the shortcut's."""
    upstream = HistogramObserver._non_linear_param_search
    monkeypatch.setattr(HistogramObserver, "_non_linear_param_search", upstream)
    SHORTCUTS["histogram-search"].install()
    return upstream, HistogramObserver._non_linear_param_search


def drawn(kind: str, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(int(torch.randint(1, 3000, (), generator=generator)), generator=generator)
    values = values * 10.0 ** float(torch.randint(-6, 7, (), generator=generator))
    made = {
        "normal": values,
        "positive": values.abs(),
        "one value": values[:1].expand(50),
        "mostly zero": torch.relu(values),
        "outliers": values * values.abs().clamp(max=1e6) ** 2,
        "few values": (values / values.abs().max() * 3).round(),
    }
    return made[kind]


@pytest.mark.parametrize("kind", ["normal", "positive", "one value", "mostly zero", "outliers", "few values"])
def test_the_range_is_what_upstream_finds(kind: str, searches: tuple[Search, Search]) -> None:
    upstream, shortcut = searches
    for seed in range(6):
        observer = HistogramObserver()
        for further in range(1 + seed % 3):
            observer(drawn(kind, 100 * seed + further))
        for expected, found in zip(upstream(observer), shortcut(observer), strict=True):
            assert torch.equal(expected, found)
            assert expected.dtype == found.dtype


@pytest.mark.parametrize("turned", [False, True])
def test_a_bound_is_rounded_as_a_tensor_rounds_it(turned: bool, searches: tuple[Search, Search]) -> None:
    upstream, shortcut = searches
    counts = [2.0, 1.0, 3.0, 0.0, 0.0, 2.0, 0.0, 0.0, 1e5, 0.0, 2.0, 1e5, 2.0, 0.0, 1.0, 2.0]
    observer = HistogramObserver(bins=16)
    observer.histogram = torch.tensor(counts[::-1] if turned else counts)
    observer.min_val, observer.max_val = torch.tensor(-1.0), torch.tensor(1.0)
    assert [float(each) for each in shortcut(observer)] == [float(each) for each in upstream(observer)]


def test_a_histogram_of_another_type_is_searched_by_upstream(
    searches: tuple[Search, Search], monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream, shortcut = searches
    observer = HistogramObserver()
    observer(drawn("normal", 1))
    observer.histogram = observer.histogram.double()
    assert [float(each) for each in shortcut(observer)] == [float(each) for each in upstream(observer)]
    # The bounds of a histogram in float64 are not rounded.
    monkeypatch.setattr("executorch_goldens.patches.shortcuts.histogram_search.single", lambda value: 0.0)
    assert [float(each) for each in shortcut(observer)] == [float(each) for each in upstream(observer)]

"""Search the range of a histogram observer among numbers of Python.

Converting a quantized model asks each histogram observer for its range. The search compares, one after the other,
some thousands of cumulative sums with a bound, each as a tensor: 15 ms an observer, and a transformer has hundreds. The
sums are float32, and so is a bound that a float32 tensor is compared with: as numbers they compare the same. The
errors between which the search decides are those of upstream's own method.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from executorch_goldens.patches.shortcuts.shortcut import Shortcut, by_release

#: Code that is replaced or relied on: digests of its source, with the releases that have it.
FITS = {
    "torchao.quantization.pt2e.observer:HistogramObserver._non_linear_param_search": {
        "9306a687ba73a3044c555e58d19ad69b11ee000779a3088e55da08b954b472eb": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
}


def _install() -> None:
    import torch
    from torchao.quantization.pt2e import observer

    room: Any = observer.HistogramObserver
    search = room._non_linear_param_search

    @functools.wraps(search)
    def search_numbers(self: Any) -> tuple[Any, Any]:
        if self.histogram.dtype != torch.float32 or self.histogram.size()[0] != self.bins:
            return search(self)  # type: ignore[no-any-return]
        width = (self.max_val - self.min_val) / self.bins
        total = torch.sum(self.histogram).item()
        sums = torch.cumsum(self.histogram, dim=0).tolist()
        step, alpha, beta = 1e-5, 0.0, 1.0
        start, end = 0, self.bins - 1
        least = float("inf")
        while alpha < beta:
            next_alpha, next_beta = alpha + step, beta - step
            left, right = start, end
            low, high = single(next_alpha * total), single(next_beta * total)
            while left < end and sums[left] < low:
                left += 1
            while right > start and sums[right] > high:
                right -= 1
            next_start, next_end = start, end
            if left - start > end - right:
                next_start, alpha = left, next_alpha
            else:
                next_end, beta = right, next_beta
            if next_start == start and next_end == end:
                continue
            norm = self._compute_quantization_error(next_start, next_end)
            if norm > least:
                break
            least, start, end = norm, next_start, next_end
        return self.min_val + width * start, self.min_val + width * (end + 1)

    room._non_linear_param_search = search_numbers


def single(value: float) -> float:
    """Return `value` rounded to float32.

    >>> single(0.5), single(0.1)
    (0.5, 0.10000000149011612)
    """
    return ctypes.c_float(value).value


SHORTCUT = Shortcut(
    "histogram-search",
    "the range of a histogram observer is searched among numbers of Python",
    by_release(FITS),
    _install,
)

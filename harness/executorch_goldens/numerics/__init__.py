"""Tolerances and distances of numbers: plain arithmetic, without torch."""

#: Rounding that may move an output by more than this part of its largest value makes the check meaningless.
IMPRECISE = 0.1

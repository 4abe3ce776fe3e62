"""Tolerances and distances of numbers: plain arithmetic, without torch."""

"""Verdicts about cells, goldens, and the pass that made a difference."""

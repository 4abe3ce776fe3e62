"""Compact goldens: those of zoos of thousands of cells, guests and pairs, with digests and counts in place of texts.

`form` makes one of a golden and compares two, `table` has those of a target in one file, `goldens` reads and writes
them, `known` has what is wrong with cells beside them, `judging` judges a cell, `runs` all cells of a zoo.
"""

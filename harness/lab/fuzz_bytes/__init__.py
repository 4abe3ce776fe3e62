"""Fuzzing of everything that reads files of strangers; `nox -s lab -- fuzz-bytes`."""

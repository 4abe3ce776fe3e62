"""Fuzzing of everything that reads files of strangers; `nox -s fuzz-bytes`."""

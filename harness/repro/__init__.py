"""``python -m harness repro``: from a cell that is wrong to one script that shows it without the harness.

The cell's exported graph is a `program.Program`, which can be written as Python. Written so, it is a case of the zoo's
kind (`candidate`), which a sweep exports and `harness.judging.verdict` judges like any other; `defect` reads from that
what a script can show, `shrink` tries smaller programs for as long as they show the same, `script` writes the last of
them, `alone` runs that as its reader will.
"""

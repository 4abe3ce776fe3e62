"""``goldens repro``: from a cell that is wrong to one script that shows it without the harness.

The cell's exported graph is a `program.GraphProgram`, which can be written as Python. Written so, it is
a case like any of the zoo's (`candidate`): a sweep exports it and `judging.verdict` judges it. From that,
`defect` reads what a script can show. `shrink` tries smaller programs for as long as they show the
same, `script` writes the last of them, and `alone` runs that script as its reader will.
"""

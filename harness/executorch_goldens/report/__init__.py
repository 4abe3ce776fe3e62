"""``goldens report``: the results of runs, as one HTML file that opens from disk and needs no network.

A run leaves, for each cell that is not as it should be, what its texts do not hold (`evidence`). The report reads the
results (`gathering`), has a room for each view (`grid`, `causes`, `cell` and the parts of its page, `drifting`), and
writes them as one file (`document`).
"""

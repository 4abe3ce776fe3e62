"""``goldens report``: the results of runs, as one HTML file that opens from disk and needs no network."""

"""Reach: which statements of a release ran while each cell of each source was lowered (the plugin `compare`)."""

"""Store of earlier exports: all dependencies of an artifact, its key, and the entries."""

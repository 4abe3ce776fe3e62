"""The harness's own tests. A package, so that exporting workers can import ``tests.zoo`` by this name."""

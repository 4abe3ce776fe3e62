"""Base against head: two toolchains over the same cells, without goldens."""

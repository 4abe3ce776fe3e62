"""Faults made for real during runs, and the invariants that must hold afterwards; `nox -s lab -- faults`."""

"""Faults that are made for real while runs go on, and what must hold afterwards; `nox -s lab -- faults`."""

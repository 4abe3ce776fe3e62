"""The sentences about what was found: each is made here, last, from data."""

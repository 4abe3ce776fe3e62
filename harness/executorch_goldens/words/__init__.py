"""The sentences: what was found, and what a person may do, from data."""

"""One call of an operator each: what its arguments can be, and what is around it."""

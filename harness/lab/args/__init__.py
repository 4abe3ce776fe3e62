"""A source of models: one call of an operator each, drawn from the operators' schemas."""

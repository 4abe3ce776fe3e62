"""A matrix of situations: every pair of two of their factors is in some small model (a covering array of strength 2).

`factors` says which factors there are, and which of their values fit each other. `rows.tsv` is the array, frozen: a
line a model. `text` writes a model as Python, and `zoo` registers them. Nobody chose a row: the array is
``covertable``'s.
"""

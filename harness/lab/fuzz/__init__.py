"""The generator of models: small well-formed models drawn at random, which findings were met in.

`sketch` draws what a model computes from the tables of `elementwise`, `shapes`, `reductions`, `layers` and `flow`.
`model` writes it as Python. Nothing here imports torch: a name gives the same text everywhere.
"""

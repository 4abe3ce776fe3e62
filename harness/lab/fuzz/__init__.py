"""The generator of models: small well-formed models drawn at random, exported and judged as cells are.

`sketch` draws what a model computes from the tables of `elementwise`, `shapes`, `reductions`, `layers` and `flow`.
`model` writes it as Python, which `zoo` registers as a case. `search` exports and judges, `reduction` makes a model
that fails smaller, `explained` files it under a finding. Nothing here imports torch: a name gives the same text
everywhere.
"""

#: Environment variable: the folder of the models that `zoo` registers.
FOLDER = "GOLDENS_DRAWN"

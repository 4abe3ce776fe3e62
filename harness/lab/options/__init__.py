"""A matrix of options: every pair of values of two options of quantizers and of lowering is in some program.

`factors` says which options there are, which releases have them and which go together. ``xnnpack.tsv`` and
``tosa.tsv`` are the arrays, a line a program, which covertable makes. `models` has the models, `programs` lowers one
as its row says, and `zoo` registers each as a case that makes its program by itself.
"""

"""Finds where a program departs from eager: the first operator inside a delegate with different values.

A delegate keeps the graph that it was lowered from. That graph is run eagerly on what the delegate was given
(`evaluation`), and each of its values is compared with the tensor that the delegate holds it in (`comparison`; `tosa`
and `xnnpack` fetch those tensors). From the outputs that depart, the way leads back through tensors that depart. The
first of them whose operator, run eagerly on the delegate's own values, gives something else is where it begins;
operators that only propagate a difference are skipped (`beginning`).
"""

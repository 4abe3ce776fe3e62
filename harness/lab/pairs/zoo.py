"""The matrix as a zoo: each row of ``rows.tsv`` is a case, for the one target that the row names."""

from lab.pairs.cases import register

register(__name__)

"""The wider matrix as a zoo: each row of ``lab/pairs/wider.tsv`` is a case, for the one target that the row names."""

from lab.pairs import rows
from lab.pairs.cases import register

register(rows.WIDER, __name__, run_on=("example",))

"""The matrix as a zoo: each row of ``rows.tsv`` is a case, for the one target that the row names."""

from lab.pairs import rows
from lab.pairs.cases import register

#: Releases that have goldens of it: those that fixes are taken back in (harness/lab/docs/history.md).
RELEASES = ("1.3.1", "1.5.1")

register(rows.PAIRS, __name__, RELEASES)

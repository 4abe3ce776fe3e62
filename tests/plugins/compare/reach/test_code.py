"""Functions and statements of a source: what is one, and what leaves its digest as it is."""

from __future__ import annotations

import pytest

from tests.plugins.compare.reach.packages import FOLD, function

CALL = "Fold.call"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('        if node.rank > 4:\n', '        # A comment.\n        if (\n            node.rank > 4\n        ):\n'),
        ("    def call(self, node):\n", '    def call(self, node):\n        """Fold."""\n'),
        ("LIMITS = ", "MORE = 1\n\n\nLIMITS = "),
        ("    def call(", "    def double(self, scale):\n        return 2 * scale\n\n    def call("),
    ],
    ids=["layout", "docstring", "moved", "neighbour"],
)  # fmt: skip
def test_the_digest_is_of_code_alone(before: str, after: str) -> None:
    assert before in FOLD
    assert function(FOLD.replace(before, after), CALL).digest == function(FOLD, CALL).digest


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("rank > 4", "rank > 5"),
        ("call(self, node)", "call(self, node=None)"),
        ("    def call(", "    @staticmethod\n    def call("),
        (
            "            scale = self.half(scale)",
            "            scale = self.half(scale)\n            scale += 1",
        ),
    ],
)
def test_another_statement_parameter_or_decorator_is_another_digest(before: str, after: str) -> None:
    assert before in FOLD
    assert function(FOLD.replace(before, after), CALL).digest != function(FOLD, CALL).digest


def test_a_statement_has_its_lines_and_says_whether_it_only_raises_or_may_do_nothing() -> None:
    found = [(each.first, each.raises, each.skips) for each in function(FOLD, CALL).statements]
    assert found == [
        *((11, False, True), (12, True, False), (13, False, False)),
        *((14, False, True), (15, False, False), (16, False, False)),
    ]

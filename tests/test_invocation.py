"""The commands that messages print are the one that was typed, for one cell."""

from __future__ import annotations

import pytest

from harness import invocation


@pytest.mark.parametrize(
    ("called", "again"),
    [
        ("python -m harness run", "python -m harness run --cell a/b"),
        ("python -m harness run --cell=c/d -m slow -x", "python -m harness run -x --cell a/b"),
        ("python -m pytest -p harness.plugin -k x", "python -m pytest -p harness.plugin --cell a/b"),
        ("pytest -m slow --jobs 2", "pytest --jobs 2 --cell a/b"),
    ],
)
def test_a_command_for_one_cell_keeps_the_program_and_drops_what_selected(called: str, again: str) -> None:
    assert invocation.again(called.split(), "--cell", "a/b") == again

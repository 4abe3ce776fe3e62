"""The commands that messages print are the one that was typed, for one cell."""

from __future__ import annotations

import pytest

from executorch_goldens.files import invocation


@pytest.mark.parametrize(
    ("called", "again"),
    [
        ("goldens run", "goldens run --cell a/b"),
        ("goldens run --cell=c/d -m slow -x", "goldens run -x --cell a/b"),
        (
            "python -m pytest -p executorch_goldens.running.plugin -k x",
            "python -m pytest -p executorch_goldens.running.plugin --cell a/b",
        ),
        ("pytest -m slow --jobs 2", "pytest --jobs 2 --cell a/b"),
    ],
)
def test_a_command_for_one_cell_keeps_the_program_and_drops_what_selected(called: str, again: str) -> None:
    assert invocation.again(called.split(), "--cell", "a/b") == again

"""The page about results as data."""

from __future__ import annotations

import pytest

from lab.results import FILES, fields


@pytest.mark.parametrize("of", FILES)
def test_each_field_of_a_file_has_a_meaning(of: str) -> None:
    assert not [(each, name) for each in FILES[of] for name, _, means in fields(each) if not means]

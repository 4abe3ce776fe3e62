"""What a comparison leaves."""

from pathlib import Path

from executorch_goldens.results.compared import BOTH, KINDS, MARK, RESULTS, SAME, folder_of
from executorch_goldens.words.kinds import WORDS


def test_every_kind_of_difference_has_words_in_their_order() -> None:
    assert [*WORDS] == [*KINDS, BOTH, SAME]


def test_results_are_of_a_comparison_where_the_folder_above_is_one(tmp_path: Path) -> None:
    assert folder_of(tmp_path / RESULTS) is None
    (tmp_path / MARK).touch()
    assert folder_of(tmp_path / RESULTS) == tmp_path.resolve()
    assert folder_of(tmp_path / RESULTS / "1.5.1") is None

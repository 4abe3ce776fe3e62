"""What a comparison leaves."""

from executorch_goldens.results.compared import BOTH, KINDS, SAME
from executorch_goldens.words.kinds import WORDS


def test_every_kind_of_difference_has_words_in_their_order() -> None:
    assert [*WORDS] == [*KINDS, BOTH, SAME]

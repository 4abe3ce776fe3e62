"""The page of a cause in a report agrees with the review: wrong cells elsewhere, and the required word."""

from __future__ import annotations

import base64
import gzip
import re
from pathlib import Path

from executorch_goldens import cli
from executorch_goldens.review.listing import ALTHOUGH
from tests.commands.review.test_review import made_wrong
from tests.support.runner import Runner


def pages(file: Path) -> list[str]:
    """Return the pages of a report, which are packed in it."""
    packed = re.findall(r'id="page-\d+">([^<]*)<', file.read_text())
    return [gzip.decompress(base64.b64decode(each)).decode() for each in packed]


def test_accepting_a_cause_that_is_wrong_elsewhere_takes_the_second_word_on_its_page(
    proposed: Runner, tmp_path: Path
) -> None:
    made = tmp_path / "report.html"
    words = [f"--goldens={proposed.goldens}", str(proposed.folder / "sweeps"), "--html", str(made)]
    assert cli.main(["report", *words]) == cli.SAME
    assert not any(ALTHOUGH in page for page in pages(made))
    name = made_wrong(proposed, "tosa-fp/alpha").name
    assert cli.main(["report", *words]) == cli.SAME
    (page,) = (page for page in pages(made) if f"--accept {name}" in page)
    assert f"goldens review --accept {name} {ALTHOUGH}<" in page
    assert "the same cause makes 1 cell wrong: tosa-fp/alpha (corrupt)" in page

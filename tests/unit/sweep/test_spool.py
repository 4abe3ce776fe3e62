"""What waits to be judged, and what an export may leave."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import pytest

from executorch_goldens.artifact import Artifact, Failure, Tensor, decoded, encoded
from executorch_goldens.sweep.spool import Spool

FAILURE = Failure("lower", "RuntimeError", "no", None, None, "traceback")


def file(folder: Path, content: bytes) -> io.FileIO:
    made = io.FileIO(folder / "left", "w+")
    made.write(content)
    return made


def test_what_is_taken_is_what_was_added_and_needs_no_room_then(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    one, other = spool.add(file(tmp_path, b"one")), spool.add(file(tmp_path, b"another"))
    assert list(tmp_path.iterdir()) == [tmp_path / "left"]
    assert spool.take(other) == b"another"
    assert spool.take(one) == b"one"
    assert spool.add(file(tmp_path, b"third")).start == 0
    spool.close()


def test_an_artifact_is_the_same_on_the_other_side_with_its_twins() -> None:
    twin = Artifact(FAILURE, ("a-patch",))
    artifact = Artifact(FAILURE, (), twins=(twin, twin), reach={"file.py": (1, -2)})
    assert decoded(encoded(artifact)) == artifact


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"broken",
        pickle.dumps(Artifact(FAILURE, ())),
        encoded(Artifact(FAILURE, ()))[:-1],
        encoded(Artifact(FAILURE, ())) + b"more",
    ],
)
def test_other_content_is_no_artifact(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decoded(content)


@pytest.mark.parametrize(("dtype", "shape"), [("object", (1,)), ("int8", (-2, -4)), ("int8", (7,))])
def test_a_tensor_is_numbers_that_fit_its_shape(dtype: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=dtype):
        Tensor(dtype, shape, bytes(8))

"""The words of a divergence and of an attribution, one for each that there is."""

from __future__ import annotations

from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import PARTITIONING, PassRun
from executorch_goldens.judging.attribution import Attribution, Follows
from executorch_goldens.judging.divergence import Divergence, How
from executorch_goldens.words import causes
from tests.support.screens import of_divergence, screen

FUSE = PassRun("arm backend", "Fuse", "b", True)
TAGGED = PassRun(PARTITIONING, "TOSAPartitioner", "tag0", True)
#: What each has beside its name.
OF = {
    How.RESULTS: {"runs": (TAGGED,), "number": 1, "total": 3, "tags": ("tag0 tag1", "tag1 tag0")},
    How.NAMES: {"runs": (FUSE,), "number": 2, "total": 3},
    How.NODES: {"runs": (TAGGED,), "number": 1, "total": 3},
    How.PASSES: {"runs": (FUSE, None), "number": 2},
    How.DIFFERS: {"runs": (FUSE,)},
    How.ADDED: {"runs": (FUSE,)},
    How.IDLE: {"runs": (FUSE,)},
    How.GONE: {"runs": (FUSE,)},
    How.FAILS: {},
    How.WRITER: {},
    How.WEIGHTS: {"weights": ("net.weight", "net.bias")},
}
FOLLOWS = (
    Attribution(Follows.ALONE, (("hash seed",),), ("hash seed", "heap")),
    Attribution(Follows.ALONE, (("heap",), ("history",)), ("hash seed", "heap", "history")),
    Attribution(Follows.TOGETHER, (("hash seed", "heap"), ("heap", "history"))),
    Attribution(Follows.SEVERAL, known=("hash seed", "heap", "history")),
    Attribution(Follows.GONE, exports=6),
    Attribution(Follows.NOTHING, variation="seed0-heap0"),
    Attribution(Follows.ADDRESS, variation="seed0-heap0"),
    Attribution(Follows.CONSTANT, exports=4),
    Attribution(Follows.LOST, why="killed by SIGSEGV"),
    Attribution(Follows.ELSEWHERE, why="--shard"),
    Attribution(Follows.UNSOUGHT, why="60"),
)


def test_each_divergence_has_words(snapshot: SnapshotAssertion) -> None:
    assert {*OF} == {*How}
    found = [Divergence("Fuse", how, **fields) for how, fields in OF.items()]  # type: ignore[arg-type]
    assert of_divergence(*found) == snapshot


def test_each_attribution_has_words(snapshot: SnapshotAssertion) -> None:
    assert {each.follows for each in FOLLOWS} == {*Follows}
    assert screen(map(causes.attribution, FOLLOWS)) == snapshot

"""Which worker gets which batch: over fleets of any size, and as workers come, go and refuse."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executorch_goldens_plugins.cluster.dealing import AT_WORKER, START, Dealing

#: Exports of a batch, where a test does not say.
EXPORTS = 10


class Fleet:
    """Workers that export batches one after the other, each batch in one turn, without clocks or templates.

    Attributes
    ----------
    at
        Numbers of the batches of each worker, in the order in which they were dealt.
    exported
        The worker and the number of each exported batch, in order.
    """

    def __init__(self, workers: int, variations: int, groups: int, exports: int = EXPORTS) -> None:
        self.dealing = Dealing()
        self.variations = variations
        self.exports = exports
        for number in range(groups * variations):
            self.let_wait(number)
        self.at: dict[str, list[int]] = defaultdict(list)
        self.exported: list[tuple[str, int]] = []
        self.dealing.jobs = {f"worker-{number}": 1 for number in range(workers)}
        self.deal()

    def let_wait(self, number: int) -> None:
        self.dealing.add(number, str(number % self.variations), self.exports)

    def deal(self) -> None:
        for worker, number in self.dealing.deal():
            self.at[worker].append(number)

    def export(self, worker: str) -> None:
        number = self.at[worker].pop(0)
        self.exported.append((worker, number))
        self.dealing.end(worker, number, exported=True)
        self.deal()

    def lose(self, worker: str) -> None:
        """Let a worker be gone, with all that it has."""
        del self.dealing.jobs[worker]
        for number in self.at.pop(worker):
            self.dealing.end(worker, number, exported=False)
            self.let_wait(number)
        self.deal()

    def finish(self) -> Fleet:
        """Let busy workers export in turns until none is busy."""
        while busy := [worker for worker, numbers in self.at.items() if numbers]:
            for worker in busy:
                self.export(worker)
        return self

    def templates(self) -> dict[str, set[int]]:
        """Return the variations that each worker has exported."""
        found: dict[str, set[int]] = defaultdict(set)
        for worker, number in self.exported:
            found[worker].add(number % self.variations)
        return dict(found)


@given(variations=st.integers(1, 6), groups=st.integers(1, 12))
def test_a_worker_alone_exports_in_the_order_of_the_batches(variations: int, groups: int) -> None:
    fleet = Fleet(1, variations, groups).finish()
    assert [number for _, number in fleet.exported] == list(range(variations * groups))


@pytest.mark.parametrize(
    ("workers", "variations", "each"), [(2, 2, 1), (4, 4, 1), (2, 4, 2), (3, 6, 2), (6, 2, 1), (8, 4, 1)]
)
def test_workers_share_the_variations_evenly(workers: int, variations: int, each: int) -> None:
    found = Fleet(workers, variations, groups=24).finish().templates()
    assert len(found) == workers
    assert {len(one) for one in found.values()} == {each}
    holders = [sum(variation in one for one in found.values()) for variation in range(variations)]
    assert set(holders) == {workers * each // variations}


def test_a_worker_too_many_takes_the_variation_with_more_exports_waiting() -> None:
    dealing = Dealing()
    dealing.jobs = {"one": 1, "two": 1, "three": 1}
    for number in range(20):
        dealing.add(number, "few" if number in (0, 2, 4) else "many", 10)
    first = dict(reversed(list(dealing.deal())))
    assert first == {"one": 0, "two": 1, "three": 3}


def test_a_worker_of_many_jobs_counts_as_many_workers() -> None:
    dealing = Dealing()
    dealing.jobs = {"large": 8, "small": 1, "late": 1}
    for number in range(20):
        dealing.add(number, str(number % 2), 100)
    dealt = list(dealing.deal())
    assert dealt[:3] == [("large", 0), ("small", 1), ("late", 3)]


def test_at_the_start_every_worker_gets_a_batch_however_little_there_is() -> None:
    fleet = Fleet(8, 2, groups=4, exports=1)
    assert all(len(fleet.at[f"worker-{number}"]) == 1 for number in range(8))


def test_a_worker_that_was_gone_and_is_back_gets_as_much_as_before() -> None:
    fleet = Fleet(1, 2, groups=4)
    fleet.lose("worker-0")
    fleet.dealing.jobs["worker-0"] = 1
    fleet.deal()
    assert fleet.at["worker-0"] == [0, 1]


def test_a_worker_that_comes_later_takes_part() -> None:
    fleet = Fleet(1, 2, groups=20)
    fleet.export("worker-0")
    fleet.dealing.jobs["later"] = 1
    fleet.deal()
    fleet.finish()
    count = sum(worker == "later" for worker, _ in fleet.exported)
    assert count == pytest.approx(20, abs=2)
    assert sorted(number for _, number in fleet.exported) == list(range(40))


@pytest.mark.parametrize(("left", "takes"), [(START - 1, False), (START, True)])
def test_a_template_is_started_late_only_for_what_takes_longer_than_its_start(left: int, takes: bool) -> None:
    dealing = Dealing()
    dealing.jobs = {"one": 1, "two": 1}
    for number in range(4):
        dealing.add(number, str(number % 2), 1)
    dealt = list(dealing.deal())
    assert dealt == [("one", 0), ("two", 1), ("one", 2), ("two", 3)]
    # Batches of the second's variation wait while the first has nothing to do.
    for number in range(left):
        dealing.add(4 + number, "1", 1)
    dealing.end("two", 1, exported=True)
    assert [worker for worker, _ in dealing.deal()] == ["two"]
    dealing.add(100, "1", 1)
    for number in (0, 2):
        dealing.end("one", number, exported=True)
    assert ("one" in dict(dealing.deal())) == takes


def test_a_variation_whose_workers_are_gone_goes_to_others_however_little_is_left() -> None:
    fleet = Fleet(2, 2, groups=3, exports=1)
    fleet.export("worker-1")
    fleet.lose("worker-1")
    fleet.finish()
    assert sorted(number for _, number in fleet.exported) == list(range(6))


@st.composite
def events(draw: st.DrawFn) -> Iterator[tuple[str, int]]:
    """Draw what happens to a fleet: exports, workers that come, are gone or are refused; and of whom."""
    kinds = st.sampled_from(["export", "export", "export", "come", "gone", "refused"])
    return iter(draw(st.lists(st.tuples(kinds, st.integers(0, 7)), max_size=60)))


@given(
    workers=st.integers(0, 6),
    variations=st.integers(1, 5),
    groups=st.integers(0, 10),
    exports=st.integers(1, 20),
    happening=events(),
)
def test_every_batch_is_exported_once_whatever_happens_to_workers(
    workers: int, variations: int, groups: int, exports: int, happening: Iterator[tuple[str, int]]
) -> None:
    fleet = Fleet(workers, variations, groups, exports)
    refused: set[str] = set()
    for turn, (event, chosen) in enumerate(happening):
        there = sorted(fleet.dealing.jobs)
        busy = [worker for worker in there if fleet.at[worker]]
        if event == "come":
            fleet.dealing.jobs[f"later-{turn}"] = 1 + chosen
            fleet.deal()
        elif event == "export" and busy:
            fleet.export(busy[chosen % len(busy)])
        elif event == "gone" and there:
            fleet.lose(there[chosen % len(there)])
        elif event == "refused" and busy:
            worker = busy[chosen % len(busy)]
            refused.add(worker)
            fleet.lose(worker)
        assert all(len(numbers) <= AT_WORKER for numbers in fleet.at.values())
        assert not any(fleet.at.get(worker) for worker in refused)
        assert all(worker in fleet.dealing.jobs for worker, numbers in fleet.at.items() if numbers)
    if not fleet.dealing.jobs:
        fleet.dealing.jobs["last"] = 1
        fleet.deal()
    fleet.finish()
    assert sorted(number for _, number in fleet.exported) == list(range(groups * variations))


@given(workers=st.integers(1, 8), variations=st.integers(1, 6), groups=st.integers(1, START))
def test_a_worker_has_no_more_variations_than_its_share_where_little_is_left(
    workers: int, variations: int, groups: int
) -> None:
    found = Fleet(workers, variations, groups, exports=1).finish().templates()
    assert all(len(one) <= math.ceil(variations / workers) for one in found.values())

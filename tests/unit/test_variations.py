"""Seeds of variations, and the orders that each variation reaches."""

from __future__ import annotations

import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from executorch_goldens.settings.exports import Settings
from executorch_goldens.sweep import messages
from executorch_goldens.sweep.messages import ExportRequest, TemplateRequest
from executorch_goldens.sweep.worker import MAIN, with_harness
from executorch_goldens.zoo.variations import (
    HASH_SEEDS,
    MAX_HASH_SEED,
    SURROUNDINGS,
    ZONES,
    HashSeedError,
    Variation,
    another_locale,
    exported_before,
    named,
    parse_hash_seeds,
    surrounding_variables,
    variations,
    zone_of_another_date,
)
from tests import REPOSITORY

#: For n from 2 to 16, the order of {tag0 .. tag<n-1>}, filled as the partitioners fill it.
TAG_ORDERS = """
import json
print(json.dumps([[int(tag[3:]) for tag in {f"tag{i}" for i in range(n)}] for n in range(2, 17)]))
"""

#: The order of a set of 16 objects that hash by address, in children forked from one heap, each perturbed by the next
#: of the seeds given.
OBJECT_ORDERS = """
import json, os, sys
from executorch_goldens.zoo.variations import perturb_heap

class Item:
    def __init__(self, number):
        self.number = number

def in_child(heap_seed):
    reader, writer = os.pipe()
    if os.fork() == 0:
        held = perturb_heap(heap_seed)
        order = [item.number for item in {Item(number) for number in range(16)}]
        os.write(writer, json.dumps(order).encode())
        os._exit(0)
    os.close(writer)
    return reader

readers = [in_child(int(seed)) for seed in sys.argv[1:]]
print("[" + ",".join(os.read(reader, 4096).decode() for reader in readers) + "]")
"""


#: The order of a set of 16 operator overloads and of a set of 16 nodes, in an interpreter that perturbs its heap before
#: it imports torch, as templates do.
TORCH_ORDERS = """
import json, sys
from executorch_goldens.zoo.variations import perturb_heap

held = perturb_heap(int(sys.argv[1]))
import torch

names = "add sub mul div exp log relu tanh sigmoid cat sum mean amax neg abs clone".split()
packets = [getattr(torch.ops.aten, name) for name in names]
overloads = [getattr(packet, packet.overloads()[0]) for packet in packets]
graph = torch.fx.Graph()
nodes = [graph.placeholder("x")]
for _ in range(15):
    nodes.append(graph.call_function(torch.relu, (nodes[-1],)))
print(json.dumps([[things.index(thing) for thing in set(things)] for things in (overloads, nodes)]))
"""


def printed(code: str, *arguments: str, hash_seed: int = 0) -> Any:
    environment = os.environ | {"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", code, *arguments]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)


@pytest.mark.parametrize("text", ["0", "0,3,7", " 0 , 4294967295 "])
def test_seeds_are_read_in_the_order_given(text: str) -> None:
    assert parse_hash_seeds(text) == tuple(int(item) for item in text.split(","))


@pytest.mark.parametrize("item", ["4294967296", "-1", "", "1.0", "٣"])
def test_what_python_would_not_take_as_a_seed_is_refused_with_the_range(item: str) -> None:
    with pytest.raises(HashSeedError) as raised:
        parse_hash_seeds(f"0,{item}")
    assert repr(item) in str(raised.value)
    assert str(MAX_HASH_SEED) in str(raised.value)


@pytest.mark.parametrize("text", ["5,5", "5,05"])
def test_a_seed_given_twice_is_refused(text: str) -> None:
    with pytest.raises(HashSeedError, match="5 is given twice"):
        parse_hash_seeds(text)


def test_variations_differ_in_seed_and_heap_and_in_name() -> None:
    made = variations((0, 4, 1))
    assert [(v.hash_seed, v.heap_seed) for v in made] == [(0, 0), (4, 1), (1, 2)]
    assert len({v.name for v in made}) == 3


def test_the_default_seeds_put_every_pair_of_tags_in_both_orders() -> None:
    assert len(HASH_SEEDS) >= 4
    orders = [printed(TAG_ORDERS, hash_seed=seed) for seed in HASH_SEEDS]
    for of_size in zip(*orders, strict=True):
        for first, second in itertools.combinations(range(len(of_size[0])), 2):
            seen = {order.index(first) < order.index(second) for order in of_size}
            assert seen == {True, False}, (len(of_size[0]), first, second)


def test_heap_perturbations_give_sets_of_objects_different_orders() -> None:
    orders = [tuple(order) for order in printed(OBJECT_ORDERS, "0", "0", "1", "1", "2", "3")]
    assert {tuple(sorted(order)) for order in orders} == {tuple(range(16))}
    untouched, control, first, again, *others = orders
    assert untouched == control
    assert first == again
    assert len({untouched, first, *others}) == 4


@pytest.mark.slow
def test_sets_of_nodes_and_of_operator_overloads_come_in_other_orders() -> None:
    overloads, nodes = zip(*(printed(TORCH_ORDERS, str(seed)) for seed in (0, 1, 2, 3, 1)), strict=True)
    pairs = list(itertools.combinations(range(16), 2))

    def agreeing(one: list[int], other: list[int]) -> float:
        before = [[order.index(a) < order.index(b) for a, b in pairs] for order in (one, other)]
        return sum(a == b for a, b in zip(*before, strict=True)) / len(pairs)

    for orders in (nodes, overloads):
        # A seed fixes the low bits of addresses. Where two of them collide in a set, the high ones, which the system
        # draws for each process, decide as well.
        assert agreeing(orders[1], orders[4]) > 0.8
        # Two of six orders by chance agree in four pairs of five now and then, as the path of the checkout has it; the
        # mean of all is near a half, and no two are alike.
        found = [agreeing(*two) for two in itertools.combinations(orders[:4], 2)]
        assert statistics.mean(found) < 0.65
        assert max(found) < 0.95
    distinguished = [
        pair for pair in pairs if len({order.index(pair[0]) < order.index(pair[1]) for order in nodes}) == 2
    ]
    assert len(distinguished) / len(pairs) > 0.7


@pytest.mark.parametrize(("text", "count"), [("quick", 2), ("full", 4), ("1", 1), ("4", 4), ("9", 9)])
def test_a_number_of_variations_is_asked_for_by_name_or_count(text: str, count: int) -> None:
    seeds = named(text)
    assert len(set(seeds)) == count
    assert seeds[:4] == HASH_SEEDS[:count]


@pytest.mark.parametrize("text", ["0", "-1", "fast", "", "2.5"])
def test_a_number_of_variations_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(HashSeedError, match="quick, full, a number from 1 to 100, or hash seeds"):
        named(text)


#: The entries of a directory as everything that lists one gives them, {how: names}, after `shuffle_listings`.
LISTINGS = """
import glob, json, os, sys
from pathlib import Path
from executorch_goldens.zoo.variations import shuffle_listings

shuffle_listings(int(sys.argv[1]))
folder = sys.argv[2]

def scanned():
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries if entry.is_file()]

def by_descriptor(listed):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        return listed(descriptor)
    finally:
        os.close(descriptor)

assert os.listdir in os.supports_fd and os.scandir in os.supports_fd
os.chdir(folder)
print(json.dumps({
    "listdir": os.listdir(folder),
    "listdir, named": os.listdir(path=folder),
    "listdir, here": os.listdir(),
    "listdir, bytes": [os.fsdecode(name) for name in os.listdir(os.fsencode(folder))],
    "listdir, descriptor": by_descriptor(os.listdir),
    "scandir": [entry.name for entry in os.scandir(folder)],
    "scandir, with": scanned(),
    "scandir, here": [entry.name for entry in os.scandir()],
    "scandir, bytes": [os.fsdecode(entry.name) for entry in os.scandir(os.fsencode(folder))],
    "scandir, descriptor": by_descriptor(lambda descriptor: [entry.name for entry in os.scandir(descriptor)]),
    "walk": next(os.walk(folder))[2],
    "fwalk": next(os.fwalk(folder))[2],
    "glob": glob.glob("*"),
    "Path.iterdir": [path.name for path in Path(folder).iterdir()],
    "Path.glob": [path.name for path in Path(folder).glob("*")],
    "Path.rglob": [path.name for path in Path(folder).rglob("*")],
}))
"""


def test_whatever_lists_a_directory_lists_it_in_different_orders(tmp_path: Path) -> None:
    for name in "abcdefgh":
        (tmp_path / name).touch()
    untouched, one, other, again = (printed(LISTINGS, seed, str(tmp_path)) for seed in "0121")
    assert one == again
    for how in untouched:
        assert sorted(one[how]) == sorted(other[how]) == list("abcdefgh"), how
        assert len({tuple(order[how]) for order in (untouched, one, other)}) == 3, how
    # A file system does not change its mind, whoever asks.
    assert len({tuple(order) for order in one.values()}) == 1


def test_a_pair_of_files_comes_in_both_orders_under_the_default_seeds(tmp_path: Path) -> None:
    pairs = [tmp_path / str(number) for number in range(50)]
    for number, pair in enumerate(pairs):
        for name in (f"left{number}", f"right{number}"):
            (pair / name).mkdir(parents=True)
    code = (
        "import json, os, sys; from executorch_goldens.zoo.variations import shuffle_listings\n"
        "shuffle_listings(int(sys.argv[1]))\n"
        "print(json.dumps([[name[0] for name in os.listdir(pair)] for pair in sys.argv[2:]]))"
    )
    orders = [printed(code, str(v.heap_seed), *map(str, pairs)) for v in variations()[1:]]
    both = sum(len({tuple(order) for order in of_pair}) == 2 for of_pair in zip(*orders, strict=True))
    # Three independent orders of a pair are equal in one of four cases.
    assert 0.5 < both / len(pairs) < 0.95


def test_a_scan_ends_when_it_is_closed_and_what_is_missing_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    code = (
        "import json, os, sys; from executorch_goldens.zoo.variations import shuffle_listings\n"
        "shuffle_listings(1)\n"
        "entries = os.scandir(sys.argv[1]); entries.close(); left = list(entries)\n"
        "said = []\n"
        "for listed in (os.listdir, os.scandir):\n"
        "    try: listed('no such folder')\n"
        "    except FileNotFoundError as error: said.append(error.filename)\n"
        "print(json.dumps([left, said]))"
    )
    assert printed(code, str(tmp_path)) == [[], ["no such folder", "no such folder"]]


SETTINGS = Settings(Path(sys.executable), (), (), 1, 60.0)
REQUEST = ExportRequest(
    id=0, target="tosa-fp", case="", settings=SETTINGS, scratch="", log="/dev/stderr", cwd=""
)


@pytest.mark.parametrize("once", [True, False])
def test_a_worker_shuffles_listings_before_it_imports_torch(tmp_path: Path, once: bool) -> None:
    answers, other = socket.socketpair()
    (tmp_path / "torch.py").write_text(f"import os; raise SystemExit(str(os.listdir({str(tmp_path)!r})))")
    for name in "abcdefgh":
        (tmp_path / name).touch()
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{REPOSITORY}"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    orders = []
    for seed in (0, 1, 2):
        options = TemplateRequest(
            settings=SETTINGS, variation=Variation(0, seed), answers=answers.fileno(), beat=1.0
        )
        with tempfile.TemporaryFile() as file:
            file.write(messages.encoded(options))
            file.flush()
            command = [*with_harness(Path(sys.executable), MAIN), str(file.fileno())]
            command += [messages.encoded(REQUEST).decode(), str(answers.fileno())] if once else []
            ended = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                pass_fds=(answers.fileno(), file.fileno()),
            )
        orders.append(ended.stderr.splitlines()[-1])
    answers.close()
    other.close()
    assert len(set(orders)) == 3
    assert len({tuple(sorted(order)) for order in orders}) == 1


def test_every_targets_counters_stand_elsewhere_under_some_default_variation() -> None:
    seeds = [variation.heap_seed for variation in variations()]
    for count in range(1, 12):
        targets = [f"target{number}" for number in range(count)]
        before = [exported_before(targets, seed) for seed in seeds]
        assert before[0] == tuple(targets)
        for target in targets:
            assert {exports.count(target) for exports in before} == {1, 2}, count
        # Those of what all targets share do under each two.
        assert all(len(exports) > count for exports in before[1:])


# Surroundings

#: Python's view of its surroundings, {surrounding: values}, after `take_on`.
SEEN = """
import datetime, getpass, json, os, platform, socket, sys, time
from pathlib import Path
from executorch_goldens.zoo.variations import take_on

take_on(sys.argv[1:])
Path("new").touch()
print(json.dumps({
    "time zone": [time.timezone, datetime.date.today().toordinal()],
    "locale": [os.environ.get("LC_ALL")],
    "umask": [Path("new").stat().st_mode],
    "user": [str(Path.home()), getpass.getuser(), os.path.expanduser("~")],
    "host": [socket.gethostname(), os.uname().nodename, platform.node(), os.environ.get("HOSTNAME")],
    "processors": [os.cpu_count(), len(os.sched_getaffinity(0)), __import__("multiprocessing").cpu_count()],
}))
"""


def seen(folder: Path, *names: str) -> dict[str, list[object]]:
    """Return the output of a process that begins with these `SURROUNDINGS` as a template does."""
    folder.mkdir()
    (folder / "home").symlink_to(Path.home())
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    environment |= surrounding_variables(names, folder / "home")
    command = [sys.executable, "-c", SEEN, *names]
    ended = subprocess.run(command, env=environment, check=True, capture_output=True, cwd=folder)
    found: dict[str, list[object]] = json.loads(ended.stdout)
    return found


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_each_surrounding_is_seen_otherwise_and_the_others_as_they_are(tmp_path: Path, name: str) -> None:
    before, after = seen(tmp_path / "one"), seen(tmp_path / "two", name)
    for one, other in zip(before.pop(name), after.pop(name), strict=True):
        assert one != other
    assert before == after


def test_what_is_in_the_home_is_there_by_its_other_path(tmp_path: Path) -> None:
    (tmp_path / "home").symlink_to(tmp_path / "of-a-person")
    (tmp_path / "of-a-person").mkdir()
    (tmp_path / "of-a-person" / "weights").write_text("here")
    variables = surrounding_variables(("user",), tmp_path / "home")
    assert Path(variables["HOME"], "weights").read_text() == "here"


@pytest.mark.parametrize("zone", ["UTC0", "<+14>-14", "<-12>+12", "<+0545>-5:45", "EST5EDT"])
def test_one_of_the_zones_has_another_date_at_any_hour_wherever_one_is(
    monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for hour in range(24):
            assert zone_of_another_date(1_790_000_000 + 3600 * hour) in ZONES
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("there", "here", "expected"),
    [
        (("C", "C.utf8", "POSIX", "de_DE.utf8", "tr_TR.utf8"), {"LANG": "C.UTF-8"}, "tr_TR.utf8"),
        (("C", "tr_TR.UTF-8", "fr_FR.UTF-8"), {"LC_ALL": "tr_TR.UTF-8", "LANG": "C"}, "fr_FR.UTF-8"),
        (("C", "C.utf8", "POSIX"), {"LANG": "C.UTF-8"}, "POSIX"),
        (("C", "C.utf8", "POSIX"), {}, "C.utf8"),
        ((), {"LANG": "C"}, None),
    ],
)
def test_the_locale_is_another_one_that_the_machine_has(
    monkeypatch: pytest.MonkeyPatch, there: tuple[str, ...], here: dict[str, str], expected: str | None
) -> None:
    monkeypatch.setattr("executorch_goldens.zoo.variations.locales", lambda: there)
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in here.items():
        monkeypatch.setenv(name, value)
    assert another_locale() == expected


def test_the_first_variation_has_the_persons_surroundings_and_the_others_none_of_them() -> None:
    first, *others = variations()
    assert first.changed_surroundings == ()
    assert {variation.changed_surroundings for variation in others} == {SURROUNDINGS}

"""Functions of a head are compared with those of the base as they run, and nothing of that is seen."""

from __future__ import annotations

import builtins
import contextlib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from executorch_goldens.artifact import DIFFERS, GAVE_THE_SAME, UNKNOWN
from executorch_goldens_plugins.compare.exporting import probing, reaching
from executorch_goldens_plugins.compare.exporting.probing import MOST, Prober
from executorch_goldens_plugins.compare.reach import edits

#: A file of the base, and one that uses it.
BASE = """\
import dataclasses
import functools
try:
    import json
except ImportError:
    json = None

TABLE = {"small": 1, "large": 2}
DOUBLE = {name: 2 * size for name, size in TABLE.items()}
KNOWN = {}
LOG = []


def register(name):
    def keep(function):
        KNOWN[name] = function

    return keep


def size(name):
    LOG.append(name)
    return DOUBLE[name]


def add(items, item):
    items.append(item)
    return len(items)


def need(value):
    if value < 0:
        raise ValueError(f"{value} is below zero")
    return value


def raised(module):
    module.held = module.held + 1


def outer(value):
    return inner(value) + 1


def inner(value):
    return value * 2


def counted(number):
    yield from range(number)


@functools.lru_cache
def kept(value):
    return value + 1


@register("annotated")
def annotate(node, config=None):
    node["annotation"] = config
    return node


@dataclasses.dataclass
class Field:
    width: int = 1

    def wide(self):
        return self.width


class Parent:
    limit = 3

    def run(self, value):
        return self.call(value)

    def call(self, value):
        return value


class Child(Parent):
    rates = (1, 2)

    def __init__(self):
        super().__init__()
        self.seen = []

    def call(self, value):
        self.seen.append(value)
        return super().call(value) * self.rates[0]

    @staticmethod
    def half(value):
        return value // 2
"""
USER = "from asked.made import TABLE\n\n\ndef longest():\n    return max(TABLE)\n"

#: Imports a head whose file has some words in place of the base's.
Load = Callable[..., tuple[Any, Prober]]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(edits, "PACKAGES", ("asked",))
    for name in (reaching.NAME, probing.NAME, probing.LOOK_AT):
        monkeypatch.setattr(builtins, name, None, raising=False)

    def made(*pairs: tuple[str, str]) -> tuple[ModuleType, Prober]:
        head = BASE
        for old, new in pairs:
            assert head.count(old) == 1
            head = head.replace(old, new)
        for side, text in (("base", BASE), ("head", head)):
            folder = tmp_path / side / "asked"
            folder.mkdir(parents=True)
            for name, content in (("__init__", ""), ("made", text), ("user", USER)):
                (folder / f"{name}.py").write_text(content)
        found = edits.between(tmp_path / "base", tmp_path / "head")
        prober = Prober(edits.probed(found, tmp_path / "base"))
        prober.install()
        monkeypatch.syspath_prepend(tmp_path / "head")
        reaching.install(tmp_path / "head", ["asked"], prober)
        module = importlib.import_module("asked.made")
        module.user = importlib.import_module("asked.user")
        reaching.begin()
        prober.begin()
        return module, prober

    yield made
    reaching.begin()
    for name in [name for name in sys.modules if name.partition(".")[0] == "asked"]:
        del sys.modules[name]


def verdicts(prober: Prober) -> dict[str, str]:
    return {each.function: each.verdict for each in prober.taken(reaching.taken())}


def operands(prober: Prober) -> list[set[str]]:
    """Return how what edited statements read was related, in each of the ways that occurred."""
    (found,) = prober.taken(reaching.taken())
    return [set(each.partition(": ")[2].split(", ")) for each in found.operands]


@pytest.mark.parametrize(
    ("old", "new", "run", "wanted"),
    [
        # Both sides of a condition; the constant is what it is about.
        (
            "if value < 0",
            "if value <= 0",
            lambda m: [caught(lambda: m.need(0)), m.need(3)],
            [{"value = 0", "0 = 0"}, {"value > 1", "0 = 0", "value > 0"}],
        ),
        # What the base read in its place counts.
        (
            "return len(items)",
            "return item",
            lambda m: m.add([4, 4, 7], 2),
            [
                {"len(items) > 1", "items[0] > 1", "items[1] > 1", "items[2] > 1", "items[3] > 1"}
                | {"item > 1", "item < len(items)", "item = items[3]"}
                | {f"item < items[{number}]" for number in range(3)}
                | {f"len(items) = items[{number}]" for number in range(2)}
                | {"len(items) < items[2]", "len(items) > items[3]", "items[0] = items[1]"}
                | {"items[0] < items[2]", "items[1] < items[2]"}
                | {f"items[{number}] > items[3]" for number in range(3)}
            ],
        ),
        # Attributes and items of known places; the same twice is there once.
        (
            "return super().call(value) * self.rates[0]",
            "return self.rates[1]",
            lambda m: [m.Child().call(1), m.Child().call(1)],
            [{"self.rates[1] > 1", "value = 1", "self.rates[0] = 1"}
             | {"self.rates[1] > value", "self.rates[1] > self.rates[0]", "value = self.rates[0]"}],
        ),
        # Words and kinds are compared as a whole; nothing is called.
        ("return DOUBLE[name]", "return TABLE[name]", lambda m: m.size("small"), [{"name is small"}]),
    ],
)  # fmt: skip
def test_it_is_known_how_what_edited_statements_read_is_related(
    load: Load, old: str, new: str, run: Callable[[ModuleType], Any], wanted: list[set[str]]
) -> None:
    module, prober = load((old, new))
    run(module)
    assert sorted(map(sorted, operands(prober))) == sorted(map(sorted, wanted))
    prober.begin()
    assert not prober.taken({})


@pytest.mark.parametrize(
    ("old", "new", "run", "infects"),
    [
        # A condition counts by whether it holds, what is around a call's arguments by itself.
        ("if value < 0", "if value < 5", lambda m: m.need(7), False),
        ("if value < 0", "if value < 5", lambda m: m.need(3), True),
        ("return len(items)", "return item", lambda m: m.add([4], 2), False),
        ("return len(items)", "return item", lambda m: m.add([4], 3), True),
        ("items.append(item)\n", "items.append(items[0])\n", lambda m: m.add([4], 4), False),
        ("items.append(item)\n", "items.append(items[0])\n", lambda m: m.add([4], 5), True),
        # What is more than numbers and words is something else if it is another object; nothing is done with it.
        ("return DOUBLE[name]", "return TABLE[name]", lambda m: m.size("small"), True),
        ("return len(items)", "return len(LOG)", lambda m: m.add([], 1), True),
        ("return len(items)", "return len(KNOWN)", lambda m: m.add([], 1), False),
        ("if value < 0", "if value is None", lambda m: m.need(-1), True),
        ("if value < 0", "if unknown < 0", lambda m: m.need(-1), False),
    ],
)  # fmt: skip
def test_it_is_known_whether_an_edited_expression_gave_something_else(
    load: Load, old: str, new: str, run: Callable[[ModuleType], Any], infects: bool
) -> None:
    module, prober = load((old, new))
    with contextlib.suppress(Exception):
        run(module)
    (found,) = prober.taken(reaching.taken())
    assert found.infected == infects


def holder() -> torch.nn.Module:
    made = torch.nn.Module()
    made.register_buffer("held", torch.zeros(2))
    return made


def caught(run: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="below zero"):
        run()


SAME, OTHER = GAVE_THE_SAME, DIFFERS
#: Of all methods of a class.
OPEN = dict.fromkeys(("Child.__init__", "Child.call", "Child.half"), UNKNOWN)
OF_PARENT = "    def call(self, value):\n        return value\n"
MORE = "    def more(self):\n        return 1\n"
OVERRIDE = "    def run(self, value):\n        return "
CALL = "        self.seen.append(value)\n        return super().call(value) * self.rates[0]\n"


@pytest.mark.parametrize(
    ("old", "new", "run", "wanted"),
    [
        # The result, an argument afterwards, an exception, and what an object has afterwards.
        ("return len(items)", "return -len(items)", lambda m: m.add([], 1), {"add": OTHER}),
        (
            "return len(items)",
            "number = len(items)\n    return number",
            lambda m: m.add([], 1),
            {"add": SAME},
        ),
        ("items.append(item)\n", "items.append([item])\n", lambda m: m.add([], 1), {"add": OTHER}),
        ("items.append(item)\n", "items += [item]\n", lambda m: m.add([], 1), {"add": SAME}),
        ("is below zero", "is below zero!", lambda m: caught(lambda: m.need(-1)), {"need": OTHER}),
        ("if value < 0", "if 0 > value", lambda m: caught(lambda: m.need(-1)), {"need": SAME}),
        ("if value < 0", "if value < 5", lambda m: m.need(7), {"need": SAME}),
        (
            CALL,
            CALL.replace("append(value)", "append(-value)"),
            lambda m: m.Child().call(2),
            {"Child.call": OTHER},
        ),
        (
            CALL,
            CALL.replace("super()", "super(Child, self)"),
            lambda m: m.Child().run(2),
            {"Child.call": SAME},
        ),
        (
            CALL,
            CALL.replace("super().call(value)", "value"),
            lambda m: m.Child().run(2),
            {"Child.call": SAME},
        ),
        ("return value // 2", "return value >> 1", lambda m: m.Child.half(5), {"Child.half": SAME}),
        ("return value // 2", "return value / 2", lambda m: m.Child().half(5), {"Child.half": OTHER}),
        # What a module held before, which others hold as well.
        ("held = module.held + 1", "held += 1", lambda m: m.raised(holder()), {"raised": OTHER}),
        ("held = module.held + 1", "held = 1 + module.held", lambda m: m.raised(holder()), {"raised": SAME}),
        # What only the call around it can see, and what the call around it calls.
        ("return value * 2\n", "return value * 2 or 1\n", lambda m: m.inner(0), {"inner": OTHER}),
        ("return value * 2\n", "return value * 2 or 1\n", lambda m: m.inner(1), {"inner": SAME}),
        # A registered function.
        (
            'node["annotation"] = config',
            'node["annotation"] = config or 1',
            lambda m: m.KNOWN["annotated"]({}),
            {"annotate": OTHER},
        ),
        (
            'node["annotation"] = config',
            "node.update(annotation=config)",
            lambda m: m.KNOWN["annotated"]({}),
            {"annotate": SAME},
        ),
        ("(node, config=None)", "(node, config=0)", lambda m: m.annotate, {}),
        # One that the base lacks.
        (f"{OF_PARENT}\n", f"{OF_PARENT}\n{MORE}\n", lambda m: m.Child().more(), {"Parent.more": UNKNOWN}),
        (CALL, f"{CALL}\n{OVERRIDE}super().run(value)\n", lambda m: m.Child().run(2), {"Child.run": SAME}),
        (CALL, f"{CALL}\n{OVERRIDE}0\n", lambda m: m.Child().run(2), {"Child.run": OTHER}),
        # Outside of functions, names and classes may come; nobody knows what else does.
        (CALL, f"{CALL}\nTABLES = [TABLE]\n\n\nclass More(Child):\n    kind = 1\n", lambda m: None, {}),
        ('"large": 2', '"large": 3', lambda m: m.size("small"), {"size": UNKNOWN}),
        (
            '"large": 2',
            '"tiny": 3, "large": 2',
            lambda m: m.user.longest(),
            {"longest": UNKNOWN, "size": UNKNOWN},
        ),
        ("rates = (1, 2)", "rates = (1, 3)", lambda m: m.Child().run(2), OPEN),
        ("width: int = 1", "width: int = 2", lambda m: m.Field().wide(), {"Field.wide": UNKNOWN}),
        ("    import json", "    import marshal as json", lambda m: None, {"": UNKNOWN}),
        ("range(number)", "range(number + 0)", lambda m: list(m.counted(2)), {"counted": UNKNOWN}),
        ("return value + 1\n\n\n@reg", "return value + 2\n\n\n@reg", lambda m: m.kept(1), {"kept": OTHER}),
        ('@register("annotated")', '@register("noted")', lambda m: None, {"annotate": UNKNOWN}),
        ("class Child(Parent):", "class Child(Parent, object):", lambda m: None, OPEN),
        ("    rates = (1, 2)\n", "    rates = (1, 2)\n    limit = 4\n", lambda m: None, OPEN),
        ("    rates = (1, 2)\n", "    rates = (1, 2)\n    limit = 4\n", lambda m: m.Child().run(2), OPEN),
        (f"    def call(self, value):\n{CALL}", "", lambda m: m.Child().run(1), {"": UNKNOWN}),
        (
            "    def keep(function):\n",
            "    def keep(function, more=None):\n",
            lambda m: None,
            {"register": UNKNOWN},
        ),
    ],
)
def test_a_function_decides_where_it_gives_something_else_than_the_base(
    old: str, new: str, run: Callable[[Any], object], wanted: dict[str, str], load: Load
) -> None:
    module, prober = load((old, new))
    run(module)
    assert verdicts(prober) == wanted


def test_what_a_copy_does_is_not_seen(load: Load, capfd: pytest.CaptureFixture[str]) -> None:
    module, prober = load(("return DOUBLE[name]", "print(name)\n    return DOUBLE[name] + 1"))
    assert module.size("large") == 5
    assert module.LOG == ["large"]
    assert capfd.readouterr().out == "large\n"
    assert str(inspect.signature(module.size)) == "(name)"
    assert verdicts(prober) == {"size": DIFFERS}


def test_of_calls_in_calls_the_outer_one_is_compared_with_all_of_the_base(load: Load) -> None:
    # Each edit undoes the other.
    module, prober = load(
        ("inner(value) + 1", "inner(value)"), ("return value * 2\n", "return value * 2 + 1\n")
    )
    assert module.outer(2) == 5
    assert verdicts(prober) == {"outer": GAVE_THE_SAME, "inner": GAVE_THE_SAME}
    prober.begin()
    reaching.begin()
    assert module.inner(2) == 5
    assert verdicts(prober) == {"inner": DIFFERS}


def test_an_export_compares_so_many_calls_of_a_function_and_no_more_once_one_differed(load: Load) -> None:
    module, prober = load(("return value * 2\n", "return value * 2 or 1\n"))
    for number in range(MOST + 2):
        module.inner(number + 1)
    assert [(each.calls, each.verdict) for each in prober.taken({})] == [(MOST, UNKNOWN)]
    prober.begin()
    for number in range(MOST):
        module.inner(number)
    assert [(each.calls, each.verdict) for each in prober.taken({})] == [(1, DIFFERS)]


def test_what_ran_without_a_call_that_was_compared_is_unknown(load: Load) -> None:
    module, prober = load(("return value + 1\n\n\n@reg", "return value + 2\n\n\n@reg"))
    assert module.kept(1) == 3
    prober.begin()
    reaching.begin()
    # A cache answers.
    assert module.kept(1) == 3
    assert verdicts(prober) == {"kept": UNKNOWN}

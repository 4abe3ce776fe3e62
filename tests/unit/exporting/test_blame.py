"""Descriptions of exceptions, and the code that is to blame."""

from __future__ import annotations

import re

import pytest

from executorch_goldens.exporting import blame
from executorch_goldens.exporting.blame import handed_on, judging, own_error
from executorch_goldens.exporting.entry import failure, normalise
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.causes import without_sources
from executorch_goldens.goldens.record import FAILURE
from executorch_goldens.patches import Patch
from tests import GOLDENS
from tests.support.modules import function


@pytest.mark.parametrize(
    ("message", "normalised"),
    [
        ('File "/home/a b/models/cat.py", line 3, in forward', 'File "…/cat.py", line …, in forward'),
        ('File "<eval_with_key>.3425", line 12', 'File "<eval_with_key>", line …'),
        ("<Pass object at 0x7f0123456789>", "<Pass object at 0x…>"),
        ("cannot open /opt/env/lib/python3.11/x.py:12", "cannot open …/x.py:…"),
        ('File "/opt/env/x.py", line 345, in f', 'File "…/x.py", line …, in f'),
        ("node id=140737488355328", "node id=…"),
        ("FakeTensor(graph_id=140737488355328, u0)", "FakeTensor(graph_id=…, u0)"),
        ("      'seq_nr' = 301\n", "'seq_nr' = …"),
        ("  trailing  \n\n lines \n", "trailing\n\n lines"),
        ("shape (1, 2) of aten.add_1 at 0x2 and a/b", "shape (1, 2) of aten.add_1 at 0x2 and a/b"),
        ("only int8/int16/int32, see backends/arm/x.py", "only int8/int16/int32, see backends/arm/x.py"),
        ("'/opt/env/x.py':/opt/env/y.py", "'…/x.py':…/y.py"),
        ("path=/opt/env/x.py (/opt/env/y.py) [/opt/env/z.py]", "path=…/x.py (…/y.py) […/z.py]"),
        ("/opt/env/x.so: not found\n/opt/env/y.so", "…/x.so: not found\n…/y.so"),
        ("missing {'b::c', 'a::d'} of {'b': 2, 'a': 1}", "missing {'a::d', 'b::c'} of {'b': 2, 'a': 1}"),
        ("see https://github.com/pytorch/tlparse?tab=readme", "see https:/…/tlparse?tab=readme"),
    ],
)
def test_messages_lose_what_varies_and_nothing_else(message: str, normalised: str) -> None:
    assert normalise(message) == normalised


def test_the_messages_of_committed_goldens_are_normalised_as_they_were() -> None:
    records = (golden.read(file) for file in GOLDENS.glob("[0-9]*/*/*.txt"))
    recorded = [each.sections[FAILURE] for each in records if each is not None and each.fails]
    assert len(recorded) > 100
    for text in recorded:
        # Lines without anything are indented as the rest of their field; older goldens have source lines.
        stripped = "\n".join(line.rstrip() for line in text.strip().splitlines())
        assert normalise(text) == without_sources(stripped)


def raised_by(code: str, module: str) -> BaseException:
    """Return the exception of `code` when it runs as the module named."""
    try:
        exec(code, {"__name__": module})
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    ("modules", "own"),
    [
        (["executorch.exir"], False),
        (["executorch_goldens.exporting.numerics.programs"], True),
        (["torch.fx", "executorch_goldens.exporting.trace"], True),
        (["executorch_goldens.exporting.recipe", "executorch.exir"], False),
        (["executorch_goldens.exporting.recipe", "models.cat"], False),
        (["models.cat", "numpy.linalg"], False),
        (["executorch_goldens.exporting.numerics.programs", "numpy.linalg"], True),
        (["executorch_goldens.patches.partition_order"], False),
        (["harnesses.own"], False),
    ],
    ids=str,
)
def test_the_innermost_frame_says_whose_an_exception_is(modules: list[str], own: bool) -> None:
    first, *others = map(function, modules)
    with pytest.raises(KeyError) as raised:
        first(*others)
    found = own_error("lower", raised.value)
    assert (found is not None) == own
    if found is not None:
        assert found.casualty.error == "KeyError: 'key'"


def test_code_of_a_shortcut_raises_what_the_release_would(monkeypatch: pytest.MonkeyPatch) -> None:
    install = function("executorch_goldens.of_a_plugin.brings")
    with pytest.raises(KeyError) as raised:
        install()
    assert own_error("lower", raised.value) is not None
    monkeypatch.setattr(blame, "SHORTCUTS", [Patch("brings", None, "", {}, install)])
    assert own_error("lower", raised.value) is None


@pytest.mark.parametrize(
    "modules",
    [["executorch_goldens.exporting.numerics.programs"], ["models.cat", "executorch_goldens.exporting.data"]],
    ids=" ".join,
)
def test_what_native_code_raises_is_handed_on(modules: list[str]) -> None:
    *others, last = map(function, modules)
    first, *others = [*others, handed_on(last), function("executorch_goldens.exporting.data")]
    with pytest.raises(KeyError) as raised:
        first(*others)
    assert own_error("run", raised.value) is None


def test_what_others_raise_in_what_judges_is_the_harnesss_own_with_its_innermost_frame() -> None:
    others = [function("executorch_goldens.exporting.recipe"), function("torch.fx")]
    judge = judging(function("executorch_goldens.exporting.numerics.rounding"))
    with pytest.raises(KeyError) as raised:
        judge(*others)
    found = own_error("export", raised.value)
    assert (found.casualty.stage, found.casualty.error) == ("export", "KeyError: 'key'")


REWORDED = """
def call():
    try:
        {}["key"]
    except KeyError as error:
        raise RuntimeError("in other words") from error
"""


def test_what_judges_is_found_where_others_have_caught_the_first_cause() -> None:
    judge = judging(function("executorch_goldens.exporting.numerics.rounding"))
    with pytest.raises(RuntimeError) as raised:
        judge(function("torch.fx", REWORDED))
    cause = raised.value.__cause__
    assert cause is not None
    assert own_error("export", cause) is None
    found = own_error("export", cause, raised.value)
    assert found.casualty.error == "KeyError: 'key'"


@pytest.mark.parametrize("error", ["MemoryError()", "OSError(28, 'No space left on device')"])
def test_what_the_machine_has_too_little_of_is_no_defect_of_the_harness(error: str) -> None:
    with pytest.raises((MemoryError, OSError)) as raised:
        function("executorch_goldens.exporting.numerics.programs", f"def call(): raise {error}")()
    assert own_error("run", raised.value) is None


CHAIN = """
class PassBase:
    pass

class FoldPass(PassBase):
    def call(self):
        try:
            {}["/opt/env/lib/x.py:7"]
        except KeyError as error:
            raise ValueError(f"no entry of {self} in /opt/env/lib/x.py:7") from error

class Manager:
    def run(self):
        try:
            FoldPass().call()
        except ValueError as error:
            raise RuntimeError("An error occurred when running the 'FoldPass' pass") from error

Manager().run()
"""


def test_the_first_cause_is_described_and_the_innermost_pass_named() -> None:
    found = failure("lower", raised_by(CHAIN, "executorch.backends.some"))
    assert (found.type, found.message) == ("KeyError", "'…/x.py:…'")
    assert found.pass_name == "FoldPass"
    assert found.function == "executorch.backends.some.call"
    assert "An error occurred" in found.traceback


def test_frames_outside_executorch_name_no_pass() -> None:
    found = failure("lower", raised_by(CHAIN, "somewhere.else"))
    assert found.pass_name is None
    assert found.function is None


def test_the_same_failure_has_the_same_facts_wherever_it_is_raised() -> None:
    one = failure("lower", raised_by(CHAIN, "executorch.backends.some"))
    other = failure(
        "lower", raised_by("\n\n" + CHAIN.replace("/opt/env", "/home/me"), "executorch.backends.some")
    )
    assert one.facts() == other.facts()
    for _, value in one.facts():
        assert not re.search(r"0x[0-9a-f]{6}|/opt|line \d", value)

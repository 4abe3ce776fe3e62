"""Artifacts that are the same, renamed, reordered or different: real goldens, with names edited in their texts."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.diff.difference import Difference
from executorch_goldens.diff.likeness import DIFFERENT, RENAMED, REORDERED, SAME
from executorch_goldens.diff.renaming import Renames, renamed_nodes
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.outline import outline
from executorch_goldens.goldens.record import TRACE, Record
from tests import DATA, GOLDENS
from tests.support.making import GRAPH, failure, golden_of, with_texts

Texts = Mapping[str, str]

DIGEST = re.compile(r"sha256 ([0-9a-f]{16})")
#: Two variations of a release without the patch of #19045: `getitem` and `getitem_1` change places.
VARIATIONS = DATA / "report_results/stock/1.2.0/tosa-fp/two-delegates"


def texts_of(cell: str, release: str = "1.5.1") -> dict[str, str]:
    record = golden.read(golden.file_of(GOLDENS / release, Cell(*cell.split("/"))))
    return record.texts()


def likeness(before: Texts | Record, after: Texts | Record) -> str:
    return Difference(recorded(before), recorded(after)).likeness


def renames(before: Texts, after: Texts) -> Renames:
    return Difference(recorded(before), recorded(after)).renames


def recorded(texts: Texts | Record) -> Record:
    return texts if isinstance(texts, Record) else with_texts(Record({}, {}), texts)


def edited(texts: Texts, file: str, **names: str) -> dict[str, str]:
    """Return a golden with other names in one of its texts, all at once, and the digests that follow from it."""
    pattern = re.compile(rf"\b({'|'.join(names)})\b")
    text = pattern.sub(lambda name: names[name[0]], texts[file])
    assert text != texts[file]
    found = {**texts, file: text}
    if file.startswith("delegate_"):
        found = with_digests(found, file.partition(".")[0].replace("_", " "), "pte", golden.LAYOUT)
    return found


def with_digests(texts: Texts, *fields: str) -> dict[str, str]:
    """Return a golden whose manifest has other digests in some fields."""
    lines = texts["manifest"].splitlines(keepends=True)
    made = [
        DIGEST.sub(lambda digest: f"sha256 {digest[1][::-1]}", line)
        if line.partition(":")[0] in fields
        else line
        for line in lines
    ]
    return {**texts, "manifest": "".join(made)}


def program_digests(text: str, *, rest: bool) -> str:
    """Return the section of a program with another digest of its text, and if it is the rest, of all but its sizes."""
    whole, others = text.split(", without", 1)
    others = re.sub(r"(?<=offsets )\w+", lambda digest: digest[0][::-1], others) if rest else others
    turned = re.sub(r"(?<=sha256 )\w+$", lambda digest: digest[0][::-1], whole)
    return f"{turned}, without{others}"


CONDITION = texts_of("tosa-fp/condition")
COUNTER = texts_of("tosa-fp/call-counter")
CONVOLUTION = texts_of("xnnpack-fp32/conv-bn-relu")
CELLS = pytest.mark.parametrize("texts", [CONDITION, COUNTER, CONVOLUTION], ids=["if", "buffer", "xnnpack"])


@CELLS
def test_a_golden_is_the_same_as_itself_however_it_was_made(texts: Texts) -> None:
    manifest = texts["manifest"].replace("torch: 2.14.1", "torch: 2.15.0").replace("2^-", "2^-1")
    other = {**texts, "manifest": manifest, TRACE: "stage: exported 012345678901\n"}
    assert likeness(texts, other) == SAME
    assert renames(texts, other) == ()


def test_failures_are_the_same_or_different() -> None:
    one, other = golden_of(failure("with a")), golden_of(failure("with b"))
    assert likeness(one, golden_of(failure("with a"))) == SAME
    assert likeness(one, other) == DIFFERENT
    assert likeness(CONDITION, other) == DIFFERENT
    assert likeness(other, CONDITION) == DIFFERENT


# Renamed


def test_a_tensor_of_a_delegate_is_renamed() -> None:
    now = edited(COUNTER, "delegate_0.tosa", tosa_mul_default="product", tosa_mul_default_shift="by")
    assert likeness(COUNTER, now) == RENAMED
    assert renames(COUNTER, now) == (("tosa_mul_default", "product"), ("tosa_mul_default_shift", "by"))


def test_names_may_be_handed_on_as_long_as_each_stays_one() -> None:
    chain = {"tosa_reshape_default": "tosa_mul_default", "tosa_mul_default": "tosa_reshape_default"}
    assert likeness(COUNTER, edited(COUNTER, "delegate_0.tosa", **chain)) == RENAMED


def test_a_node_of_the_graph_is_renamed_and_the_program_stays_as_it_is() -> None:
    now = edited(COUNTER, "graph", executorch_call_delegate="call")
    # The target is no name of a node.
    now["graph"] = now["graph"].replace("higher_order.call", "higher_order.executorch_call_delegate")
    assert likeness(COUNTER, now) == RENAMED
    assert renames(COUNTER, now) == (("executorch_call_delegate", "call"),)


def test_what_a_branch_reads_and_returns_is_inside() -> None:
    top, *branches = CONDITION["graph"].split("submodule ")
    branches = [re.sub(r"\brelu\b", "clamped", branch) for branch in branches]
    branches = [re.sub(r"(?<=[%(])getitem\b", "given", branch) for branch in branches]
    now = {**CONDITION, "graph": "submodule ".join([top, *branches])}
    assert likeness(CONDITION, now) == RENAMED
    assert renames(CONDITION, now) == (("relu", "clamped"), ("getitem", "given"))


def test_tensors_of_xnnpack_have_numbers_for_names() -> None:
    text = CONVOLUTION["delegate_0.xnnpack"].replace("%3", "%13")
    now = with_digests({**CONVOLUTION, "delegate_0.xnnpack": text}, "delegate 0", "pte", "layout")
    assert likeness(CONVOLUTION, now) == RENAMED


def test_sizes_follow_from_the_lengths_of_names() -> None:
    now = edited(COUNTER, "delegate_0.tosa", tosa_mul_default="m")
    for name in ("delegate_0.tosa", "pte", "manifest"):
        now[name] = now[name].replace("2488", "2472").replace("3896", "3880")
    assert likeness(COUNTER, now) == RENAMED
    for rest, alike in ((False, RENAMED), (True, DIFFERENT)):
        digests = program_digests(now["pte"], rest=rest)
        assert likeness(COUNTER, {**now, "pte": digests}) == alike


@pytest.mark.parametrize("target", ["tosa-int16", "tosa-fp+cf"])
def test_every_tensor_inside_of_every_delegate_of_the_zoo_may_be_named_otherwise(target: str) -> None:
    root = GOLDENS / "1.5.1"
    renamed = 0
    for cell in (cell for cell in golden.recorded(root) if cell.target == target):
        texts = texts_of(str(cell))
        for name in (name for name in texts if name.startswith("delegate_")):
            kept, *inside = outline(texts[name]).graphs
            tensors = {tensor for graph in (kept, *inside) for tensor in graph.values}
            names = {tensor: f"inner_{tensor}" for tensor in tensors - {*kept.inputs, *kept.outputs}}
            if not names:
                continue
            now = tensors_renamed(texts, name, names)
            assert set(renames(texts, now)) == set(names.items()), (cell, name)
            turned = with_operands_turned(now[name])
            assert turned is None or not renames(texts, {**now, name: turned}), (cell, name)
            renamed += 1
    assert renamed > 1, target


def tensors_renamed(texts: Texts, name: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return a golden with other names of its delegate's tensors, everywhere."""
    place = re.compile(r"^( +(?:value|input\d*|output\d*)) ([^\s:]+)", re.MULTILINE)
    text = place.sub(lambda line: f"{line[1]} {names.get(line[2], line[2])}", texts[name])
    return with_digests({**texts, name: text}, name.partition(".")[0].replace("_", " "), "pte", "layout")


def with_operands_turned(text: str) -> str | None:
    """Return a payload whose last operator of two different operands reads them the other way round."""
    found = list(re.finditer(r"^    input (\S+)\n    input (?!\1\n)(\S+)\n", text, re.MULTILINE))
    if not found:
        return None
    last = found[-1]
    return f"{text[: last.start()]}    input {last[2]}\n    input {last[1]}\n{text[last.end() :]}"


# Near misses


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("graph", {"x": "y"}),
        ("graph", {"b_calls": "b_count"}),
        ("graph", {"getitem_1": "given"}),
        ("delegate_0.tosa", {"x": "y"}),
        ("delegate_0.tosa", {"b_calls": "b_count"}),
        ("delegate_0.tosa", {"tosa_add_default_1": "sum"}),
        ("delegate_0.tosa", {"MUL": "DIV"}),
        ("pte", {"forward": "backward"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(*value.items()),
)
def test_names_by_which_a_program_is_used_are_no_inner_names(file: str, names: dict[str, str]) -> None:
    assert likeness(COUNTER, edited(COUNTER, file, **names)) == DIFFERENT


def test_parameters_of_a_program_keep_their_names() -> None:
    assert likeness(CONDITION, edited(CONDITION, "graph", p_weight="p_w")) == DIFFERENT


def test_names_that_change_places_where_they_are_read_are_another_program() -> None:
    text = COUNTER["delegate_0.tosa"]
    read = "    input tosa_mul_default\n    input tosa_reshape_default\n"
    assert read in text
    turned = "    input tosa_reshape_default\n    input tosa_mul_default\n"
    now = with_digests({**COUNTER, "delegate_0.tosa": text.replace(read, turned)}, "delegate 0", "pte")
    assert likeness(COUNTER, now) == DIFFERENT


def test_nodes_that_change_places_where_they_are_read_are_another_program() -> None:
    before = CONDITION["graph"]
    after = before.replace(
        "(%getitem_2, %submodule_0, %submodule_1", "(%getitem_2, %submodule_1, %submodule_0"
    )
    assert after != before
    assert not renames(CONDITION, {**CONDITION, "graph": after})


def test_one_name_that_becomes_two_is_no_renaming() -> None:
    text = COUNTER["delegate_0.tosa"]
    *before, last = text.rpartition("    input tosa_mul_default\n")
    assert before[1]
    now = {**COUNTER, "delegate_0.tosa": f"{before[0]}    input tosa_mul_default_2\n{last}"}
    assert likeness(COUNTER, with_digests(now, "delegate 0", "pte")) == DIFFERENT
    back = with_digests(now, "delegate 0", "pte")
    assert likeness(back, COUNTER) == DIFFERENT


def test_two_names_that_become_one_are_no_renaming() -> None:
    now = edited(COUNTER, "delegate_0.tosa", tosa_reshape_default="tosa_mul_default")
    assert likeness(COUNTER, now) == DIFFERENT


def test_two_nodes_with_one_name_are_no_renaming() -> None:
    text = re.sub(r"%getitem_3\b", "%getitem_2", CONDITION["graph"])
    assert renamed_nodes(CONDITION["graph"], text) is None
    assert not renames(CONDITION, {**CONDITION, "graph": text})


def test_a_node_is_not_taken_for_one_that_is_not_defined() -> None:
    # The node `a` reads an `x` that is none of these nodes.
    assert renamed_nodes(GRAPH, GRAPH.replace("%lowered_module_0", "%y0")) == (("lowered_module_0", "y0"),)
    assert renamed_nodes(GRAPH, GRAPH.replace("%lowered_module_0", "%x")) is None


def test_a_text_more_or_less_is_no_renaming() -> None:
    now = edited(CONDITION, "delegate_0.tosa", aten_full_default_pre_computed="half")
    assert likeness(CONDITION, now) == RENAMED
    del now["delegate_3.tosa"]
    assert not renames(CONDITION, now)


def test_delegates_keep_their_names_and_backends() -> None:
    now = edited(COUNTER, "delegate_0.tosa", tosa_mul_default="product")
    for one, other in (("lowered_module_0", "lowered_module_1"), ("TOSABackend", "VgfBackend")):
        assert not renames(COUNTER, {**now, "manifest": now["manifest"].replace(one, other)})


def test_values_of_a_program_keep_their_numbers() -> None:
    now = edited(COUNTER, "delegate_0.tosa", tosa_mul_default="product")
    now["pte"] = program_digests(now["pte"], rest=True)
    assert not renames(COUNTER, now)


def test_a_constant_under_another_name_keeps_its_bytes() -> None:
    now = edited(COUNTER, "delegate_0.tosa", tosa_mul_default_shift="shift")
    assert likeness(COUNTER, now) == RENAMED
    now["delegate_0.tosa"] = now["delegate_0.tosa"].replace("6e340b9c", "6e340b9d")
    assert likeness(COUNTER, now) == DIFFERENT


def test_a_number_that_nothing_refers_to_is_no_name() -> None:
    text = CONVOLUTION["delegate_0.xnnpack"].replace("%3", "%13")
    text = text.replace("debug_handle = 1\n", "debug_handle = 2\n")
    now = with_digests({**CONVOLUTION, "delegate_0.xnnpack": text}, "delegate 0", "pte", "layout")
    assert likeness(CONVOLUTION, now) == REORDERED


def test_a_key_of_data_is_no_name_of_a_tensor() -> None:
    key = "483bd726932da967c7d75a12298c956f1146c48f02c10fda121bbe86f2b440af"
    now = dict(CONVOLUTION)
    for name in ("delegate_0.xnnpack", "pte"):
        now[name] = (
            now[name]
            .replace(f"key = {key}", f"key = p_bias_{key}")
            .replace(f"named_data {key}", f"named_data p_bias_{key}")
        )
    assert likeness(CONVOLUTION, with_digests(now, "delegate 0", "pte", "layout")) == DIFFERENT


def test_bytes_that_differ_where_no_name_does_are_something_else() -> None:
    renamed = edited(COUNTER, "graph", executorch_call_delegate="call")
    renamed["graph"] = renamed["graph"].replace("higher_order.call", "higher_order.executorch_call_delegate")
    assert likeness(COUNTER, renamed) == RENAMED
    for field in ("pte", "delegate 0"):
        assert likeness(COUNTER, with_digests(COUNTER, field)) == DIFFERENT
        assert not renames(COUNTER, with_digests(renamed, field))


def test_bytes_of_one_delegate_do_not_follow_from_names_in_another() -> None:
    now = edited(CONDITION, "delegate_3.tosa", tosa_const_shape_default="shape")
    assert likeness(CONDITION, now) == RENAMED
    assert likeness(CONDITION, with_digests(now, "delegate 1")) == DIFFERENT


# Reordered


def test_the_number_of_a_delegate_is_no_name_of_a_node() -> None:
    now = edited(COUNTER, "graph", lowered_module_0="lowered_module_1")
    now["manifest"] = now["manifest"].replace("lowered_module_0", "lowered_module_1")
    assert not renames(COUNTER, now)
    assert likeness(COUNTER, now) == REORDERED


def test_variations_that_number_otherwise_are_not_renamed() -> None:
    one, other = (golden.read(VARIATIONS / name / "golden.txt") for name in ("seed0-heap0", "seed4-heap1"))
    assert not renames(one, other)
    assert likeness(one, other) == DIFFERENT


def test_inputs_of_a_delegate_in_another_order_are_another_program_where_the_graph_is_the_same() -> None:
    text = CONDITION["delegate_2.tosa"]
    read = "  input p_weight: FP32[3,4]\n  input relu: FP32[3,4]\n"
    turned = "  input relu: FP32[3,4]\n  input p_weight: FP32[3,4]\n"
    assert read in text
    now = with_digests({**CONDITION, "delegate_2.tosa": text.replace(read, turned)}, "delegate 2", "pte")
    assert likeness(CONDITION, now) == DIFFERENT
    # Where it hands them over in that order as well, it is.
    call = "(%lowered_module_0, %p_weight, %relu)"
    graph = CONDITION["graph"].replace(call, "(%lowered_module_0, %relu, %p_weight)")
    assert graph != CONDITION["graph"]
    assert likeness(CONDITION, {**now, "graph": graph}) == REORDERED


def test_operators_in_another_order_are_reordered() -> None:
    text = COUNTER["delegate_0.tosa"]
    blocks = re.findall(r"^  operator CONST\n    output .*\n", text, re.MULTILINE)
    assert len(blocks) == 3
    moved = text.replace(blocks[0] + blocks[1], blocks[1] + blocks[0])
    assert moved != text
    now = with_digests({**COUNTER, "delegate_0.tosa": moved}, "delegate 0", "pte")
    assert likeness(COUNTER, now) == REORDERED
    # The interface is not to be found by any order.
    assert likeness(COUNTER, edited(now, "delegate_0.tosa", b_calls="b_count")) == DIFFERENT

"""The operators that definitions of an installed release name."""

from __future__ import annotations

from pathlib import Path

import executorch
import pytest

from executorch_goldens_plugins.compare.exporting.operators import files_of, named

PACKAGES = Path(executorch.__path__[0]).parent
MEAN = "executorch/backends/arm/_passes/decompose_meandim_pass.py"
POOL = "executorch/backends/arm/_passes/decompose_maxpool2d_with_dilation_pass.py"
SUPPORT = "executorch/backends/arm/quantizer/quantizer_support.py"
CONV = "executorch/backends/xnnpack/operators/op_conv2d.py"


def test_what_a_definition_decides_on_comes_before_what_it_may_make() -> None:
    asked, *others = named(PACKAGES, [POOL])[POOL]["DecomposeMaxPool2dPass.call_operator"]
    assert asked == "max_pool2d_with_indices.default"
    assert "constant_pad_nd.default" in others


def test_a_table_of_a_class_is_under_the_class_and_a_word_that_names_an_operator_is_one() -> None:
    assert {"mean.dim", "mean.default"} <= set(named(PACKAGES, [MEAN])[MEAN]["DecomposeMeanDimPass"])
    assert named(PACKAGES, [CONV])[CONV]["Conv2d"] == ["convolution.default"]


@pytest.mark.parametrize(
    "register",
    [
        "TABLE = {ops.sin.default: 1}; TABLE[ops.cos.default] = Cosine",
        "TABLE = {ops.sin.default: Other, ops.cos.default: Cosine}",
        "for each in (ops.cos.default,):\n    TOSA_QUANTIZER_SUPPORT_DICT[each] = Cosine",
    ],
)
def test_what_registers_a_class_is_under_it(register: str) -> None:
    text = f"@register(ops.tan.default)\nclass Other: pass\nclass Cosine: pass\n{register}"
    found = named(PACKAGES, [SUPPORT], {SUPPORT: text.replace("ops.", "torch.ops.aten.")})[SUPPORT]
    assert found["Cosine"] == ["cos.default"]
    assert "tan.default" in found["Other"]
    assert "cos.default" not in found["Other"]


def test_sources_in_place_of_a_file_count(tmp_path: Path) -> None:
    text = "def f(node):\n    return node.target == torch.ops.aten.cos.default or 'aten.sin.default'\n"
    assert named(PACKAGES, [MEAN], {MEAN: text})[MEAN] == {"f": ["cos.default", "sin.default"]}


def test_a_name_of_a_function_s_own_is_not_what_the_module_has_by_it() -> None:
    name = "TOSA_QUANTIZER_SUPPORT_DICT"
    text = "".join(
        f"def {of}({own}):\n    return {own} in {name}\n" for of, own in (("f", name), ("g", "node"))
    )
    assert [*named(PACKAGES, [SUPPORT], {SUPPORT: text})[SUPPORT]] == ["g"]


@pytest.mark.parametrize(
    "text", ["'aten.no_such.default'", "'aten. is a word'", "torch.ops.aten.cos.no_such", "unknown.cos"]
)
def test_what_names_no_operator_is_none(text: str) -> None:
    assert named(PACKAGES, [MEAN], {MEAN: f"def f():\n    return {text}\n"})[MEAN] == {}


def test_a_file_that_cannot_be_imported_names_none() -> None:
    assert named(PACKAGES, ["executorch/no_such.py"]) == {}


def test_tests_are_no_files_that_lower_programs() -> None:
    found = [*files_of(PACKAGES)]
    assert {MEAN, CONV} <= {*found}
    assert not any("/test/" in file for file in found)

"""Properties a case needs to see a fix that no untaught source has seen so far, for harness/lab/docs/history.md.

It is a reading of the fixes, made after the sources were frozen: no case is made from it.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Kinds of what a case needs: which factor a source would have to have.
NOTHING = "nothing: no export of this release differs"
VALUES = "values"
FORM = "a form of call"
SIZES = "sizes"
NEIGHBOURS = "operators in a row"
SHARING = "sharing"
QUANTIZER = "quantization"
TARGET = "operator, dtype and target"
STATE = "state"

#: By the number of the pull request: the kind, and what it is.
NEEDS: Mapping[int, tuple[str, str]] = {
    16636: (SHARING, "a channels-last constant that is outside of every delegate"),
    16637: (NOTHING, "a quantized model is exported again before the pass runs"),
    16680: (TARGET, "a GELU of float16 on XNNPACK, right before and after"),
    16681: (SHARING, "a constant that is neither contiguous nor channels-last, outside of every delegate"),
    16931: (QUANTIZER, "a constant that is made by name with a dtype of its own, and quantized"),
    17094: (FORM, "a dilated max pool over values below zero, or one with a stride"),
    17247: (SHARING, "a scatter by two index tensors that broadcast each other"),
    17304: (TARGET, "one operator whose operands are of two float types, on a profile with both"),
    17404: (NOTHING, "the harness lowers without the check that refused it"),
    17678: (SIZES, "a slice of a result whose size only the run decides"),
    17680: (SHARING, "a constant of two partitions, with a user that takes it by name"),
    17734: (TARGET, "bitwise operators of booleans that the profile lacks"),
    17750: (STATE, "a state that is written after an output, both in one delegate"),
    17842: (NOTHING, "no quantizer of these targets differs"),
    17901: (VALUES, "a buffer with infinities, as masks of attention have"),
    17904: (TARGET, "a minimum over dimensions of int32 on Ethos-U55"),
    18010: (NEIGHBOURS, "a condition within a condition"),
    18031: (SHARING, "one layer whose weights two rewrites ask for: a convolution with two batch norms"),
    18092: (NOTHING, "1.3.1 lowers no linear layer of a symbolic batch in either case"),
    18095: (TARGET, "booleans on Ethos-U55 that stay in the graph until they are partitioned"),
    18132: (NOTHING, "in 1.3.1 the pass does nothing"),
    18232: (NEIGHBOURS, "a detach with operators that no delegate takes on both sides"),
    18365: (TARGET, "a product of matrices in int16 on Ethos-U55"),
    18414: (FORM, "a transposed convolution with an oblong kernel on Ethos-U55"),
    18498: (TARGET, "an index of a dtype that the profile lacks"),
    18569: (NEIGHBOURS, "a quantized concatenation of more than five pieces of float16 on XNNPACK"),
    18700: (NOTHING, "neither partitioner preserves an operator that returns views"),
    18778: (NOTHING, "no target quantizes a clamp after a convolution and leaves floats beside it"),
    18941: (SIZES, "a convolution with a symbolic size whose padding must be cut, lowered for static sizes"),
    18973: (VALUES, "a table whose range the quantizer gives fewer than 256 codes"),
    18974: (NOTHING, "torch 2.12 describes products of integers as those of floats"),
    19154: (NEIGHBOURS, "a recurrent layer over the results of another, any() over those of any()"),
    19637: (FORM, "a power of zero whose input nothing else reads"),
    19662: (
        NEIGHBOURS,
        "a squeeze that changes nothing, with operators that no delegate takes on both sides",
    ),
    19663: (SHARING, "one tensor under two names, or a weight that is quantized in one place alone"),
    20376: (NEIGHBOURS, "a dynamically quantized convolution beside a sum of two layouts"),
    21284: (FORM, "a max pool with a stride above three on Ethos-U55"),
    21393: (NOTHING, "no target quantizes inputs to uint8"),
    21588: (FORM, "a convolution with one number for two dimensions, in aten's own form"),
    21589: (QUANTIZER, "an operator with a single quantized operand"),
    21590: (NOTHING, "equal operators are merged before"),
    21620: (NOTHING, "checks beside it refuse the same"),
    21629: (VALUES, "an int16 table that is read between its last two entries"),
    21725: (NOTHING, "torch 2.14 passes over a second erasure with a warning"),
    21897: (NOTHING, "no lowering runs the pass"),
    21910: (QUANTIZER, "an int16 convolution whose result is read as int32"),
    21949: (QUANTIZER, "a quantized part of a value with a scale of its own on XNNPACK"),
    22437: (FORM, "a nearest resize by a factor that is not whole"),
    22517: (NEIGHBOURS, "a batch norm after a transposed convolution"),
    22555: (TARGET, "an operator of complex numbers that Arm's table has"),
}

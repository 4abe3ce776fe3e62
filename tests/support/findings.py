"""Findings made by hand, of each kind at least one: with all that its lines may say, and with the least."""

from __future__ import annotations

import math

from msgspec.structs import replace

from executorch_goldens.artifact import Beginning, Exited, Killed, Lost, Metric, Spot
from executorch_goldens.goldens import findings
from executorch_goldens.goldens.findings import Deviated, Element, Fails, Finding, Frame, TensorType, Wiring

FLOAT32, INT8 = TensorType("float32", (2, 3)), TensorType("int8", (2, 3))
BY_RANGE = Deviated(FLOAT32, FLOAT32, 2, 6, 0.5, 0.125, 0.01, 0.03, (Element((0, 1), 1.5, 1.0, 0.02),))
EXACT = Deviated(
    INT8,
    INT8,
    1,
    6,
    math.inf,
    math.inf,
    elements=(Element((1, 2), math.nan, -3, 0.0), Element((1, 3), "(1+2j)", 1, 0.0)),
)
OTHER_TYPE = Deviated(INT8, FLOAT32)
FAILS = Fails("torch.SomeError", "no branch on 7 values\nof node_3", stage="export", blamed="SomePass")
RAISED = ("ValueError", "no kernel for 3 of [2, 3]\nmore", ("  File one", "ValueError: no"))
WRONG = findings.WrongValues(0, "example", BY_RANGE)
TYPE = findings.WrongType(2, "zeros", OTHER_TYPE)
COUNT = findings.WrongCount("zeros", 0, 1)
INVALID = findings.Invalid("TOSA 1.0", "lowered_module_0", "'tosa.conv2d' op illegal: requires 4")
SPOT = Spot(
    delegate="lowered_module_0",
    operator="CONV2D 3",
    node="aten.convolution conv",
    module="net.conv",
    before=("x 1",),
    unseen=("y 2",),
    agrees=True,
    alone=True,
    uncut=True,
)
BARE = replace(SPOT, operator="", module="", before=(), unseen=(), agrees=False, uncut=False)
ADDING = replace(SPOT, unseen=(), agrees=False, alone=False, uncut=False)
MISWIRED = (0, ("a", "b", "b"), "b")
GROUPS = (("seed0-heap0", "seed2-heap0"), ("seed1-heap1",))

EVERY: tuple[Finding, ...] = (
    FAILS,
    WRONG,
    findings.WrongValues(1, "zeros", EXACT),
    TYPE,
    COUNT,
    findings.BelowBound(Metric("accuracy", 0.5, 0.98, 0.9)),
    findings.Begins("example", SPOT, "TOSABackend", BY_RANGE),
    findings.Begins("example", BARE, "TOSABackend", EXACT),
    findings.Begins("example", ADDING, "TOSABackend", BY_RANGE),
    findings.BeginsElsewhere("zeros", Beginning("in output_4 of the graph", "eager gives another value")),
    findings.BeginsElsewhere("zeros", Beginning("", "it took too long", is_outside=False)),
    findings.Hidden(),
    findings.OfBuild("forward", "dropout"),
    findings.OfBuild("forward"),
    findings.OfBuild(),
    findings.Biased(3, 0.25, 0.125),
    findings.LoadedOtherwise("loaded by mmap, it gives output 0 of 3"),
    INVALID,
    findings.MissingConstant(0, INT8),
    findings.MissingConstant(0, INT8, "weight", 1, EXACT),
    findings.Miswired(*MISWIRED, Wiring.TWICE, 2, ("c",)),
    findings.Miswired(*MISWIRED, Wiring.UNWRITTEN, is_input=True),
    findings.Miswired(*MISWIRED, Wiring.UNDECLARED),
    findings.ChangedModel("net.scale", "SomePass", BY_RANGE),
    findings.Forgotten(("second step", "third step"), 1.5),
    findings.DoesNotRun(*RAISED, True, (INVALID,)),
    findings.LostSignal(Lost(0, 12.5, 20.0, ("conv loses 3 dB",), True, "conv2d", ""), FAILS),
    findings.LostSignal(Lost(0, -math.inf, 20.0, (), False), explains=True),
    findings.LostSignal(Lost(0, 1.4, 20.0, (), False, "", "batch_norm of norm")),
    findings.Imprecise(1, "zeros", math.inf, 0.1, (("lowered_module_1", "it took too long"),)),
    findings.Unchecked(("scale",), (("output 0", "0.0 in every element"),), ("output 1",)),
    findings.NotFinished("seed0-heap0", Killed("SIGSEGV", tail=("last words",))),
    findings.NotFinished("seed1-heap0", Exited(3)),
    findings.OutOfResources(*RAISED),
    findings.CaseFails(*RAISED),
    findings.Unsteady(*RAISED[:2]),
    findings.OwnFileFails(*RAISED, Frame("nets/gate.py", 41, "build")),
    findings.OwnFileFails(*RAISED[:2], (), Frame("nets/gate.py", 41)),
    findings.Undecodable("delegate 3: byte 17 is not 0"),
    findings.DamagedGolden("linear.txt: line 3 is damaged. Record it again"),
    findings.Disagreement(GROUPS),
    findings.Disagreement(GROUPS, order_only=True),
    findings.Disagreement(GROUPS, fails=(None, FAILS)),
    findings.UnequalOutputs(GROUPS, (WRONG, TYPE), (None, COUNT)),
    findings.UnequalOutputs(GROUPS, (), (None, WRONG)),
    findings.UnequalOutputs(GROUPS, (), (None, None), judged_apart=True),
    findings.UnsteadyCase(GROUPS, ("net.weight",)),
    findings.UnsteadyCase(GROUPS),
    findings.Differs(("graph", "pte"), (("aten.sin.default", "no table for it"),)),
    findings.Differs(()),
    findings.NowFails(FAILS, ("stage: export", "message: no")),
    findings.NamesDiffer((("a", "b"), *((f"a{n}", f"b{n}") for n in range(13)))),
    findings.NewFailure(FAILS, ("stage: export", "message: no")),
    findings.NewProgram(True, 0, 0, (("aten.abs.default", 2),)),
    findings.NewProgram(
        False,
        1,
        4,
        (("a", 3), ("b", 1), ("c", 1), ("d", 1)),
        41.3,
        "no rule gives the sizes",
        ("aten.topk",),
        ("lowered_module_0: it took too long",),
    ),
    findings.Unexpected("FAILURE", "export: no branch on … values"),
    findings.Unexpected("NO DELEGATE", "", ("aten.abs.default", "aten.sin.default")),
    findings.Unexpected("NO DELEGATE", ""),
    findings.OverBudget(
        (
            findings.Exceeded("memory", 1200.0, 1000.0, "tosa-*/alpha"),
            findings.Exceeded("sqnr", 30.5, 31.0, "*"),
        ),
        "decisions.toml",
    ),
    findings.RightNow("decisions.toml", "corrupt", "an issue"),
    findings.NotRun("an issue", "no rule gives the sizes"),
)

"""Choosing patches, and the check that they replace what they were written for. Nothing here imports ExecuTorch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from harness import guard, patches, releases
from harness.guard import GuardError, UnknownNameError
from harness.patches import PATCHES, Patch
from harness.patches.partition_order import number
from harness.reports import CORRECTED

FUNCTION = "json.decoder:JSONDecoder.decode"


@dataclass
class Bench:
    """Two patches, `first` and `second`, of this process; `installed` says which were."""

    installed: list[tuple[str, str]] = field(default_factory=list)

    def add(self, monkeypatch: pytest.MonkeyPatch, name: str, known: Mapping[str, Mapping[str, str]]) -> None:
        def install(release: str) -> None:
            self.installed.append((name, release))

        monkeypatch.setitem(PATCHES, name, Patch(name, 1, "for a test", known, install))


@pytest.fixture
def bench() -> Bench:
    return Bench()


#: Without what other modules of this session have registered.
REPORTED = {name: patch for name, patch in PATCHES.items() if patch.report is not None}


def test_names_and_reports_of_the_patches() -> None:
    assert {name: patch.report for name, patch in REPORTED.items()} == {
        "partition-order": 19045,
        "unique-outputs": 18866,
        "list-qparams": 18971,
        "output-aliases": 19152,
    }


def test_every_known_digest_is_a_sha256_of_a_named_function() -> None:
    for patch in (*REPORTED.values(), *(PATCHES[name] for name in CORRECTED)):
        for known in patch.known.values():
            assert known
            for function, digest in known.items():
                assert function.count(":") == 1
                assert len(bytes.fromhex(digest)) == 32


def test_no_release_declares_the_patch_of_a_finding_but_of_that_whose_program_is_right() -> None:
    declared = {name for release in releases.load().releases.values() for name in release.patches}
    assert declared == {*REPORTED, "folded-scales"}


def test_importing_the_patches_imports_neither_torch_nor_executorch() -> None:
    code = "import sys, json, harness.patches; print(json.dumps(sorted(sys.modules)))"
    modules = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert "harness.patches.output_aliases" in modules
    assert not {"torch", "executorch", "tosa_serializer"} & set(modules)


def test_auto_selects_what_the_release_declares_in_the_order_of_application() -> None:
    assert patches.select("auto", ["output-aliases", "partition-order"]) == (
        "partition-order",
        "output-aliases",
    )


def test_none_selects_nothing() -> None:
    assert patches.select("none", list(PATCHES)) == ()


def test_names_are_selected_once_whatever_the_release_declares() -> None:
    assert patches.select("list-qparams, partition-order,list-qparams", []) == (
        "partition-order",
        "list-qparams",
    )


@pytest.mark.parametrize("spec", ["partition_order", "", "auto,list-qparams", "list-qparams,"])
def test_a_name_that_is_no_patch_is_an_error_that_lists_the_known_ones(spec: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        patches.select(spec, ["partition-order"])
    assert caught.value.known == tuple(PATCHES)
    assert caught.value.name in spec.split(",")
    assert "partition-order, unique-outputs, list-qparams, output-aliases" in str(caught.value)


def test_an_unknown_declared_name_is_an_error_too() -> None:
    with pytest.raises(UnknownNameError, match="'no-such'"):
        patches.select("auto", ["no-such"])


def test_patches_that_know_their_source_are_installed_in_order(
    monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    known = {"9.9.9": {FUNCTION: guard.digest(FUNCTION)}}
    bench.add(monkeypatch, "first", known)
    bench.add(monkeypatch, "second", known)
    patches.apply(["second", "first"], "9.9.9")
    assert bench.installed == [("first", "9.9.9"), ("second", "9.9.9")]


def test_another_source_is_an_error_with_both_digests_and_nothing_is_installed(
    monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    bench.add(monkeypatch, "first", {"9.9.9": {FUNCTION: guard.digest(FUNCTION)}})
    bench.add(monkeypatch, "second", {"9.9.9": {FUNCTION: "0" * 64}})
    with pytest.raises(GuardError) as caught:
        patches.apply(["first", "second"], "9.9.9")
    error = caught.value
    assert (error.kind, error.name) == (guard.PATCH, "second")
    assert (error.release, error.function) == ("9.9.9", FUNCTION)
    assert (error.expected, error.found) == ("0" * 64, guard.digest(FUNCTION))
    for part in (
        "patch 'second'",
        "9.9.9",
        FUNCTION,
        guard.digest(FUNCTION),
        "record the new digest",
        "--patches",
    ):
        assert part in str(error)
    assert bench.installed == []


def test_a_release_that_a_patch_was_not_written_for_is_an_error(
    monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    bench.add(monkeypatch, "first", {"9.9.9": {FUNCTION: guard.digest(FUNCTION)}})
    with pytest.raises(
        GuardError, match=r"not written for ExecuTorch 9\.9\.8.*python -m harness\.patches"
    ) as caught:
        patches.apply(["first"], "9.9.8")
    assert (caught.value.function, caught.value.found) == (None, None)
    assert bench.installed == []


@pytest.mark.parametrize("function", ["json.decoder:JSONDecoder.no_such", "no_such_module:f"])
def test_a_function_that_is_not_installed_is_an_error(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, function: str
) -> None:
    bench.add(monkeypatch, "first", {"9.9.9": {function: "0" * 64}})
    with pytest.raises(GuardError) as caught:
        patches.apply(["first"], "9.9.9")
    assert (caught.value.function, caught.value.expected, caught.value.found) == (function, "0" * 64, None)
    assert function in str(caught.value)
    assert bench.installed == []


def test_tags_are_ordered_by_number() -> None:
    assert sorted(["tag10", "tag2", "tag0"], key=number) == ["tag0", "tag2", "tag10"]

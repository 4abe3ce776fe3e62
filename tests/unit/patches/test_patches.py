"""Choosing patches, and the check of the code that they replace. Nothing here imports ExecuTorch."""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import json
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from executorch_goldens import patches
from executorch_goldens.patches import PATCHES, Patch, UnknownNameError, guard
from executorch_goldens.patches.guard import GuardError
from executorch_goldens.patches.partition_order import number
from executorch_goldens.settings import releases

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
REPORTED = {name: patch for name, patch in PATCHES.items() if patch.issue is not None}


def test_names_and_reports_of_the_patches() -> None:
    assert {name: patch.issue for name, patch in REPORTED.items()} == {
        "partition-order": 19045,
        "unique-outputs": 18866,
        "list-qparams": 18971,
        "output-aliases": 19152,
    }


def test_every_known_digest_is_the_beginning_of_a_sha256_of_a_named_function() -> None:
    for patch in (*REPORTED.values(), PATCHES["folded-scales"]):
        for known in patch.fits.values():
            assert known
            for function, digest in known.items():
                assert function.count(":") == 1
                assert len(bytes.fromhex(digest)) * 2 == guard.DIGITS


def test_no_release_declares_the_patch_of_a_finding_but_of_that_whose_program_is_right() -> None:
    declared = {name for release in releases.load().releases.values() for name in release.patches}
    assert declared == {*REPORTED, "folded-scales"}


def test_importing_the_patches_imports_neither_torch_nor_executorch() -> None:
    code = "import sys, json, executorch_goldens.patches; print(json.dumps(sorted(sys.modules)))"
    modules = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert "executorch_goldens.patches.output_aliases" in modules
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
    assert error.patch is PATCHES["second"]
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
    with pytest.raises(GuardError, match=r"not written for ExecuTorch 9\.9\.8.*goldens\.patches") as caught:
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


#: A release's code, in little.
UPSTREAM = """
    import contextlib
    import functools


    def traced(function):
        @functools.wraps(function)
        def tracing(*given):
            return function(*given)

        return tracing


    def plain(a, b=2):
        return a + b


    @traced
    def decorated(a):
        return a + 1


    @functools.lru_cache
    def cached(a):
        return a + 1


    @contextlib.contextmanager
    def managed(a):
        yield a


    part = functools.partial(plain, 1)


    class Pass:
        def call(self, a):
            return a

        @classmethod
        def made(cls):
            return cls()

        @staticmethod
        def free(a):
            return a

        @property
        def name(self):
            return "pass"

        @functools.cached_property
        def slow(self):
            return "slow"
"""
PASS = ("call", "made", "free", "name", "slow")
GUARDED = ("plain", "decorated", "cached", "managed", "part", "Pass", *(f"Pass.{name}" for name in PASS))


def other(*given: object) -> object:
    return "another"


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module with `UPSTREAM`, imported from a file."""
    (tmp_path / "upstream_of_guard.py").write_text(textwrap.dedent(UPSTREAM))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield importlib.import_module("upstream_of_guard")
    del sys.modules["upstream_of_guard"]


def check(function: str, before: str) -> None:
    """Verify the current code of ``upstream_of_guard:function``."""
    guard.verify(Patch("any", None, "", {"9.9.9": {f"upstream_of_guard:{function}": before}}, print), "9.9.9")


def wrapping(module: Any) -> None:
    upstream = module.plain
    module.plain = functools.wraps(upstream)(lambda a, b=2: upstream(a, b) + 1)


def wrapping_a_decorated(module: Any) -> None:
    upstream = module.decorated
    module.decorated = functools.wraps(upstream)(lambda a: upstream(a) + 1)


def wrapped_by_hand(module: Any, name: str = "plain") -> None:
    upstream = getattr(module, name)

    def replacement(*given: object) -> object:
        return 3

    replacement.__wrapped__ = upstream  # type: ignore[attr-defined]
    setattr(module, name, replacement)


def cached_instead(module: Any) -> None:
    replacement = functools.lru_cache(other)
    replacement.__wrapped__ = module.cached.__wrapped__  # type: ignore[method-assign]
    module.cached = replacement


class Called:
    def __call__(self, *given: object) -> object:
        return 3


#: Ways to run something else than the source says, each with the function that it is seen at.
REPLACED: dict[str, tuple[str, Callable[[Any], None]]] = {
    "wrapped": ("plain", wrapping),
    "wrapped by hand": ("plain", wrapped_by_hand),
    "a decorated one wrapped": ("decorated", wrapping_a_decorated),
    "what a decorated one wraps": (
        "decorated",
        lambda module: setattr(module.decorated.__closure__[0], "cell_contents", other),
    ),
    "its code": ("plain", lambda module: setattr(module.plain, "__code__", other.__code__)),
    "a callable object": ("plain", lambda module: setattr(module, "plain", Called())),
    "a builtin": ("plain", lambda module: setattr(module, "plain", sum)),
    "no function": ("plain", lambda module: setattr(module, "plain", {})),
    "a partial object": (
        "plain",
        lambda module: setattr(
            module, "plain", functools.update_wrapper(functools.partial(other), module.plain)
        ),
    ),
    "the argument of a partial object": (
        "part",
        lambda module: setattr(module, "part", functools.partial(module.plain, 2)),
    ),
    "the function of a partial object": (
        "part",
        lambda module: setattr(module, "part", functools.partial(other, 1)),
    ),
    "a cached one": ("cached", cached_instead),
    "a context manager": ("managed", lambda module: wrapped_by_hand(module, "managed")),
    "a method": (
        "Pass.call",
        lambda module: setattr(module.Pass, "call", functools.wraps(module.Pass.call)(other)),
    ),
    "a classmethod": ("Pass.made", lambda module: setattr(module.Pass, "made", classmethod(other))),
    "a staticmethod": ("Pass.free", lambda module: setattr(module.Pass, "free", staticmethod(other))),
    "a property": ("Pass.name", lambda module: setattr(module.Pass, "name", property(other))),
    "a cached property": (
        "Pass.slow",
        lambda module: setattr(module.Pass, "slow", functools.cached_property(other)),
    ),
    "a method of a class": (
        "Pass",
        lambda module: setattr(module.Pass, "call", functools.wraps(module.Pass.call)(other)),
    ),
    "a property of a class": ("Pass", lambda module: setattr(module.Pass, "name", property(other))),
    "a method more of a class": ("Pass", lambda module: setattr(module.Pass, "__call__", other)),
    "the code of a method of a class": (
        "Pass",
        lambda module: setattr(module.Pass.call, "__code__", other.__code__),
    ),
    "a class": (
        "Pass",
        lambda module: setattr(module, "Pass", type("Pass", (module.Pass,), {"call": other})),
    ),
}


@pytest.mark.parametrize("name", GUARDED)
def test_a_digest_is_that_of_the_source_and_what_nobody_touched_is_verified(upstream: Any, name: str) -> None:
    found = guard.digest(f"upstream_of_guard:{name}")
    assert found == guard.digest(f"upstream_of_guard:{name}")
    check(name, found)


def test_the_digest_of_a_plain_function_is_that_of_its_text(upstream: Any) -> None:
    text = inspect.getsource(upstream.plain)
    assert guard.digest("upstream_of_guard:plain") == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("way", REPLACED)
def test_what_runs_is_what_is_verified(upstream: Any, way: str) -> None:
    name, put = REPLACED[way]
    before = guard.digest(f"upstream_of_guard:{name}")
    put(upstream)
    with pytest.raises(GuardError, match=r"of Python|its SHA-256 is") as caught:
        check(name, before)
    assert caught.value.function == f"upstream_of_guard:{name}"


def test_a_replaced_function_is_named_with_where_it_is(upstream: Any) -> None:
    before = guard.digest("upstream_of_guard:plain")
    upstream.plain = functools.wraps(upstream.plain)(other)
    with pytest.raises(GuardError) as caught:
        check("plain", before)
    assert caught.value.where == f"{__file__}:{other.__code__.co_firstlineno}"
    assert "If something else replaced the function, remove that" in str(caught.value)


def test_a_table_without_functions_verifies_nothing_unless_it_says_why(
    monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    bench.add(monkeypatch, "first", {"9.9.9": {}})
    with pytest.raises(GuardError, match=r"patch 'first' was not written for ExecuTorch 9\.9\.9"):
        patches.apply(["first"], "9.9.9")
    assert bench.installed == []
    monkeypatch.setitem(PATCHES, "first", replace(PATCHES["first"], unguarded="it edits nothing"))
    patches.apply(["first"], "9.9.9")
    assert bench.installed == [("first", "9.9.9")]


def test_what_names_no_function_and_says_why_fits_every_release() -> None:
    guard.verify(Patch("any", None, "", {}, print, unguarded="it replaces nothing"), "9.9.9")


def test_a_digest_that_is_too_short_to_tell_is_another_source() -> None:
    with pytest.raises(GuardError, match=rf"not written for this source of {FUNCTION}"):
        guard.verify(Patch("any", None, "", {"9.9.9": {FUNCTION: ""}}, print), "9.9.9")


def test_a_patch_fits_the_releases_that_every_function_has_a_digest_for() -> None:
    fits = guard.by_release("a:f 1 1.5.1 9.9.9  2 1.4.1\na:g 3 1.4.1 9.9.9")
    assert fits == {"1.4.1": {"a:f": "2", "a:g": "3"}, "9.9.9": {"a:f": "1", "a:g": "3"}}


def test_tags_are_ordered_by_number() -> None:
    assert sorted(["tag10", "tag2", "tag0"], key=number) == ["tag0", "tag2", "tag10"]

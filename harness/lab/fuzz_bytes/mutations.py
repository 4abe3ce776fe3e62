"""Mutations of real files: of their bytes, and of the words of those that are text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import strategies as st

#: Numbers that lengths and offsets overflow at.
EXTREMES = (0, 1, 4, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF)

#: Replacements of a word: other types, numbers out of range, names that leave their folder, controls.
WORDS = (
    *(b"null", b"true", b"-1", b"0", b"1e999", b"NaN", b"1.5", b"99999999999999999999", b"1" * 5000),
    *(b'""', b"[]", b"{}", b"[[1]]", b'{"a": 1}', b"''", b"[1, 2]", b'"seed0-heap0"', b"2026-01-01", b'"a"'),
    *(b'".."', b'"../../x"', b'"/etc/passwd"', b'"con"', b'"a/b"', b"../x", b"/dev/zero", b'"\\u0000"'),
    *(b'"\\ud800"', b'"\\u001b[2J"', b"\x1b]0;x\x07", b"\xff\xfe", b"\xed\xa0\x80", b"\xe2\x80\xae", b"\0"),
    *(b"[" * 2000, b'{"a":' * 2000, b"[" * 200_000, b"(" * 2000, b"a." * 2000, b"  " * 2000, b'"%s"' % (b"x" * 70_000)),
    *(b"\n", b"\r", b"\t", b" ", b":", b": ", b"=", b",", b"#", b'"', b"\\", b"\xc2\xb2", b"\xd9\xa3"),
)  # fmt: skip

WORD = re.compile(rb'"(?:[^"\\\n]|\\.)*"|[A-Za-z0-9_.+-]+|[^\sA-Za-z0-9_]|\n')

#: No mutation makes a file much larger than this: what a size may be is bounded by `files.untrusted`.
LARGEST = 1 << 20

#: Edits of one file: each is what is done, and two numbers that choose where and with what.
EDITS = st.lists(
    st.tuples(st.integers(0, 255), st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 32) - 1)),
    min_size=1,
    max_size=6,
)
Edit = tuple[int, int, int]


def mutants(seeds: int) -> st.SearchStrategy[tuple[int, list[Edit]]]:
    """Return a mutator that draws a seed file and its edits."""
    return st.tuples(st.integers(0, seeds - 1), EDITS)


def mutated(seed: bytes, edits: Sequence[Edit], others: Sequence[bytes], is_text: bool) -> bytes:
    """Return `seed` with `edits` made to it.

    Parameters
    ----------
    others
        Files that parts are taken from.
    is_text
        Whether its words are replaced as well as its bytes.
    """
    data = seed
    kinds = (*BYTE_EDITS, *WORD_EDITS * 2) if is_text else BYTE_EDITS
    for kind, where, what in edits:
        data = kinds[kind % len(kinds)](data, where, what, others)
    return data[: LARGEST + len(seed)]


def _flip(data: bytes, where: int, what: int, others: Sequence[bytes]) -> bytes:
    at = where % max(1, len(data))
    return data[:at] + bytes(byte ^ 1 << what % 8 for byte in data[at : at + 1]) + data[at + 1 :]


def _byte(data: bytes, where: int, what: int, others: Sequence[bytes]) -> bytes:
    at = where % (len(data) + 1)
    return data[:at] + bytes([what % 256]) + data[at + 1 :]


def _number(width: int, data: bytes, where: int, what: int) -> bytes:
    at = where % (len(data) + 1) // width * width
    numbers = (*EXTREMES, len(data), len(data) // 4, what >> 8 & 0xFFF, what >> 8 & 0x3F, what >> 8)
    number = numbers[what % len(numbers)] % (1 << 8 * width)
    return data[:at] + number.to_bytes(width, "little") + data[at + width :]


def _word32(data: bytes, where: int, what: int, others: Sequence[bytes]) -> bytes:
    return _number(4, data, where, what)


def _word16(data: bytes, where: int, what: int, others: Sequence[bytes]) -> bytes:
    return _number(2, data, where, what)


def _swap(data: bytes, where: int, what: int, others: Sequence[bytes]) -> bytes:
    one, other = sorted(place % (len(data) + 1) & ~3 for place in (where, what))
    if other - one < 4:
        return data
    four = slice(one, one + 4), slice(other, other + 4)
    return data[:one] + data[four[1]] + data[one + 4 : other] + data[four[0]] + data[other + 4 :]


def _truncate(data: bytes, where: int, what: int, others: Sequence[bytes]) -> bytes:
    return data[: where % (len(data) + 1)]


def _delete(data: bytes, where: int, what: int, others: Sequence[bytes]) -> bytes:
    at = where % (len(data) + 1)
    return data[:at] + data[at + 1 + what % 64 :]


def _repeat(data: bytes, where: int, what: int, others: Sequence[bytes]) -> bytes:
    at = where % (len(data) + 1)
    part = data[at : at + 1 + what % 64]
    return data[:at] + part * (1 + (what >> 8) % 1024) + data[at:]


def _splice(data: bytes, where: int, what: int, others: Sequence[bytes]) -> bytes:
    other = others[what % len(others)]
    start = (what >> 8) % (len(other) + 1)
    at = where % (len(data) + 1)
    return data[:at] + other[start : start + 1 + (where >> 16) % 256] + data[at:]


def _words(data: bytes) -> list[tuple[int, int]]:
    return [match.span() for match in WORD.finditer(data)] or [(0, 0)]


def _replace(data: bytes, where: int, what: int, others: Sequence[bytes]) -> bytes:
    words = _words(data)
    start, stop = words[where % len(words)]
    return data[:start] + WORDS[what % len(WORDS)] + data[stop:]


def _exchange(data: bytes, where: int, what: int, others: Sequence[bytes]) -> bytes:
    words = _words(data)
    start, stop = words[where % len(words)]
    return data[:start] + data[slice(*words[what % len(words)])] + data[stop:]


def _drop(data: bytes, where: int, what: int, others: Sequence[bytes]) -> bytes:
    words = _words(data)
    first = where % len(words)
    last = min(first + what % 8, len(words) - 1)
    return data[: words[first][0]] + data[words[last][1] :]


def _move_line(data: bytes, where: int, what: int, others: Sequence[bytes]) -> bytes:
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    line = lines[where % len(lines)]
    if what & 1:
        lines.remove(line)
    lines.insert((what >> 1) % (len(lines) + 1), line)
    return b"".join(lines)


BYTE_EDITS = (_flip, _byte, _word32, _word16, _swap, _truncate, _delete, _repeat, _splice)
WORD_EDITS = (_replace, _replace, _exchange, _drop, _move_line)

"""A review in a terminal, by keys."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from executorch_goldens.review.groups import STATES, Group
from executorch_goldens.review.recording import record
from executorch_goldens.review.session import Session
from executorch_goldens.review.standing import Standing
from executorch_goldens.settings.config import Config
from tests import REPOSITORY
from tests.commands.review.conftest import TARGETS, Review, edit, found, path_of
from tests.support.runner import DROPPED, RUN_LIMIT, Runner


def acceptable_first(proposed: Runner) -> list[Group]:
    """Return the causes in an order in which the keys of a test meet first what they may accept."""
    return sorted(found(proposed).values(), key=lambda group: STATES.index(group.state))


@pytest.fixture
def session(proposed: Runner) -> Session:
    return Session(acceptable_first(proposed), {})


def pressed(session: Session, keys: str) -> bool:
    """Send keys to the screen of a review, which they end; return whether it is to be written."""
    pytest.importorskip("prompt_toolkit")
    from prompt_toolkit.application import create_app_session
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output import DummyOutput

    from executorch_goldens.review.terminal import Screen

    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text(keys)
        return Screen(session).run()


LEFT, RIGHT, TAB = "\x1b[D", "\x1b[C", "\t"


@pytest.mark.parametrize(
    ("keys", "cells", "reasons", "written"),
    [
        ("q", 0, [], False),
        ("aay", 6, [], True),
        ("aan", 6, [], False),
        ("aqy", 4, [], True),
        ("aq\x03", 4, [], False),
        ("saqy", 2, [], True),
        ("cqy", 1, [], True),
        ("cccc" + "ay", 6, [], True),
        (TAB + "cqy", 1, [], True),
        ("sa" + LEFT + LEFT + "rtoo large\ry", 2, ["too large"], True),
        ("a" + LEFT + "rtoo large\rqy", 0, ["too large"], True),
        ("rtoo large\r" + LEFT + "aay", 6, [], True),
        ("r\rq", 0, [], False),
        ("auq", 0, [], False),
        ("acuqy", 4, [], True),
        ("aaby\x03\x03", 6, [], False),
        (RIGHT + RIGHT + "acq", 0, [], False),
        (RIGHT + RIGHT + "rreported upstream\rqy", 0, ["reported upstream"], True),
        ("gvtg\x1b[B\x1b[Asuq", 0, [], False),
    ],
)
def test_keys_decide_and_nothing_is_written_without_a_y(
    session: Session, keys: str, cells: int, reasons: list[str], written: bool
) -> None:
    # A key after the end of a sequence would be left over: each sequence ends the review.
    assert pressed(session, keys if written or keys[-1] in "qn\x03" else f"{keys}\x03") == written
    assert len(session.decisions.accepted) == cells
    assert list(session.decisions.rejected.values()) == reasons


@pytest.mark.parametrize(
    ("keys", "known"),
    [
        (RIGHT + RIGHT + "ka sign\rqy", 1),
        (RIGHT + RIGHT + "ka sign\r" + LEFT + "ra sign\rqy", 0),
        (RIGHT + RIGHT + "ka sign\ruq", 0),
        (RIGHT + RIGHT + "k\x1bra sign\rqy", 0),
        ("ka sign\r\x03", 0),
    ],
)
def test_a_key_declares_only_what_cannot_be_recorded(session: Session, keys: str, known: int) -> None:
    pressed(session, keys)
    assert len(session.decisions.known) == known
    assert ("  known defect: a sign" in list(session.conclusion())) == bool(known)


def test_one_key_accepts_a_cause_and_one_writes_all(proposed: Runner, session: Session) -> None:
    assert pressed(session, "aay")
    standing = Standing(
        Config(REPOSITORY, proposed.goldens, proposed.folder, patches="auto"), proposed.goldens
    )
    accepted = list(session.decisions.accepted.values())
    written = record(accepted, proposed.sweeps.parent, proposed.goldens, standing)
    assert {path.relative_to(proposed.root) for path in written} == {
        *(Path(target, "alpha") for target in TARGETS),
        *(Path(target, "beta") for target in ("xnnpack-fp32", "xnnpack-int8")),
    }


def test_a_key_lists_the_cells_of_a_cause_the_largest_growth_of_the_error_first(
    proposed: Runner, session: Session
) -> None:
    measured = {"error": 0.125, "tolerance": 0.25, "used": 0.5, "sqnr": 41.0}
    edit(proposed, "tosa-int/alpha", accuracy=measured)
    session = Session(acceptable_first(proposed), {})
    pressed(session, "eq")
    head, *rows = session.lines()
    assert head.split("  ")[0] == "cell"
    assert [row.split()[1] for row in rows] == [
        "tosa-int/alpha",
        *(f"{target}/alpha" for target in TARGETS if target != "tosa-int"),
    ]
    assert "-> 0.5" in rows[0]
    assert "? -> 41.0" in rows[0]


def test_lines_are_broken_between_words_at_the_width_of_the_terminal(session: Session) -> None:
    from executorch_goldens.review.terminal import wrapped

    for line in session.lines():
        parts = wrapped(line, 40)
        assert " ".join(part.strip() for part in parts) == " ".join(line.split())


def test_what_is_shown_of_a_cell_is_what_a_key_asks_for(session: Session) -> None:
    pressed(session, "vq")
    name = session.member.proposal.name
    assert f"{name} (cell 1 of 4), constants:" in list(session.lines())
    pressed(session, TAB + "vtq")
    assert f"{session.member.proposal.name} (cell 2 of 4), trace:" in list(session.lines())
    assert session.member.proposal.name != name


def test_what_was_rejected_before_is_shown(proposed: Runner) -> None:
    groups = acceptable_first(proposed)
    session = Session(groups, {groups[0].cause: "too large"})
    assert next(iter(session.lines())) == "rejected: too large"


def test_what_is_written_is_shown_before_it_is(session: Session) -> None:
    pressed(session, "arfor the backend\rn")
    first, second = session.groups[:2]
    assert list(session.conclusion()) == [
        f"accepted: {first.title}; 4 changed",
        f"rejected: {second.title}; 2 failed",
        "  for the backend",
        "",
        "write 4 goldens of 1 release, and keep 1 reason?",
    ]


@pytest.fixture
def doubted(proposed: Runner) -> Session:
    """A review whose first cause has three cells that changed, and one that is corrupt."""
    edit(proposed, "tosa-fp/alpha", verdict="corrupt", content=None)
    return Session(acceptable_first(proposed), {})


@pytest.mark.parametrize(
    ("keys", "accepted"),
    [("ayes\rqy", 3), (TAB + "cyes\rqy", 1), ("ano\r\x03", 0), ("a\r\x03", 0), ("a\x1bu\x03", 0)],
)
def test_what_is_corrupt_elsewhere_is_accepted_by_a_typed_yes(
    doubted: Session, keys: str, accepted: int
) -> None:
    assert pressed(doubted, keys) == bool(accepted)
    assert {member.proposal.verdict for member in doubted.decisions.accepted.values()} <= {"changed"}
    assert len(doubted.decisions.accepted) == accepted


def test_the_last_reason_is_offered_again(session: Session) -> None:
    assert pressed(session, "ra sign\rr\ry")
    assert list(session.decisions.rejected.values()) == ["a sign", "a sign"]


def test_an_interrupt_asks_what_becomes_of_decisions(session: Session) -> None:
    assert pressed(session, "a\x03y")
    assert not pressed(Session(session.groups, {}), "a\x03\x03")


def test_causes_are_listed_with_what_was_said_to_them(session: Session) -> None:
    pressed(session, "aqb" + RIGHT + "rno\rbl\x03\x03")
    first, second, *_ = session.overview()
    assert (first, second) == ("1 accepted, 1 rejected, 2 open", "")
    assert list(session.lines())[:1] == [first]


class Terminal:
    """A terminal with ``goldens review`` in it."""

    def __init__(self, runner: Runner) -> None:
        pytest.importorskip("prompt_toolkit")
        pyte = pytest.importorskip("pyte")
        self.screen = pyte.Screen(120, 40)
        self.stream = pyte.ByteStream(self.screen)
        self.master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (40, 120))
        environment = {name: value for name, value in os.environ.items() if name not in DROPPED}
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "executorch_goldens", "review"),
                *(f"--goldens={runner.goldens}", f"--sweeps={runner.sweeps.parent}"),
            ],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=REPOSITORY,
            env=environment | {"TERM": "xterm", "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])},
            start_new_session=True,
        )
        os.close(slave)

    def shows(self, text: str) -> None:
        """Read until some line of the screen has `text`."""
        while not any(text in line for line in self.screen.display):
            assert select.select([self.master], [], [], RUN_LIMIT)[0], "\n".join(self.screen.display)
            self.stream.feed(os.read(self.master, 65536))

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def ended(self) -> int:
        """Read to the end, and return the exit code."""
        with contextlib.suppress(OSError):
            while data := os.read(self.master, 65536):
                self.stream.feed(data)
        os.close(self.master)
        return self.process.wait(RUN_LIMIT)


def test_in_a_real_terminal_groups_are_shown_accepted_rejected_and_written(proposed: Runner) -> None:
    corrupt, _, constant, fails = found(proposed).values()
    terminal = Terminal(proposed)
    terminal.shows(f"1/4  {corrupt.title[:60]}")
    terminal.press(RIGHT + RIGHT)
    terminal.shows(f"3/4  {constant.title}; 4 changed")
    terminal.shows("a accept cause")
    terminal.press("a")
    terminal.shows("4/4")
    terminal.press("r")
    terminal.shows("reason: ")
    terminal.press("\x1b")
    terminal.shows("a accept cause")
    terminal.press("rfor the backend\r")
    terminal.shows("write 4 goldens of 1 release, and keep 1 reason?")
    assert all(path_of(proposed, f"{target}/alpha").exists() for target in TARGETS)
    terminal.press("y")
    assert terminal.ended() == 0
    terminal.shows("rejected: fails: ")
    assert not any(path_of(proposed, f"{target}/alpha").exists() for target in TARGETS)
    assert [*found(proposed).values()][-1].cause == fails.cause


def test_without_a_terminal_the_way_out_is_said(review: Review) -> None:
    review().refused("no terminal", "--list", "--accept GROUP")

"""Draws a review in a terminal, and hands its keys to the session. The only module that needs prompt_toolkit."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import TextArea

from executorch_goldens.review.session import CELLS, OVERVIEW, Session

KEYS = (
    "a accept cause  c accept cell  r reject  k known defect  s skip  u undo  q quit\n"
    "l causes  e cells  left/right  tab cell  g graph  v constants  t trace  up/down"
)
CONFIRM = "y write  n leave, nothing is written  b back to the review"
REASON = "enter reject  escape back"
AFFIRM = "enter answer  escape back"
#: The word to type to accept the rest of a cause that makes cells wrong.
YES = "yes"
#: Lines that a title, and a note, may take of a narrow terminal.
TITLE_LINES = 3
STYLE = Style.from_dict(
    {"title": "bold reverse", "keys": "reverse", "added": "ansigreen", "removed": "ansired", "note": "bold"}
)

Fragments = list[tuple[str, str]]


class Screen:
    """The screen of one review.

    Attributes
    ----------
    asking
        Whether it asks for the confirmation.
    scrolled
        Lines above the window.
    known
        Whether the reason that is typed declares known defects.
    affirming
        Members that are accepted once a person has typed that they are; None where a reason is typed.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.asking = False
        self.scrolled = 0
        self.known = False
        self.affirming: Callable[[bool], None] | None = None
        self.reason = TextArea(height=1, prompt=self._prompt, multiline=False, accept_handler=self._typed)
        body = FormattedTextControl(self._body, focusable=True, show_cursor=False)
        self.body = Window(body, wrap_lines=True, always_hide_cursor=True)
        self.typing = Condition(lambda: self.application.layout.has_focus(self.reason))
        rows = [
            Window(
                FormattedTextControl(self._title),
                height=Dimension(min=1, max=TITLE_LINES),
                dont_extend_height=True,
                wrap_lines=True,
                style="class:title",
            ),
            self.body,
            ConditionalContainer(self.reason, self.typing),
            Window(
                FormattedTextControl(self._note),
                height=Dimension(min=1, max=TITLE_LINES),
                dont_extend_height=True,
                wrap_lines=True,
                style="class:note",
            ),
            Window(FormattedTextControl(self._keys), height=2, wrap_lines=True, style="class:keys"),
        ]
        self.application: Application[bool] = Application(
            layout=Layout(HSplit(rows), focused_element=self.body),
            key_bindings=self._bindings(),
            style=STYLE,
            full_screen=True,
        )

    def run(self) -> bool:
        """Let a person go through the groups; return whether to write the decisions."""
        written: bool = self.application.run()
        return written

    # Drawing

    def _title(self) -> str:
        return "changes to write" if self.asking else self.session.title()

    def _body(self) -> Fragments:
        shown = self.session.conclusion() if self.asking else self.session.lines()
        lines = [part for line in shown for part in wrapped(line, self.application.output.get_size().columns)]
        self.scrolled = min(self.scrolled, max(len(lines) - 1, 0))
        return [(_style(line), f"{line}\n") for line in lines[self.scrolled :]]

    def _note(self) -> str:
        return self.session.message

    def _keys(self) -> str:
        if self.typing():
            return AFFIRM if self.affirming is not None else REASON
        return CONFIRM if self.asking else KEYS

    def _prompt(self) -> str:
        if self.affirming is not None:
            return f"type {YES} to accept its right cells: "
        last = self.session.last_reason
        return f"reason (enter: {last}): " if last else "reason: "

    # Keys

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()
        asking = Condition(lambda: self.asking)
        reviewing = ~asking & ~self.typing
        session = self.session
        actions: dict[str, Callable[[], object]] = {
            "a": lambda: self._accept(session.accept_group),
            "c": lambda: self._accept(session.accept_cell),
            "s": session.skip,
            "u": session.undo,
            "g": lambda: session.show("graph"),
            "v": lambda: session.show("constants"),
            "t": lambda: session.show("trace"),
            "l": lambda: session.show(OVERVIEW),
            "e": lambda: session.show(CELLS),
            "tab": session.next_cell,
            "s-tab": lambda: session.next_cell(-1),
            "right": session.next_group,
            "left": lambda: session.next_group(-1),
        }
        for key, action in actions.items():
            bindings.add(key, filter=reviewing)(self._after(action))
        bindings.add("r", filter=reviewing)(lambda _: self._ask_reason(known=False))
        bindings.add("k", filter=reviewing)(lambda _: self._ask_reason(known=True))
        bindings.add("q", filter=reviewing)(self._quit)
        bindings.add("y", filter=asking)(lambda event: event.app.exit(result=True))
        bindings.add("n", filter=asking)(lambda event: event.app.exit(result=False))
        bindings.add("b", filter=asking)(lambda _: self._ask(False))
        bindings.add("u", filter=asking)(self._after(self._undo))
        bindings.add("escape", filter=self.typing, eager=True)(lambda _: self._back())
        bindings.add("c-c")(self._interrupted)
        for key, step in (("down", 1), ("up", -1), ("pagedown", 20), ("pageup", -20)):
            bindings.add(key, filter=~self.typing)(self._scroller(step))
        return bindings

    def _after(self, action: Callable[[], object]) -> Callable[[Any], None]:
        """Return the action of a key, then the final question, if every group is decided."""

        def pressed(_: Any) -> None:
            before = self.session.decisions
            action()
            self.scrolled = 0
            now = self.session.decisions
            decision = (now.accepted, now.rejected) != (before.accepted, before.rejected)
            if decision and self.session.decided and self.session.has_decisions:
                self._ask(True)

        return pressed

    def _scroller(self, step: int) -> Callable[[Any], None]:
        def pressed(_: Any) -> None:
            self.scrolled = max(self.scrolled + step, 0)

        return pressed

    def _quit(self, event: Any) -> None:
        if self.session.has_decisions:
            self._ask(True)
        else:
            event.app.exit(result=False)

    def _interrupted(self, event: Any) -> None:
        """Ask whether to write decisions when interrupted; a second interruption means no."""
        if self.asking or not self.session.has_decisions:
            event.app.exit(result=False)
            return
        self._back()
        self._ask(True)

    def _accept(self, accept: Callable[[bool], None]) -> None:
        """Accept a group without doubts; else ask a person to confirm."""
        if not self.session.doubt:
            accept(False)
            return
        self.session.message = self.session.doubt
        self.affirming = accept
        self.application.layout.focus(self.reason)

    def _undo(self) -> None:
        self._ask(False)
        self.session.undo()

    def _ask(self, asking: bool) -> None:
        self.asking, self.scrolled = asking, 0

    def _ask_reason(self, known: bool) -> None:
        self.known = known
        self.application.layout.focus(self.reason)

    def _typed(self, _: Any) -> bool:
        """Reject for the typed reason, or accept after the confirmation; return whether the prompt stays."""
        text, accept = self.reason.text, self.affirming
        if accept is None:
            self._after(lambda: self.session.reject(text or self.session.last_reason, self.known))(None)
        elif text.strip() == YES:
            self._after(lambda: accept(True))(None)
        else:
            self.session.message = "not accepted"
        self._back()
        return False

    def _back(self) -> None:
        self.reason.text = ""
        self.affirming = None
        self.application.layout.focus(self.body)


def wrapped(line: str, columns: int) -> list[str]:
    """Return a line as it is drawn: broken between words, the rest of it two columns further in.

    >>> wrapped("  cells: xnnpack-fp32/linear, xnnpack-fp32/lstm", 32)
    ['  cells: xnnpack-fp32/linear,', '    xnnpack-fp32/lstm']
    """
    margin = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(line, max(columns, 20), subsequent_indent=margin, break_on_hyphens=False) or [""]


def _style(line: str) -> str:
    """Return the style of a line of a difference."""
    signs = {"+": "class:added", "-": "class:removed"}
    # A heading says which sign is which: `delegate_0.tosa.txt: - golden, + now`.
    text = "" if line.endswith((", + now", ", + another")) else line.strip().rpartition("txt: ")[2]
    return signs.get(text[:1], "class:note" if line.startswith(("rejected: ", "unlike ")) else "")

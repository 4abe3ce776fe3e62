"""Tables in a repository's documentation: the zoo's coverage of a release, and the results of mutants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markupsafe import Markup

from executorch_goldens.errors import UsageError


@dataclass(frozen=True)
class Table:
    """A page of the documentation.

    Attributes
    ----------
    name
        By which links name it.
    text
        Its Markdown.
    """

    name: str
    title: str
    text: str

    def html(self) -> Markup:
        """Return it as HTML; HTML in the text is escaped, and links, which lead out of the report, become text."""
        markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image"])
        rendered = markdown.render(self.text)
        # The text has none of these tags: they are escaped in it.
        for tag, named in (
            ("<h1>", '<h1 tabindex="-1">'),
            ("<table>", '<div class="scroll" tabindex="0"><table>'),
            ("</table>", "</table></div>"),
        ):
            rendered = rendered.replace(tag, named)
        return Markup(rendered)


def tables(root: Path, releases: Sequence[str]) -> Iterator[Table]:
    """Yield the tables that are in a repository: one for each of the releases, and the mutants'.

    Raises
    ------
    UsageError
        For one that cannot be read.
    """
    places = {
        f"coverage/{release}": (
            f"Coverage of {release} by the zoo",
            root / "harness/lab/docs/coverage" / f"{release}.md",
        )
        for release in releases
    }
    places["mutants"] = ("Deliberate defects", root / "harness/lab/docs/mutants.md")
    for name, (title, path) in places.items():
        if path.is_file():
            try:
                yield Table(f"table/{name}", title, path.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError) as error:
                raise UsageError(f"{path} cannot be read ({error}): mend it, or move it away") from error

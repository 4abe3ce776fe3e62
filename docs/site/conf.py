"""How Sphinx makes the site: the Markdown of this repository as it is, from its root, with nothing from a network."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from executorch_goldens.settings import releases
from executorch_goldens.words.drift import Drift
from executorch_goldens_plugins.compare import calls
from lab.args import page as operators
from lab.args import table

project = "executorch-goldens"
extensions = [
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_external_toc",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
root_doc = "README"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/**/*.md",
    "harness/lab/docs/*.md",
    "harness/lab/docs/**/*.md",
    "findings/*.md",
]
exclude_patterns = [".*", "build", "dist", "goldens", "models", "tests"]
external_toc_path = "docs/site/toc.yml"

# Links to headings are GitHub's.
myst_heading_anchors = 4
# What is shown under a command is no shell; and the headings of an issue are those of upstream's form.
suppress_warnings = ["misc.highlighting_failure", "myst.header"]

# What exports runs in environments that have torch; its docstrings are read without.
autodoc_mock_imports = ["executorch", "torch", "torchao"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True

# What a docstring has in single backticks is code.
default_role = "literal"

html_theme = "furo"
html_title = project
html_show_sphinx = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "static/favicon.svg"
html_search_scorer = str(Path(__file__).with_name("static") / "scorer.js")
# What is copied is the commands: neither prompts nor output.
copybutton_prompt_text = "$ "
# A block that names no language is what a run printed.
highlight_language = "none"


ROOT = Path(__file__).resolve().parents[2]


def write_drift(folder: Path) -> None:
    """Write a page for each pair of neighbouring releases, from the goldens; git ignores them."""
    folder.mkdir(exist_ok=True)
    for before, after in itertools.pairwise(releases.load().releases):
        lines = Drift.between(ROOT / "goldens", before, after).markdown()
        (folder / f"{before}-{after}.md").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


# Before Sphinx looks for pages.
write_drift(ROOT / "harness" / "lab" / "docs" / "drift")


def setup(app: Sphinx) -> None:
    """Add what follows to the build."""
    app.connect("source-read", add_operators)
    app.connect("build-finished", finish)
    app.add_js_file("operators.js")


def add_operators(_: Sphinx, page: str, source: list[str]) -> None:
    """Put the table of operators into its page: it is too large to be committed."""
    if f"{page}.md" == operators.PAGE:
        made = operators.html(table.committed(), calls.read())
        source[0] = source[0].replace(TABLE, f"``````{{raw}} html\n{made}\n``````\n")


#: Where the table of operators comes in its page.
TABLE = "<!-- the table -->\n"


def finish(app: Sphinx, failed: Exception | None) -> None:
    """Give the site its first page by the name that servers look for; refuse a page that would load from a network."""
    if failed:
        return
    out = Path(app.outdir)
    shutil.copyfile(out / f"{root_doc}.html", out / "index.html")
    (out / operators.PAGE).with_suffix(".json").write_bytes(table.as_json())
    for page in out.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for loads in ('src="http', 'src="//', 'rel="stylesheet" href="http', "@import url(http"):
            if loads in text:
                raise ExtensionError(f"{page.relative_to(out)} loads from a network: {loads}")

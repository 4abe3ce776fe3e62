"""Writes the text of an issue around a script, for ExecuTorch's bug form."""

from __future__ import annotations

import platform
from dataclasses import dataclass

from executorch_goldens.settings.releases import Release
from executorch_goldens.zoo.targets import find
from executorch_goldens_plugins.repro.defect import Defect
from executorch_goldens_plugins.repro.script import KINDS, templates


@dataclass(frozen=True)
class Script:
    """A script and the defect it shows.

    Attributes
    ----------
    text
        Its source.
    defect
        The defect of the cell's program, or of the smaller one.
    subject
        The origin of the program, for a reader.
    source
        The checkout whose sources replace the release's; empty for the release as published.
    """

    text: str
    defect: Defect
    subject: str
    source: str = ""


def issue(script: Script, target: str, release: Release, seen: str) -> str:
    """Return the issue as Markdown; its first line is the title.

    Parameters
    ----------
    seen
        The output of the script in this environment.
    """
    title, expected = KINDS[script.defect.kind]
    return (
        templates()
        .get_template("issue.md.jinja")
        .render(
            target=target,
            description=find(target).description,
            title=title,
            expected=expected,
            seen=seen.splitlines(),
            defect=script.defect,
            subject=script.subject,
            script=script.text,
            stack=release.stack(),
            source=script.source,
            python=platform.python_version(),
            platform=platform.platform(),
        )
    )

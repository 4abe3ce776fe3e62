"""The base of every error that a person can put right."""

from __future__ import annotations


class HarnessError(Exception):
    """Something the user can put right; the message names the thing and the way out.

    `executorch_goldens.cli` prints it as one line and exits with 2; the plugin makes it pytest's usage error.
    """

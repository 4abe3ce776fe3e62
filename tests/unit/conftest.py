"""The example extension, installed."""

from tests.support.extending import installed

__all__ = ["installed"]

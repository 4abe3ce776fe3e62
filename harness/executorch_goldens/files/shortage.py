"""Detects failures from lack of memory, disk or descriptors: they say nothing about the cell.

Nothing of torch is imported here: sweeps ask as well.
"""

from __future__ import annotations

import re

#: Messages of the C++ library, torch's allocator (c10/core/impl/alloc_cpu.cpp) and the system for a failed allocation.
MEMORY = re.compile(r"MemoryError|bad_alloc|allocate memory|out of memory", re.IGNORECASE)

#: Classes of other exceptions of the kind, and what their messages say.
CLASSES = re.compile(
    r"MemoryError|OSError|IOError|TimeoutError|BlockingIOError|InterruptedError|Connection\w*Error"
)
MESSAGES = re.compile(r"No space left|Too many open files|Disk quota exceeded", re.IGNORECASE)


def of_memory(error: BaseException) -> bool:
    """Return whether `error`, or an exception it was raised from or after, is a failed allocation.

    >>> of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"))
    True
    """
    link: BaseException | None = error
    # An exception raised while its own cause is handled comes round again.
    seen: set[int] = set()
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        if isinstance(link, MemoryError) or MEMORY.search(str(link)):
            return True
        link = link.__cause__ or link.__context__
    return False


def explains(type: str, message: str) -> bool:
    """Return whether a retry may succeed: an exception is from lack of memory, disk space or descriptors."""
    of_class = CLASSES.fullmatch(type.rpartition(".")[2])
    return bool(of_class or MEMORY.search(message) or MESSAGES.search(message))

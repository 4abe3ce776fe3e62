"""A zoo in which each case follows one factor of a variation, or two, or none:
``--models tests.support.zoo_factors``.
"""

from __future__ import annotations

import datetime
import getpass
import os
import platform
import time
import zlib
from pathlib import Path

import torch

from executorch_goldens import Data, Example, case
from tests.support.zoo import OPERATORS, SHAPE, Each, Named, PlusConstant

#: A folder of many entries.
LISTED = Path(__file__).parent


def constant(data: Data, value: int) -> Example:
    """Return a model with a constant that has at most 4096 values, each of them exact."""
    return Example(PlusConstant(float(value % 4096)), (data.tensor("x", *SHAPE),))


@case(guards="what follows the hash of a string")
def follows_hash(data: Data) -> Example:
    return constant(data, hash("constant"))


@case(guards="what follows the order of objects by address")
def follows_heap(data: Data) -> Example:
    return Example(
        Each(item.name for item in {Named(name) for name in OPERATORS}), (data.tensor("x", *SHAPE),)
    )


@case(guards="what follows the order in which a directory is listed")
def follows_listings(data: Data) -> Example:
    return constant(data, zlib.crc32(" ".join(path.name for path in LISTED.iterdir()).encode()))


@case(guards="what follows the name of the working directory")
def follows_directory(data: Data) -> Example:
    return constant(data, zlib.crc32(str(Path.cwd()).encode()))


@case(guards="what follows a counter of the process: how many graph modules torch has made code for")
def follows_history(data: Data) -> Example:
    return constant(data, torch.fx.graph_module._loader.next_id)


@case(guards="what takes a hash seed and shuffled listings together")
def follows_two(data: Data) -> Example:
    return constant(data, os.environ["PYTHONHASHSEED"] != "0" and hasattr(os.listdir, "__wrapped__"))


@case(guards="what follows the time zone")
def follows_zone(data: Data) -> Example:
    return constant(data, time.timezone)


@case(guards="what follows the date on the wall")
def follows_date(data: Data) -> Example:
    return constant(data, datetime.date.today().toordinal())


@case(guards="what follows the locale of the environment")
def follows_locale(data: Data) -> Example:
    return constant(data, zlib.crc32(os.environ.get("LC_ALL", "").encode()))


@case(guards="what follows the permissions of a new file")
def follows_umask(data: Data) -> Example:
    file = Path("new")
    file.touch()
    return constant(data, file.stat().st_mode)


@case(guards="what follows the home")
def follows_home(data: Data) -> Example:
    return constant(data, zlib.crc32(str(Path.home()).encode()))


@case(guards="what follows the name of the user")
def follows_user(data: Data) -> Example:
    return constant(data, zlib.crc32(getpass.getuser().encode()))


@case(guards="what follows the name of the machine")
def follows_host(data: Data) -> Example:
    return constant(data, zlib.crc32(platform.node().encode()))


@case(guards="what follows the name of the machine in the environment")
def follows_host_variable(data: Data) -> Example:
    return constant(data, zlib.crc32(os.environ.get("HOSTNAME", "").encode()))


@case(guards="what follows the number of processors")
def follows_processors(data: Data) -> Example:
    return constant(data, 8 * (os.cpu_count() or 0) + len(os.sched_getaffinity(0)))


@case(guards="what follows the time")
def follows_time(data: Data) -> Example:
    return constant(data, time.time_ns() // 1000)


@case(guards="what follows the number of the process")
def follows_process(data: Data) -> Example:
    return constant(data, os.getpid())


@case(guards="what follows nothing")
def follows_nothing(data: Data) -> Example:
    return constant(data, 1)

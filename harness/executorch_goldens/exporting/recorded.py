"""Inputs that a case brings itself: recorded ones from ``.npz`` files, and those that quantizers calibrate with.

An ``.npz`` file has one array for each tensor of the inputs, under its name
(`executorch_goldens.exporting.calls.CallSpec.names`): the parameter, then the way into it, ``x``, ``states.h`` or
``cache.keys``; or ``arr_0``, ``arr_1`` as ``numpy.savez`` numbers them. Several samples are in several files, or in one
with their names in front, ``day/x`` and ``night/x``. Files are read without unpickling.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from executorch_goldens.exporting.arrays import type_name
from executorch_goldens.exporting.calls import CallSpec, dimensions, tensors_in
from executorch_goldens.files import npz
from executorch_goldens.zoo.registry import SAMPLE_NAMES, Case, ZooError

#: Names of samples are parts of messages, and of lines of goldens.
NAME = re.compile(r"[\w.-]{1,64}(/[\w.-]{1,64})?")
#: The name that ``numpy.savez`` gives to unnamed arrays.
UNNAMED = re.compile(r"arr_(\d+)")
#: dtypes that numpy lacks, and what they are recorded in.
WIDER = {torch.bfloat16: torch.float32, torch.float8_e4m3fn: torch.float32, torch.float8_e5m2: torch.float32}

Tensors = tuple[torch.Tensor, ...]


def folder_of(case: Case) -> Path:
    """Return the folder that a case's files are relative to: that of the module, or the file, that it is in."""
    file = getattr(sys.modules.get(case.module), "__file__", None)
    return Path(file).parent if file else Path()


def _arrays(path: Path) -> dict[str, dict[str, np.ndarray[Any, Any]]]:
    """Return the arrays of an ``.npz`` file by sample, empty where they have none, and by name; raise ValueError."""
    try:
        arrays = npz.read(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot be read as an .npz file: {error}") from error
    of: dict[str, dict[str, np.ndarray[Any, Any]]] = {}
    for name, array in arrays.items():
        sample, _, key = name.rpartition("/")
        of.setdefault(sample, {})[key] = array
    return of


def _numbered(names: Collection[str]) -> list[str]:
    """Return names that ``numpy.savez`` gave, in their order; none where some are others."""
    are_numbered = all(map(UNNAMED.fullmatch, names))
    return sorted(names, key=lambda name: int(name.removeprefix("arr_"))) if are_numbered else []


def _tensor(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """Return an array as a tensor, whatever order its bytes are in."""
    whole = np.ascontiguousarray(array)
    return torch.from_numpy(whole.astype(whole.dtype.newbyteorder("="))).reshape(array.shape)


@dataclass(frozen=True)
class Inputs:
    """Reads and checks inputs of an example.

    Attributes
    ----------
    what
        The case, in words.
    folder
        The folder that files are relative to.
    keys, shapes
        Name, and declaration of dynamic dimensions, of each of the example's `tensors`.
    """

    what: str
    folder: Path
    tensors: Tensors
    call: CallSpec
    keys: Sequence[str]
    shapes: Sequence[Any]

    def recorded(self, named: Any) -> dict[str, Tensors]:
        """Return samples by name; raise `ZooError`.

        Parameters
        ----------
        named
            A file, or several.
        """
        samples: dict[str, Tensors] = {}
        for file in [named] if isinstance(named, str | Path) else named:
            for name, tensors in self._of_file(Path(file)):
                if name in (*SAMPLE_NAMES, *samples) or not NAME.fullmatch(name):
                    wrong = "is the name of another sample" if NAME.fullmatch(name) else "is no name for one"
                    raise ZooError(f"{self.what}: {file}: sample {name!r}: {wrong}")
                samples[name] = tensors
        return samples

    def calibration(self, given: Any) -> tuple[Tensors, ...]:
        """Return calibration inputs, at least one set; raise `ZooError`.

        Parameters
        ----------
        given
            A file; or inputs, each as those of the example, with keyword arguments a pair of both.
        """
        if isinstance(given, str | Path):
            return tuple(tensors for _, tensors in self._of_file(Path(given)))
        try:
            found = tuple(self._of_arguments(number, each) for number, each in enumerate(given))
        except TypeError as error:
            raise ZooError(f"{self.what}: calibration is no file and no inputs: {error}") from error
        if not found:
            raise ZooError(f"{self.what}: calibration has no inputs")
        return found

    def _of_arguments(self, number: int, given: Any) -> Tensors:
        what = f"calibration {number}"
        args, kwargs = given if self.call.has_keywords else (given, {})
        if not isinstance(args, tuple) or not isinstance(kwargs, Mapping):
            raise ZooError(f"{self.what}: {what} is no tuple of inputs: write [(input,), (input,)]")
        call = CallSpec.from_arguments(args, kwargs)
        if (call.spec, call.leaves) != (self.call.spec, self.call.leaves):
            raise ZooError(f"{self.what}: {what} is not nested as the inputs of the example are")
        flat = tensors_in((args, kwargs))
        return tuple(
            self._fitting(what, *each)
            for each in zip(self.keys, self.tensors, flat, self.shapes, strict=True)
        )

    def _of_file(self, file: Path) -> Iterator[tuple[str, Tensors]]:
        try:
            arrays = _arrays(self.folder / file)
        except ValueError as error:
            raise ZooError(f"{self.what}: {file} {error}") from error
        for sample, by_key in arrays.items():
            called = f"{file.stem}/{sample}" if sample else file.stem
            yield called, self._of_arrays(f"{file}, sample {called}", by_key)

    def _of_arrays(self, what: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Tensors:
        if numbered := _numbered(arrays):
            arrays = {
                self.keys[at] if at < len(self.keys) else name: arrays[name]
                for at, name in enumerate(numbered)
            }
        if set(arrays) != set(self.keys):
            raise ZooError(
                f"{self.what}: {what}: has the arrays {', '.join(sorted(arrays)) or 'none'}, and the inputs are "
                f"{', '.join(self.keys) or 'none'}"
            )
        found = []
        for key, example, shape in zip(self.keys, self.tensors, self.shapes, strict=True):
            found.append(self._fitting(what, key, example, _tensor(arrays[key]), shape))
        return self._sharing(what, found)

    def _fitting(
        self, what: str, key: str, example: torch.Tensor, given: torch.Tensor, shape: Any
    ) -> torch.Tensor:
        """Return an input in the dtype and the layout of the example's; raise `ZooError` where it differs."""
        if given.dtype is WIDER.get(example.dtype):
            given = given.to(example.dtype)
        changing = _changing(shape)
        fits = given.dim() == example.dim() and all(
            mine == its or dimension in changing
            for dimension, (mine, its) in enumerate(zip(given.shape, example.shape, strict=True))
        )
        if given.dtype is not example.dtype or not fits:
            raise ZooError(
                f"{self.what}: {what}: {key} is {type_name(given)}, and the example's is {type_name(example)}"
            )
        if example.dim() == 4 and not example.is_contiguous():
            return given.contiguous(memory_format=torch.channels_last)
        return given

    def _sharing(self, what: str, given: Sequence[torch.Tensor]) -> Tensors:
        """Return inputs with the aliasing of the example: those that are one tensor there are one here."""
        first: dict[int, int] = {}
        places = [first.setdefault(id(tensor), at) for at, tensor in enumerate(self.tensors)]
        for at, place in enumerate(places):
            if not torch.equal(given[at], given[place]):
                raise ZooError(
                    f"{self.what}: {what}: {self.keys[at]} and {self.keys[place]} are one tensor in the example, and "
                    "two here"
                )
        return tuple(given[place] for place in places)


def _changing(shape: Any) -> frozenset[int]:
    """Return the dimensions that may have another size than the example's."""
    return frozenset(at for at, dim in dimensions(shape) if dim is not None and not isinstance(dim, int))

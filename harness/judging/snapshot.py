"""The syrupy extension: one snapshot is one cell, stored as a directory of text files.

syrupy's own storage is one file per snapshot under a test file's directory. Measured with it (design, "Traps"): an
update of one version deletes the goldens of the others, a test that raises before its assertion loses its golden,
names are cut and mapped onto each other. Here a snapshot's location is computed from the cell alone, nothing is
ever discovered as unused by syrupy, and `harness.plugin` says what is stale.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syrupy.data import Snapshot, SnapshotCollection, SnapshotCollections
from syrupy.extensions.base import AbstractSyrupyExtension

from harness.artifact import Cell
from harness.judging import golden

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syrupy.location import PyTestLocation
    from syrupy.types import SerializedData, SnapshotIndex


class GoldenExtension(AbstractSyrupyExtension):
    """Stores the texts of a cell as ``<root>/<target>/<case>/``; `for_root` makes the class for one root."""

    root: Path
    write_immediately = True

    @classmethod
    def for_root(cls, root: Path) -> type[GoldenExtension]:
        """Return an extension class whose goldens stand under `root`."""
        return type(cls.__name__, (cls,), {"root": root})

    def serialize(self, data: golden.Texts, **_: Any) -> str:
        """Return the texts as one JSON object, the form in which syrupy passes them around."""
        return json.dumps(data, sort_keys=True)

    def matches(self, *, serialized_data: SerializedData, snapshot_data: SerializedData) -> bool:
        """Compare all but the informative fields of the manifest."""
        return golden.compared(json.loads(serialized_data)) == golden.compared(json.loads(snapshot_data))

    @classmethod
    def get_location(cls, *, test_location: PyTestLocation, index: SnapshotIndex) -> str:
        cell = test_location.item.callspec.params["cell"]  # type: ignore[attr-defined]
        assert isinstance(cell, Cell)
        return str(golden.directory(cls.root, cell))

    @classmethod
    def matches_test_location(cls, *, test_location: PyTestLocation, snapshot_location: str) -> bool:
        return cls.get_location(test_location=test_location, index=0) == snapshot_location

    def discover_snapshots(self, **_: Any) -> SnapshotCollections:
        """Return nothing: what is stale is not syrupy's to say or to delete."""
        return SnapshotCollections()

    def delete_snapshots(self, *, snapshot_location: str, snapshot_names: set[str]) -> None:
        raise AssertionError(f"syrupy asked to delete {snapshot_location}, which it cannot have discovered")

    def read_snapshot_collection(self, *, snapshot_location: str) -> SnapshotCollection:
        collection = SnapshotCollection(location=snapshot_location)
        collection.add(Snapshot(name=Path(snapshot_location).name))
        return collection

    def read_snapshot_data_from_location(
        self, *, snapshot_location: str, snapshot_name: str, session_id: str
    ) -> str | None:
        texts = golden.read(Path(snapshot_location))
        return None if texts is None else json.dumps(texts, sort_keys=True)

    @classmethod
    def write_snapshot_collection(
        cls, *, snapshot_collection: SnapshotCollection, name_order: dict[str, int] | None = None
    ) -> None:
        (snapshot,) = snapshot_collection
        assert isinstance(snapshot.data, str)
        golden.write(Path(snapshot_collection.location), json.loads(snapshot.data))

    def diff_lines(self, serialized_data: SerializedData, snapshot_data: SerializedData) -> Iterator[str]:
        """Yield nothing: `harness.judging.verdict` says what changed."""
        return iter(())

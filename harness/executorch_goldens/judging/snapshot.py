"""The syrupy extension: one snapshot is one cell, stored as a file.

syrupy's own storage is one file per snapshot under a test file's directory. Measured with it (design, "Traps"): an
update of one version deletes the goldens of the others, a test that raises before its assertion loses its golden,
names are cut and mapped onto each other. Here the run says where a snapshot is and what it holds, nothing is ever
discovered as unused by syrupy, and `executorch_goldens.goldens.roots` says what is stale.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from syrupy.data import Snapshot, SnapshotCollection, SnapshotCollections
from syrupy.extensions.base import AbstractSyrupyExtension

from executorch_goldens.goldens import equality, golden
from executorch_goldens.goldens.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syrupy.location import PyTestLocation
    from syrupy.types import SerializedData, SnapshotIndex


class GoldenExtension(AbstractSyrupyExtension):
    """Stores the golden of a cell as a file; `of` makes the class for one golden, which has been read.

    Attributes
    ----------
    failed
        Why the golden could not be written: syrupy takes whatever is raised meanwhile for a difference.
    """

    path: Path
    reviewed: Record | None
    failed: Exception | None = None
    write_immediately = True

    @classmethod
    def for_golden(cls, path: Path, reviewed: Record | None) -> type[GoldenExtension]:
        """Return an extension class for the golden in file `path`, which holds `reviewed`."""
        return type(cls.__name__, (cls,), {"path": path, "reviewed": reviewed})

    def serialize(self, data: Record, **_: Any) -> str:
        """Return the golden as a file that shares nothing, the form in which syrupy passes it around."""
        return data.text()

    def matches(self, *, serialized_data: SerializedData, snapshot_data: SerializedData) -> bool:
        return equality.equal(_parsed(serialized_data), _parsed(snapshot_data))

    @classmethod
    def get_location(cls, *, test_location: PyTestLocation, index: SnapshotIndex) -> str:
        return str(cls.path)

    @classmethod
    def matches_test_location(cls, *, test_location: PyTestLocation, snapshot_location: str) -> bool:
        return snapshot_location == str(cls.path)

    def discover_snapshots(self, **_: Any) -> SnapshotCollections:
        """Return nothing: syrupy neither reports nor deletes stale goldens."""
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
        return None if self.reviewed is None else self.reviewed.text()

    @classmethod
    def write_snapshot(
        cls,
        *,
        snapshot_location: str,
        snapshots: list[tuple[SerializedData, PyTestLocation, SnapshotIndex]],
        **_: Any,
    ) -> None:
        """Write the golden. syrupy's own would make the folder of its target before: not for certain (fsync)."""
        ((data, *_where),) = snapshots
        assert isinstance(data, str)
        try:
            golden.write(Path(snapshot_location), Record.parse(data))
        except Exception as error:
            cls.failed = error
            raise

    @classmethod
    def write_snapshot_collection(cls, **_: Any) -> None:
        raise AssertionError("syrupy writes a golden by another way than `write_snapshot`")

    def diff_lines(self, serialized_data: SerializedData, snapshot_data: SerializedData) -> Iterator[str]:
        """Yield nothing: `executorch_goldens.judging.verdict` reports the changes."""
        return iter(())


def _parsed(data: SerializedData) -> Record:
    assert isinstance(data, str)
    return Record.parse(data)

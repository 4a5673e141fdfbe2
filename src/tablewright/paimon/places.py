"""Where the data and index files of a table's state lie: below its directory, or at an address of their own.

A file's directory follows from its partition and bucket. Where writers may have spelled the partition in different ways
(see :mod:`.format.layout`), the table is listed once and files are found by their names, which are unique.

Tests: ``tests/unit/paimon/test_delete_plan.py``, ``tests/unit/paimon/test_hostile.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablewright.errors import CorruptTable, InvalidRequest, UnsupportedFeature
from tablewright.lazy import cached_property
from tablewright.paimon.format.binary_row import decode_partition
from tablewright.paimon.format.index_manifest import IndexFile
from tablewright.paimon.format.layout import bucket_directory, partition_directory
from tablewright.paimon.format.manifest import DataFile
from tablewright.paimon.format.schema import DATA_DIRECTORY
from tablewright.paimon.metadata import TableState
from tablewright.storage.address import join_uri
from tablewright.storage.base import Store
from tablewright.storage.open import open_store

__all__ = ["Place", "Places", "store_of"]

_METADATA = ("manifest/", "snapshot/", "schema/", "changelog/", "tag/", "branch/", "statistics/")


@dataclass(frozen=True, slots=True)
class Place:
    """A file: ``path`` below the table's directory, or below ``root`` if it lies elsewhere."""

    path: str
    root: str | None = None


def store_of(place: Place, store: Store) -> Store:
    """The store that ``place.path`` is read from: the table's own, or one for the place elsewhere."""
    if place.root is None:
        return store
    try:
        return open_store(place.root, store.location.storage_options)
    except InvalidRequest as error:
        raise UnsupportedFeature(
            f"The table has a file at the external path {place.root}/{place.path}: {error}"
        ) from error


class Places:
    """The places of the files of one state."""

    def __init__(self, state: TableState, store: Store) -> None:
        self._state, self._store = state, store
        self._fields = state.schema.partition_fields
        self._types = [field.type.to_arrow() for field in self._fields]
        self._directories: dict[bytes, str | None] = {}

    def of_data(self, file: DataFile) -> Place:
        """Where a data file lies."""
        if file.external_path is not None:
            return _elsewhere(file.external_path)
        return self._in_bucket(file, self._directory(file))

    def of_index(self, file: IndexFile) -> Place:
        """Where an index file lies."""
        directory = self._directory(file)  # it need not lie there, but has to belong to a partition
        if file.external_path is not None:
            return _elsewhere(file.external_path)
        if not self._state.schema.flag("index-file-in-data-file-dir"):
            return Place(f"index/{file.name}")
        return self._in_bucket(file, directory)

    def for_new_index(self, beside: DataFile) -> str:
        """The directory that index files for the bucket of a data file are to be written to."""
        if not self._state.schema.flag("index-file-in-data-file-dir"):
            return "index"
        data = self.of_data(beside)
        if data.root is not None:
            raise UnsupportedFeature(
                f"{self._state.location.uri} keeps index files beside its data (index-file-in-data-file-dir=true), and "
                f"the data at the external path {data.root}: this release does not write there."
            )
        return data.path.rpartition("/")[0]

    def _directory(self, file: DataFile | IndexFile) -> str | None:
        """The directory of a file's partition; ``None`` if writers disagree about its spelling."""
        if file.partition not in self._directories:
            values = decode_partition(file.partition, self._types, file.manifest)
            default = self._state.schema.options.get("partition.default-name")
            self._directories[file.partition] = partition_directory(self._fields, values, default)
        return self._directories[file.partition]

    def _in_bucket(self, file: DataFile | IndexFile, directory: str | None) -> Place:
        if directory is not None:
            return Place(f"{self._prefix}{bucket_directory(directory, file.bucket)}/{file.name}")
        if file.name not in self._listed:
            raise CorruptTable(join_uri(self._state.location.uri, file.name), ("no directory of the table holds it",))
        return Place(self._listed[file.name])

    @cached_property
    def _prefix(self) -> str:
        directory = self._state.schema.options.get(DATA_DIRECTORY, "").strip("/")
        return f"{directory}/" if directory else ""

    @cached_property
    def _listed(self) -> dict[str, str]:
        """Every file of the table that is no metadata, by its name."""
        paths = (info.path for info in self._store.list(self._prefix.rstrip("/")))
        return {path.rpartition("/")[2]: path for path in paths if not path.startswith(_METADATA)}


def _elsewhere(uri: str) -> Place:
    root, _, name = uri.rpartition("/")
    return Place(name, root)

"""``LanceFragment`` and ``write_fragments``: for people who look at, or distribute, single fragments.

Tests: ``tests/differential/test_access.py``, ``tests/differential/test_commit.py``,
``tests/unit/api/test_wrong_input.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from tablewright.api import fragment_columns
from tablewright.api.arrow_dataset import passes_for
from tablewright.api.inputs import UnknownInput
from tablewright.api.metadata import DataFile, DeletionFile, FragmentMetadata
from tablewright.api.operation import Transaction
from tablewright.api.pinned import Pinned, place_of, table_of
from tablewright.api.scanner import LanceScanner, positional, scan_pinned
from tablewright.api.schema import LanceSchema
from tablewright.api.translate import from_transaction
from tablewright.api.write import write_files
from tablewright.checks import check_flag
from tablewright.data.write import describe_data_file
from tablewright.errors import CorruptTable, InvalidRequest, UnsupportedFeature
from tablewright.format.fragment import Fragment
from tablewright.jobs.write import latest_or_none
from tablewright.operations import take
from tablewright.operations.delete import matching_offsets, run_fragment_delete
from tablewright.operations.validate import problems_of
from tablewright.operations.write import WriteSettings, finish_write
from tablewright.snapshot.refs import main_world
from tablewright.snapshot.snapshot import Snapshot
from tablewright.world import World

__all__ = ["FragmentSession", "LanceFragment", "write_fragments"]


class LanceFragment:
    """One horizontal slice of one version of a table.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset({"id": [1, 2, 3]}, "memory://fragment-example", max_rows_per_file=2)
    >>> [fragment.count_rows() for fragment in ds.get_fragments()]
    [2, 1]
    """

    __class__ = passes_for(pads.Fragment)

    def __init__(self, dataset: Pinned, fragment_id: int | None = None, *, fragment: Fragment | None = None) -> None:
        if not isinstance(dataset, Pinned):
            raise UnknownInput(f"A LanceFragment belongs to a LanceDataset, got {dataset!r}.")
        self._dataset = dataset
        self._fragment = self._found(fragment_id) if fragment is None else fragment

    def _found(self, fragment_id: int | None) -> Fragment:
        snapshot = self._snapshot
        if fragment_id is None or not snapshot.fragments.has(fragment_id):
            uri = main_world(snapshot.world, snapshot.branch).store.location.uri
            raise InvalidRequest(f"Fragment {fragment_id} not found in version {snapshot.version} of {uri}.")
        return snapshot.fragments.by_id(fragment_id)

    @property
    def _snapshot(self) -> Snapshot:
        return table_of(self._dataset).snapshot

    def __reduce__(self) -> tuple[Any, ...]:
        return LanceFragment, (self._dataset, self.fragment_id)

    def __repr__(self) -> str:
        return f"LanceFragment(id={self.fragment_id}, data_files={[file.path for file in self._fragment.files]})"

    @property
    def fragment_id(self) -> int:
        """Its id, which no other fragment of this table ever has."""
        return self._fragment.id

    @property
    def metadata(self) -> FragmentMetadata:
        """All that the manifest says about it."""
        return FragmentMetadata.of(self._fragment)

    @property
    def schema(self) -> pa.Schema:
        """The table's schema."""
        return self._snapshot.schema.to_arrow()

    @property
    def partition_expression(self) -> None:
        """Lance fragments have no partition values."""
        return None

    @property
    def physical_schema(self) -> pa.Schema:
        """Not offered: a fragment's files may hold each column in another form."""
        raise UnsupportedFeature("physical_schema is not offered: see data_files() for what each file holds.")

    @property
    def physical_rows(self) -> int:
        """Rows in the files, deleted ones included."""
        return self._fragment.physical_rows

    @property
    def num_deletions(self) -> int:
        """Deleted rows."""
        return self._fragment.physical_rows - self._fragment.live_rows

    def data_files(self) -> list[DataFile]:
        """Its data files."""
        return [DataFile.of(file) for file in self._fragment.files]

    def deletion_file(self) -> str | None:
        """The path of its deletion file below the table's root."""
        return (
            None if self._fragment.deletion is None else DeletionFile.of(self._fragment.deletion).path(self.fragment_id)
        )

    def scanner(self, *arguments: Any, **options: Any) -> LanceScanner:
        """A scan of this fragment only: ``columns``, ``filter`` and options as for the dataset's.

        pyarrow's fragments take a schema first, and DataFusion gives them the table's: it may stand there.
        """
        if arguments and isinstance(arguments[0], pa.Schema):
            if not arguments[0].equals(self.schema):
                raise InvalidRequest(
                    "A fragment is scanned in the schema of its table: choose columns with columns=[…]."
                )
            arguments = arguments[1:]
        return scan_pinned(self._dataset, {**positional(arguments, options, "scanner"), "fragments": [self]})

    def to_table(self, columns: Any = None, filter: str | pc.Expression | None = None, **options: Any) -> pa.Table:
        """Read into memory."""
        return self.scanner(columns, filter, **options).to_table()

    def to_batches(
        self, columns: Any = None, filter: str | pc.Expression | None = None, **options: Any
    ) -> Iterator[pa.RecordBatch]:
        """Read as a stream of batches."""
        return self.scanner(columns, filter, **options).to_batches()

    def to_pandas(self, columns: Any = None, filter: Any = None, **options: Any) -> Any:
        """Read into a pandas DataFrame."""
        return self.to_table(columns, filter, **options).to_pandas()

    def count_rows(self, filter: str | pc.Expression | None = None) -> int:
        """Live rows, or those that match."""
        return self._fragment.live_rows if filter is None else self.scanner(filter=filter).count_rows()

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """The first rows."""
        return self.to_table(limit=num_rows, **options)

    def take(self, indices: Sequence[int] | pa.Array, columns: Any = None) -> pa.Table:
        """Live rows by position in this fragment, in the order asked for."""
        return take.take_fragment_positions(self._snapshot, self._fragment, indices, columns)

    def open_session(self, columns: Any = None, with_row_address: bool = False) -> FragmentSession:
        """Repeated takes with one projection."""
        names = list(columns if columns is not None else self.schema.names)
        return FragmentSession(self, [*names, "_rowaddr"] if with_row_address else names)

    def delete(self, predicate: str | pc.Expression) -> FragmentMetadata | None:
        """Hide matching rows behind a new deletion file, without committing it; ``None`` if no row is left.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2, 3]}, "memory://fragment-delete-example")
        >>> ds.get_fragment(0).delete("id > 1").num_deletions
        2
        """
        if not isinstance(predicate, str | pc.Expression):
            raise UnknownInput(f"delete() takes SQL text or a pyarrow Expression, not {predicate!r}.")
        return self._deleted(matching_offsets(self._snapshot, self._fragment, predicate))

    def delete_rows(self, offsets: Sequence[int] | pa.Array) -> FragmentMetadata | None:
        """As :meth:`delete`, for rows by their physical offset."""
        rows = np.asarray(offsets)
        if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in "iu"):
            raise InvalidRequest(f"delete_rows() takes a list of offsets, which are whole numbers, not {offsets!r}.")
        return self._deleted(rows.astype(np.int64))

    def _deleted(self, offsets: npt.NDArray[np.int64]) -> FragmentMetadata | None:
        left = run_fragment_delete(self._snapshot, self._fragment, offsets)
        return None if left is None else FragmentMetadata.of(left)

    def merge_columns(
        self,
        value_func: Any,
        columns: Sequence[str] | None = None,
        batch_size: int | None = None,
        reader_schema: pa.Schema | None = None,
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """New columns for this fragment, written but not committed; arguments as for the dataset's ``add_columns``.

        Returns the fragment with the added file, and the schema: ``LanceOperation.Merge`` commits them for all.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2, 3]}, "memory://merge-columns-example", max_rows_per_file=2)
        >>> parts = [fragment.merge_columns({"double": "id * 2"}) for fragment in ds.get_fragments()]
        >>> merge = tw.LanceOperation.Merge([metadata for metadata, _ in parts], parts[0][1])
        >>> tw.LanceDataset.commit(ds, merge, read_version=ds.version).to_table().to_pydict()
        {'id': [1, 2, 3], 'double': [2, 4, 6]}
        """
        return fragment_columns.merge_columns(
            table_of(self._dataset), self._fragment, value_func, columns, batch_size, reader_schema
        )

    def merge(
        self, data_obj: Any, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """The columns of other data, looked up by a key, for this fragment; written but not committed.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2]}, "memory://fragment-merge-example")
        >>> metadata, schema = ds.get_fragment(0).merge({"id": [2], "text": ["two"]}, "id")
        >>> len(metadata.files), schema.to_pyarrow().names
        (2, ['id', 'text'])
        """
        return fragment_columns.merge(self._snapshot, self._fragment, data_obj, left_on, right_on, schema)

    def update_columns(
        self,
        data_obj: Any,
        left_on: str = "_rowid",
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        with_offsets: bool = False,
    ) -> tuple[Any, ...]:
        """New values of columns, from other data looked up by a key, for this fragment; written but not committed.

        Returns the fragment and the ids of the fields that changed, for ``LanceOperation.Update``;
        with ``with_offsets`` also which rows did, as the bytes of a Roaring bitmap.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2], "n": [0, 0]}, "memory://update-columns-example")
        >>> changed, fields = ds.get_fragment(0).update_columns({"id": [2], "n": [5]}, left_on="id")
        >>> update = tw.LanceOperation.Update(updated_fragments=[changed], fields_modified=fields)
        >>> update.update_mode = "rewrite_columns"
        >>> tw.LanceDataset.commit(ds, update, read_version=ds.version).to_table().to_pydict()
        {'id': [1, 2], 'n': [0, 5]}
        """
        check_flag(with_offsets, "with_offsets")
        made = fragment_columns.update_columns(self._snapshot, self._fragment, data_obj, left_on, right_on, schema)
        return made if with_offsets else made[:2]

    def validate(self) -> None:
        """Check it against its files; raises with all problems."""
        problems = problems_of(self._snapshot, self._fragment)
        if problems:
            raise CorruptTable(self._snapshot.entry.path, tuple(problems))

    @staticmethod
    def create(
        dataset_uri: str | Path | Pinned,
        data: Any,
        fragment_id: int | None = None,
        schema: pa.Schema | None = None,
        max_rows_per_group: int = 1024,
        progress: Any = None,
        mode: str = "append",
        *,
        data_storage_version: str | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> FragmentMetadata:
        """Write data as one fragment, without committing it. ``max_rows_per_group`` has no effect."""
        world, snapshot = _place(dataset_uri, storage_options)
        settings = WriteSettings(
            mode=mode, max_rows_per_file=2**32 - 1, max_bytes_per_file=2**63, data_storage_version=data_storage_version
        )
        _, fragments = write_files(data, world, snapshot, schema, settings, progress)
        if not fragments:
            raise InvalidRequest("There are no rows to make a fragment of.")
        metadata = FragmentMetadata.of(fragments[0])
        metadata.id = fragment_id or 0
        return metadata

    @staticmethod
    def create_from_file(filename: str, dataset: Pinned, fragment_id: int) -> FragmentMetadata:
        """Metadata for a data file that lies in the table's ``data/`` already; its columns are matched by name."""
        snapshot = table_of(dataset).snapshot
        fragment = describe_data_file(snapshot.world, snapshot.schema, filename, fragment_id)
        return FragmentMetadata.of(fragment)


class FragmentSession:
    """A fragment and a projection, for repeated takes."""

    def __init__(self, fragment: LanceFragment, columns: list[str]) -> None:
        self._fragment, self._columns = fragment, columns

    def take(self, indices: Sequence[int] | pa.Array) -> pa.Table:
        """Live rows by position."""
        return self._fragment.take(indices, self._columns)


def write_fragments(
    data: Any,
    dataset_uri: str | Path | Pinned,
    schema: pa.Schema | None = None,
    *,
    return_transaction: bool = False,
    mode: str = "append",
    max_rows_per_file: int = 1024 * 1024,
    max_rows_per_group: int | None = 1024,
    max_bytes_per_file: int = 90 * 1024**3,
    progress: Any = None,
    data_storage_version: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    enable_stable_row_ids: bool = False,
) -> list[FragmentMetadata] | Transaction:
    """Write data files that a later commit makes part of the table.

    The metadata travels as JSON or pickled; ids are given at commit. With ``return_transaction`` the whole uncommitted
    transaction comes back. ``max_rows_per_group`` has no effect.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset([{"id": 1}], "memory://write-fragments-example")
    >>> tw.fragment.write_fragments([{"id": 2}, {"id": 3}], ds)[0].physical_rows
    2
    """
    world, snapshot = _place(dataset_uri, storage_options)
    settings = WriteSettings(
        mode=mode,
        max_rows_per_file=max_rows_per_file,
        max_bytes_per_file=max_bytes_per_file,
        data_storage_version=data_storage_version,
        enable_stable_row_ids=enable_stable_row_ids,
    )
    plan, fragments = write_files(data, world, snapshot, schema, settings, progress)
    if return_transaction:
        return from_transaction(finish_write(plan, fragments, world.ids.uuid(), {}))
    return [FragmentMetadata.of(fragment) for fragment in fragments]


def _place(
    dataset_uri: str | Path | Pinned, storage_options: Mapping[str, str] | None
) -> tuple[World, Snapshot | None]:
    table, world = place_of(dataset_uri, storage_options)
    return world, latest_or_none(world) if table is None else table.snapshot

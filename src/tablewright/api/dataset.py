"""``LanceDataset``: the doorman. Every method takes a few lines and hands over to the room that knows.

A dataset is pinned to one version. Reading never changes it; writing through it (``insert``, ``restore``,
``update_config``…) moves it to the version it made; ``checkout_version`` returns another dataset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from tablewright.api import columns as column_verbs
from tablewright.api import commit as commits
from tablewright.api.changes import PreparedDelete, PreparedUpdate, retry_options
from tablewright.api.column_job import PreparedColumns
from tablewright.api.fragment import LanceFragment
from tablewright.api.locate import instant_ns, open_world
from tablewright.api.operation import Transaction
from tablewright.api.refs import Branches, Tags
from tablewright.api.scanner import LanceScanner, scan_options
from tablewright.api.schema import LanceSchema
from tablewright.api.sql import SqlQueryBuilder
from tablewright.api.translate import from_transaction
from tablewright.api.write import write_dataset
from tablewright.engine.choose import choose_engine
from tablewright.engine.local import LocalEngine
from tablewright.errors import InvalidRequest, StorageError, TableNotFound, UnsupportedFeature
from tablewright.format.transaction import MapUpdate, Restore, UpdateConfig
from tablewright.operations import take
from tablewright.operations.describe import describe_indices, describe_versions
from tablewright.operations.update import UpdateOptions
from tablewright.operations.validate import validate
from tablewright.snapshot.branch import Reference, create_branch, open_reference
from tablewright.snapshot.files import read_manifest, read_transaction
from tablewright.snapshot.locate import find_version, latest_version, list_versions
from tablewright.snapshot.refs import main_world
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import delete_tree, open_store
from tablewright.world import World

__all__ = ["LanceDataset", "dataset"]

_RETRY_TIMEOUT = timedelta(seconds=30)


def dataset(
    uri: str | Path,
    version: int | str | tuple[str | None, int | None] | None = None,
    asof: datetime | str | None = None,
    *,
    commit_lock: Any = None,
    default_scan_options: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, str] | None = None,
    engine: Any = None,
    spark: Any = None,
) -> LanceDataset:
    """Open a table: its latest version, the one with a number or tag, or the one that was current at a time.

    >>> import tablewright as tw
    >>> _ = tw.write_dataset([{"id": 1}], "memory://open-example")
    >>> tw.dataset("memory://open-example").count_rows()
    1
    """
    if version is not None and asof is not None:
        raise InvalidRequest("Give version or asof, not both.")
    scan_options(default_scan_options or {})
    choose_engine(0, engine, spark=spark)
    world = open_world(uri, storage_options)
    if isinstance(version, str | tuple):
        snapshot = open_reference(open_snapshot(world), version)
    else:
        snapshot = open_snapshot(world, version, asof_ns=None if asof is None else instant_ns(asof))
    return LanceDataset._of(snapshot, default_scan_options=default_scan_options, engine=engine, spark=spark)


class LanceDataset(pads.Dataset):  # type: ignore[misc]
    """One version of a Lance table."""

    _snapshot: Snapshot

    def __init__(
        self,
        uri: str | Path,
        version: int | str | None = None,
        *,
        default_scan_options: Mapping[str, Any] | None = None,
        storage_options: Mapping[str, str] | None = None,
        engine: Any = None,
        spark: Any = None,
    ) -> None:
        opened = dataset(uri, version, storage_options=storage_options)
        self._set(opened._snapshot, default_scan_options, engine, spark)

    def _set(self, snapshot: Snapshot, scan: Mapping[str, Any] | None, engine: Any, spark: Any) -> None:
        self._snapshot, self._default_scan_options, self._engine, self._spark = (
            snapshot,
            dict(scan or {}),
            engine,
            spark,
        )

    @classmethod
    def _of(
        cls,
        snapshot: Snapshot,
        *,
        default_scan_options: Mapping[str, Any] | None = None,
        engine: Any = None,
        spark: Any = None,
    ) -> LanceDataset:
        self = cls.__new__(cls)
        self._set(snapshot, default_scan_options, engine, spark)
        return self

    def _at(self, snapshot: Snapshot) -> LanceDataset:
        """The same dataset at another version."""
        return LanceDataset._of(
            snapshot, default_scan_options=self._default_scan_options, engine=self._engine, spark=self._spark
        )

    def __reduce__(self) -> tuple[Any, ...]:
        location = self._snapshot.location
        return _reopen, (location.uri, dict(location.storage_options), self.version, self._default_scan_options)

    def __copy__(self) -> LanceDataset:
        return self._at(self._snapshot)

    def __len__(self) -> int:
        return self.count_rows()

    def __repr__(self) -> str:
        return f"<LanceDataset {self.uri} version {self.version}: {self._snapshot.fragments.total_live_rows} rows>"

    # ---- what it is

    @property
    def _world(self) -> World:
        return self._snapshot.world

    @property
    def uri(self) -> str:
        """The address of the table."""
        return main_world(self._world, self._snapshot.branch).store.location.uri

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema."""
        return self._snapshot.schema.to_arrow()

    @property
    def lance_schema(self) -> LanceSchema:
        """The schema with field ids."""
        return LanceSchema(self._snapshot.schema)

    @property
    def partition_expression(self) -> None:
        """Lance tables have no partitions."""
        return None

    @property
    def version(self) -> int:
        """The number of this version."""
        return self._snapshot.version

    @property
    def latest_version(self) -> int:
        """The number of the newest version there is now."""
        entry = latest_version(self._world.store)
        if entry is None:
            raise TableNotFound(self.uri)
        return entry.version

    @property
    def data_storage_version(self) -> str:
        """The version of the data files, e.g. ``2.2``."""
        return self._snapshot.manifest.data_storage_version

    @property
    def has_index(self) -> bool:
        """Whether any index exists."""
        return bool(self._snapshot.manifest.indices)

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether row ids survive updates and compaction."""
        return self._snapshot.manifest.stable_row_ids

    @property
    def max_field_id(self) -> int:
        """The highest field id in use."""
        return self._snapshot.schema.max_field_id

    @property
    def tags(self) -> Tags:
        """Names for versions: ``create``, ``update``, ``delete``, ``list``, ``get_version``."""
        return Tags(self)

    @property
    def branches(self) -> Branches:
        """Lines of versions beside the main one: ``list``, ``delete``."""
        return Branches(self)

    def versions(self) -> list[dict[str, Any]]:
        """All versions, oldest first: ``version``, ``timestamp`` (local time) and ``metadata`` (totals)."""
        return describe_versions(self._world.store, LocalEngine().map)

    def get_transactions(self, recent_transactions: int = 10) -> list[Transaction | None]:
        """The newest transactions, newest first."""
        entries = [entry for entry in list_versions(self._world.store) if entry.version <= self.version]
        newest_first = entries[::-1][: max(0, recent_transactions)]
        return [self.read_transaction(entry.version) for entry in newest_first]

    def read_transaction(self, version: int) -> Transaction | None:
        """The transaction that made a version, ``None`` if it left none."""
        entry = find_version(self._world.store, version)
        if entry is None:
            return None
        found = read_transaction(self._world.store, read_manifest(self._world.store, entry))
        return None if found is None else from_transaction(found)

    def list_indices(self) -> list[dict[str, Any]]:
        """Every index segment: ``name``, ``type``, ``uuid``, ``fields``, ``version``, ``fragment_ids``."""
        return describe_indices(self._snapshot)

    # ---- versions

    def checkout_version(self, version: Reference) -> LanceDataset:
        """Another version of this table: a number, a tag, or ``(branch, number)``.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset([{"id": 1}], "memory://checkout-example")
        >>> ds.insert([{"id": 2}])
        >>> ds.checkout_version(1).count_rows(), ds.count_rows()
        (1, 2)
        """
        return self._at(open_reference(self._snapshot, version))

    def checkout_latest(self) -> None:
        """Move this dataset to the newest version."""
        self._snapshot = open_snapshot(self._world)

    def restore(self) -> None:
        """Make this version the newest again, as a new version."""
        latest = open_snapshot(self._world)
        self._snapshot = commits.commit_to(self._at(latest), Restore(version=self.version))

    def create_branch(
        self, branch: str, reference: Reference | None = None, storage_options: Mapping[str, str] | None = None
    ) -> LanceDataset:
        """Start a branch from a version, a tag or this version; no data is copied."""
        source = self._snapshot if reference is None else open_reference(self._snapshot, reference)
        return self._at(create_branch(source, branch))

    # ---- reading

    def scanner(
        self,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        filter: str | pc.Expression | None = None,
        limit: int | None = None,
        offset: int | None = None,
        **options: Any,
    ) -> LanceScanner:
        """A scan to be run: ``to_table``, ``to_batches``, ``to_reader``, ``count_rows``, ``explain_plan``.

        Further options: ``order_by``, ``batch_size``, ``with_row_id``, ``with_row_address``, ``fragments``,
        ``include_deleted_rows``, ``scan_in_order``, ``strict_batch_size``, ``late_materialization``. Hints that only
        matter to pylance's own reader (``batch_readahead``, ``use_stats``…) are accepted and ignored.
        """
        given = {"columns": columns, "filter": filter, "limit": limit, "offset": offset, **options}
        merged = {**self._default_scan_options, **{name: value for name, value in given.items() if value is not None}}
        return LanceScanner(self._snapshot, scan_options(merged), self._engine, self._spark)

    def to_table(
        self,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        filter: str | pc.Expression | None = None,
        limit: int | None = None,
        offset: int | None = None,
        **options: Any,
    ) -> pa.Table:
        """Read into memory.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2, 3]}, "memory://read-example")
        >>> ds.to_table(columns={"double": "id * 2"}, filter="id > 1").to_pydict()
        {'double': [4, 6]}
        """
        return self.scanner(columns, filter, limit, offset, **options).to_table()

    def to_batches(
        self,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        filter: str | pc.Expression | None = None,
        limit: int | None = None,
        offset: int | None = None,
        **options: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Read as a stream of batches."""
        return self.scanner(columns, filter, limit, offset, **options).to_batches()

    def to_pandas(self, columns: Any = None, filter: Any = None, **options: Any) -> Any:
        """Read into a pandas DataFrame."""
        return self.to_table(columns, filter, **options).to_pandas()

    def to_spark(
        self,
        spark: Any = None,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        filter: str | None = None,
        **options: Any,
    ) -> Any:
        """A Spark DataFrame of this version, whose tasks read the projection only.

        ``filter`` is SQL text: it runs inside the reading tasks, so that what does not match never reaches Spark.
        """
        return self.scanner(columns, filter, **options).to_spark(spark)

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """The first rows."""
        return self.to_table(limit=num_rows, **options)

    def slice(self, start: int, end: int, columns: Any = None) -> pa.Table:
        """Rows ``start`` (inclusive) to ``end`` (exclusive) by position."""
        if start < 0 or end < start:
            raise InvalidRequest(f"start must be non-negative and end >= start, got {start} and {end}.")
        return self.to_table(columns, offset=start, limit=end - start)

    def count_rows(self, filter: str | pc.Expression | None = None, **options: Any) -> int:
        """How many rows there are, or match."""
        if filter is None and not options:
            return self._snapshot.fragments.total_live_rows
        return LanceScanner(
            self._snapshot, scan_options({"filter": filter, **options}), self._engine, self._spark
        ).count_rows()

    def take(self, indices: Sequence[int] | pa.Array, columns: Any = None) -> pa.Table:
        """Rows by position, in the order asked for.

        >>> import tablewright as tw
        >>> tw.write_dataset({"id": [10, 20, 30]}, "memory://take-example").take([2, 0]).to_pydict()
        {'id': [30, 10]}
        """
        return take.take_positions(self._snapshot, indices, columns)

    def take_rows(self, row_ids: Sequence[int] | pa.Array, columns: Any = None) -> pa.Table:
        """Rows by row id (``_rowid``), in the order asked for."""
        return take.take_row_ids(self._snapshot, row_ids, columns)

    def _take_rows(self, row_ids: Sequence[int] | pa.Array, columns: Any = None, **_: Any) -> pa.Table:
        return self.take_rows(row_ids, columns)

    def sample(self, num_rows: int, columns: Any = None, randomize_order: bool = True, **_: Any) -> pa.Table:
        """Random rows, none twice."""
        return take.sample(self._snapshot, num_rows, columns, randomize_order=randomize_order)

    def sql(self, sql: str) -> SqlQueryBuilder:
        """A SQL query over this version, which it calls ``dataset``."""
        return SqlQueryBuilder(self, sql)

    def get_fragments(self, filter: pc.Expression | None = None) -> list[LanceFragment]:
        """All fragments, in order."""
        if filter is not None:
            raise InvalidRequest("get_fragments() has no filter: Lance fragments carry no partition values.")
        return [LanceFragment(self, fragment=fragment) for fragment in self._snapshot.fragments]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """One fragment, ``None`` if this version does not have it."""
        if not self._snapshot.fragments.has(fragment_id):
            return None
        return LanceFragment(self, fragment_id)

    def validate(self) -> None:
        """Check this version against its files; raises :class:`~tablewright.errors.CorruptTable` with all problems."""
        validate(self._snapshot, LocalEngine().map)

    # ---- what pyarrow's datasets can do, through Arrow tables (their C++ side is not ours)

    def filter(self, expression: pc.Expression | str) -> pads.Dataset:
        """The matching rows as a dataset in memory; ``scanner(filter=…)`` streams them."""
        return pads.dataset(self.to_table(filter=expression))

    def sort_by(self, sorting: Any, **options: Any) -> pads.Dataset:
        """The sorted rows as a dataset in memory."""
        return pads.dataset(self.to_table().sort_by(sorting, **options))

    def join(self, right_dataset: Any, keys: Any, *args: Any, **options: Any) -> pads.Dataset:
        """A join in memory, with the arguments of ``pyarrow.Table.join``."""
        return pads.dataset(self.to_table().join(_in_memory(right_dataset), keys, *args, **options))

    def join_asof(self, right_dataset: Any, *args: Any, **options: Any) -> pads.Dataset:
        """A join by nearest key in memory, with the arguments of ``pyarrow.Table.join_asof``."""
        return pads.dataset(self.to_table().join_asof(_in_memory(right_dataset), *args, **options))

    def replace_schema(self, schema: pa.Schema) -> None:
        """Not offered: a version has one schema."""
        raise UnsupportedFeature("replace_schema() is not offered: select or cast columns with scanner(columns={…}).")

    # ---- writing

    def insert(self, data: Any, *, schema: pa.Schema | None = None, mode: str = "append", **options: Any) -> None:
        """Add rows; this dataset moves to the new version."""
        self._snapshot = write_dataset(data, self, schema=schema, mode=mode, **options)._snapshot

    def delete(
        self,
        predicate: str | pc.Expression,
        *,
        conflict_retries: int = 10,
        retry_timeout: timedelta = _RETRY_TIMEOUT,
    ) -> dict[str, int]:
        """Delete the rows that match; this dataset moves to the new version.

        Other writers don't matter, unless one of them moved or changed a row that matches: then it is looked for again
        on the newest version, ``conflict_retries`` times at most and not longer than ``retry_timeout``.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2, 3]}, "memory://delete-example")
        >>> ds.delete("id > 1"), ds.count_rows()
        ({'num_deleted_rows': 2}, 1)
        """
        return self.prepare_delete(predicate, conflict_retries=conflict_retries, retry_timeout=retry_timeout).execute()

    def prepare_delete(
        self,
        predicate: str | pc.Expression,
        *,
        conflict_retries: int = 10,
        retry_timeout: timedelta = _RETRY_TIMEOUT,
    ) -> PreparedDelete:
        """A delete to be run: ``execute``, ``execute_uncommitted``, ``explain_plan``, ``analyze_plan``.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2, 3]}, "memory://prepare-delete-example")
        >>> print(ds.prepare_delete("id > 1").explain_plan().splitlines()[0])
        Delete: write deletion files, predicate=id > 1
        """
        return PreparedDelete(self, predicate, retry_options(conflict_retries, retry_timeout))

    def update(
        self,
        updates: Mapping[str, str],
        where: str | pc.Expression | None = None,
        conflict_retries: int = 10,
        retry_timeout: timedelta = _RETRY_TIMEOUT,
        data_storage_version: str | None = None,
        *,
        write_mode: str = "auto",
    ) -> dict[str, int]:
        """Give columns new values, by SQL expressions, in the rows that match (without ``where``: in all).

        A fragment is written in the way that costs fewer bytes: its matching rows move to a new fragment
        (``"rewrite_rows"``), or the columns that change are written anew in place (``"rewrite_columns"``);
        ``write_mode`` insists on one of them. This dataset moves to the new version.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2, 3], "n": [0, 0, 0]}, "memory://update-example")
        >>> ds.update({"n": "id * 10"}, where="id > 1")
        {'num_rows_updated': 2}
        >>> ds.to_table(order_by=["id"]).to_pydict()
        {'id': [1, 2, 3], 'n': [0, 20, 30]}
        """
        return self.prepare_update(
            updates,
            where,
            conflict_retries=conflict_retries,
            retry_timeout=retry_timeout,
            data_storage_version=data_storage_version,
            write_mode=write_mode,
        ).execute()

    def prepare_update(
        self,
        updates: Mapping[str, str],
        where: str | pc.Expression | None = None,
        *,
        conflict_retries: int = 10,
        retry_timeout: timedelta = _RETRY_TIMEOUT,
        data_storage_version: str | None = None,
        write_mode: str = "auto",
    ) -> PreparedUpdate:
        """An update to be run: ``execute``, ``execute_uncommitted``, ``explain_plan``, ``analyze_plan``.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2, 3], "n": [0, 0, 0]}, "memory://prepare-update-example")
        >>> print(ds.prepare_update({"n": "id * 10"}, where="id > 1").explain_plan().splitlines()[-2].strip())
        fragment 0: matched_rows=2, bytes_rows=32, bytes_columns=24 -> rewrite_columns
        """
        options = UpdateOptions(write_mode=write_mode, data_storage_version=data_storage_version)
        return PreparedUpdate(self, updates, where, retry_options(conflict_retries, retry_timeout), options)

    def truncate_table(self) -> None:
        """Delete all rows; schema, settings and earlier versions stay.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2, 3]}, "memory://truncate-example")
        >>> ds.truncate_table()
        >>> ds.count_rows()
        0
        """
        self.delete("true")

    # ---- columns

    def add_columns(
        self,
        transforms: Any,
        read_columns: Sequence[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
    ) -> None:
        """Add columns; existing data stay as they are, each fragment gets one more data file.

        ``transforms`` is a dict of SQL expressions; a function over record batches (see :func:`batch_udf`), which gets
        ``read_columns`` in batches of ``batch_size``; a reader (or anything that becomes one) with one row per row of
        the table, in its order; or a field or schema of columns that are null everywhere. Other writers don't matter:
        what is computed stays computed.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2]}, "memory://add-columns-example")
        >>> ds.add_columns({"double": "id * 2"})
        >>> ds.to_table().to_pydict()
        {'id': [1, 2], 'double': [2, 4]}
        """
        self.prepare_add_columns(transforms, read_columns, reader_schema, batch_size).execute()

    def prepare_add_columns(
        self,
        transforms: Any,
        read_columns: Sequence[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
    ) -> PreparedColumns:
        """New columns to be made: ``execute``, ``execute_uncommitted``, ``explain_plan``, ``analyze_plan``.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2]}, "memory://prepare-add-columns-example")
        >>> print(ds.prepare_add_columns({"double": "id * 2"}).explain_plan().splitlines()[0])
        AddColumns: columns=[double], uri=memory://prepare-add-columns-example, version=1
        """
        return column_verbs.add_columns(self, transforms, read_columns, reader_schema, batch_size)

    def alter_columns(self, *alterations: Mapping[str, Any]) -> None:
        """Change columns. Each alteration is a dict: ``path``, and ``name``, ``nullable`` or ``data_type``.

        Names and nullability are metadata only. A new type within the same family (integers, floats, texts, lists of
        these…) writes the column anew; a value that it can't hold is an error. All happen in one version.

        >>> import pyarrow as pa
        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2]}, "memory://alter-columns-example")
        >>> ds.alter_columns({"path": "id", "name": "key", "data_type": pa.int32()})
        >>> ds.schema.field("key").type
        DataType(int32)
        """
        column_verbs.alter_columns(self, alterations)

    def drop_columns(self, columns: Sequence[str]) -> None:
        """Forget columns, or members of structs by their path. Data files are not touched.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2], "text": ["a", "b"]}, "memory://drop-columns-example")
        >>> ds.drop_columns(["text"])
        >>> ds.schema.names
        ['id']
        """
        column_verbs.drop_columns(self, columns)

    def merge(self, data_obj: Any, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None) -> None:
        """Add the columns of other data, which is looked up by a key: a left join.

        Rows without a partner get null. Of several partners the last counts. The key has one type on both sides;
        ``_rowid`` and ``_rowaddr`` are keys too.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2]}, "memory://merge-example")
        >>> ds.merge({"id": [2], "text": ["two"]}, "id")
        >>> ds.to_table().to_pydict()
        {'id': [1, 2], 'text': [None, 'two']}
        """
        column_verbs.merge(self, data_obj, left_on, right_on, schema)

    @property
    def metadata(self) -> dict[str, str]:
        """Table metadata."""
        return dict(self._snapshot.manifest.table_metadata)

    @property
    def schema_metadata(self) -> dict[str, str]:
        """Schema metadata as text."""
        return {key: value.decode() for key, value in self._snapshot.schema.metadata.items()}

    def config(self) -> dict[str, str]:
        """Table config."""
        return dict(self._snapshot.manifest.config)

    def update_config(self, values: Mapping[str, str | None], replace: bool = False) -> dict[str, str]:
        """Set config keys (``None`` removes one) and return the new state."""
        self._snapshot = commits.update_maps(self, values, "config", replacing=replace)
        return self.config()

    def delete_config_keys(self, keys: Iterable[str]) -> None:
        """Remove config keys."""
        if isinstance(keys, str):
            raise InvalidRequest(f"delete_config_keys() takes a list of keys, not the text {keys!r}.")
        self.update_config(dict.fromkeys(keys))

    def update_metadata(self, values: Mapping[str, str | None], replace: bool = False) -> dict[str, str]:
        """Set table metadata (``None`` removes a key) and return the new state."""
        self._snapshot = commits.update_maps(self, values, "table_metadata", replacing=replace)
        return self.metadata

    def update_schema_metadata(self, values: Mapping[str, str | None], replace: bool = False) -> dict[str, str]:
        """Set schema metadata (``None`` removes a key) and return the new state."""
        self._snapshot = commits.update_maps(self, values, "schema_metadata", replacing=replace)
        return self.schema_metadata

    def update_field_metadata(self, values: Mapping[str, Mapping[str, str | None]], replace: bool = False) -> None:
        """Set metadata of fields, by column path."""
        schema = self._snapshot.schema
        for entries in commits.checked_texts(values, nested=True).values():
            commits.checked_texts(entries)
        updates = {schema.resolve(path).id: MapUpdate(entries=dict(v), replace=replace) for path, v in values.items()}
        self._snapshot = commits.commit_to(self, UpdateConfig(field_metadata_updates=updates))

    commit = staticmethod(commits.commit_operation)
    commit_batch = staticmethod(commits.commit_batch)

    @staticmethod
    def drop(
        base_uri: str | Path, storage_options: Mapping[str, str] | None = None, ignore_not_found: bool = False
    ) -> None:
        """Delete a table with all its versions and files."""
        store = open_world(base_uri, storage_options).store
        if latest_version(store) is not None:
            delete_tree(store, "")
        elif next(iter(store.list("")), None) is not None:
            raise InvalidRequest(
                f"Refusing to drop {store.location.uri}: no readable Lance manifest was found under '_versions'."
            )
        elif not ignore_not_found:
            raise StorageError(f"Not found: {store.location.uri}. There is no table to drop.")


def _in_memory(data: Any) -> pa.Table:
    return data.to_table() if hasattr(data, "to_table") else data


def _reopen(uri: str, options: dict[str, str], version: int, scan: dict[str, Any]) -> LanceDataset:
    world = World(store=open_store(uri, options))
    return LanceDataset._of(open_snapshot(world, version), default_scan_options=scan)

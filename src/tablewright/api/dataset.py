"""``LanceDataset``: the doorman. Every method takes a few lines and hands over to the room that knows.

A dataset is pinned to one version. Reading never changes it; writing through it (``insert``, ``restore``,
``update_config``…) moves it to the version it made; ``checkout_version`` returns another dataset. Changes of rows and
columns have a page of their own (:mod:`.change_verbs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablewright.api import commit as commits
from tablewright.api.arrow_dataset import ArrowDataset
from tablewright.api.blob_modes import blob_handling_of
from tablewright.api.change_verbs import ChangeVerbs
from tablewright.api.fragment import LanceFragment
from tablewright.api.identity_verbs import IdentityVerbs
from tablewright.api.ignored import tell_unused_lock
from tablewright.api.locate import instant_ns, open_world
from tablewright.api.not_offered import PylanceNames
from tablewright.api.operation import Transaction
from tablewright.api.refs import Branches, Tags
from tablewright.api.scanner import LanceScanner, positional, scan_options
from tablewright.api.schema import LanceSchema
from tablewright.api.sql import SqlQueryBuilder
from tablewright.api.translate import from_transaction
from tablewright.api.write import write_dataset
from tablewright.checks import listed, whole_number
from tablewright.engine.choose import choose_engine
from tablewright.engine.detect import check_session, is_spark_session
from tablewright.engine.local import LocalEngine
from tablewright.errors import InvalidRequest, StorageError, TableNotFound, VersionNotFound
from tablewright.format.naming import VERSIONS_DIR
from tablewright.format.transaction import MapUpdate, Restore, UpdateConfig
from tablewright.operations import take
from tablewright.operations.describe import describe_indices, describe_versions
from tablewright.operations.validate import validate
from tablewright.snapshot.branch import Reference, create_branch, open_reference
from tablewright.snapshot.files import read_manifest, read_transaction
from tablewright.snapshot.locate import find_version, latest_version, list_versions
from tablewright.snapshot.refs import main_world
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.snapshot.standing import open_newest
from tablewright.storage import delete_tree, open_store
from tablewright.world import World

__all__ = ["LanceDataset", "dataset"]

_DROP_ROUNDS_MAX = 5


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
    scan_options({} if default_scan_options is None else default_scan_options)
    check_session(spark)
    choose_engine(0, engine, spark=spark)
    tell_unused_lock(commit_lock)
    world = open_world(uri, storage_options)
    if isinstance(version, str | tuple):
        snapshot = _referenced(open_snapshot(world), version)
    else:
        snapshot = open_snapshot(world, version, asof_ns=None if asof is None else instant_ns(asof))
    return LanceDataset._of(snapshot, default_scan_options=default_scan_options, engine=engine, spark=spark)


class LanceDataset(ChangeVerbs, IdentityVerbs, ArrowDataset, PylanceNames):
    """One version of a Lance table."""

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
        self._default_scan_options, self._engine, self._spark = dict(scan or {}), engine, spark
        self._snapshot = snapshot

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
        newest_first = entries[::-1][: whole_number(recent_transactions, "recent_transactions")]
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
        return self._at(_referenced(self._snapshot, version))

    def checkout_latest(self) -> None:
        """Move this dataset to the newest version."""
        self._snapshot = open_snapshot(self._world).after(self._snapshot)

    def restore(self) -> None:
        """Make this version the newest again, as a new version."""
        latest = open_newest(self._snapshot)  # its number may belong to a version of another table by now
        self._snapshot = commits.commit_to(self._at(latest), Restore(version=self.version))

    def create_branch(
        self, branch: str, reference: Reference | None = None, storage_options: Mapping[str, str] | None = None
    ) -> LanceDataset:
        """Start a branch from a version, a tag or this version; no data is copied."""
        if storage_options and dict(storage_options) != dict(self._snapshot.location.storage_options):
            raise InvalidRequest("create_branch() works with the storage_options that the dataset was opened with.")
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
        ``include_deleted_rows``, ``scan_in_order``, ``strict_batch_size``, ``late_materialization``, ``blob_handling``
        (``"all_binary"`` reads the bytes of blob columns, else they are descriptions). Hints that only matter to
        pylance's own reader (``batch_readahead``, ``use_stats``…) are accepted and ignored.
        """
        given = {"columns": columns, "filter": filter, "limit": limit, "offset": offset, **options}
        return self._arrow_scanner(given) or self._scan(given)

    def _scan(self, given: Mapping[str, Any]) -> LanceScanner:
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
        given = {"columns": columns, "filter": filter, "limit": limit, "offset": offset, **options}
        return self._scan(given).to_table()

    def to_batches(
        self,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        filter: str | pc.Expression | None = None,
        limit: int | None = None,
        offset: int | None = None,
        **options: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Read as a stream of batches."""
        given = {"columns": columns, "filter": filter, "limit": limit, "offset": offset, **options}
        return self._scan(given).to_batches()

    def to_pandas(
        self, columns: Any = None, filter: Any = None, *, blob_mode: str | None = None, **options: Any
    ) -> Any:
        """Read into a pandas DataFrame. ``blob_mode`` ``"bytes"`` reads blob columns, else they are descriptions."""
        return self.to_table(columns, filter, **options, **blob_handling_of(blob_mode)).to_pandas()

    def to_spark(self, *arguments: Any, spark: Any = None, **options: Any) -> Any:
        """A Spark DataFrame of this version, whose tasks read the projection only.

        The arguments are ``columns`` and ``filter``, as for :meth:`to_table`; a Spark session may stand before them.
        ``filter`` is SQL text: it runs inside the reading tasks, so that what does not match never reaches Spark.
        """
        no_session = arguments[:1] == (None,) and len(arguments) > 1 and not isinstance(arguments[1], str)
        if no_session or (arguments and is_spark_session(arguments[0])):
            spark, arguments = arguments[0] or spark, arguments[1:]
        return self._scan(positional(arguments, options, "to_spark")).to_spark(spark)

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """The first rows."""
        return self.to_table(limit=num_rows, **options)

    def slice(self, start: int, end: int, columns: Any = None) -> pa.Table:
        """Rows ``start`` (inclusive) to ``end`` (exclusive) by position."""
        start = whole_number(start, "start", minimum=None)
        end = whole_number(end, "end", minimum=None)
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

    def _take_rows(self, row_ids: Sequence[int] | pa.Array, columns: Any = None) -> pa.Table:
        return self.take_rows(row_ids, columns)

    def sample(self, num_rows: int, columns: Any = None, randomize_order: bool = True) -> pa.Table:
        """Random rows, none twice."""
        return take.sample(self._snapshot, num_rows, columns, randomize_order=randomize_order)

    def sql(self, sql: str) -> SqlQueryBuilder:
        """A SQL query over this version, which it calls ``dataset``."""
        return SqlQueryBuilder(self, sql)

    def get_fragments(self, filter: pc.Expression | None = None) -> list[LanceFragment]:
        """All fragments, in order. A filter leaves none out: fragments have no partition values to compare it with."""
        if not isinstance(filter, pc.Expression | None):
            raise InvalidRequest(f"get_fragments() takes a pyarrow Expression, not {filter!r}.")
        return [LanceFragment(self, fragment=fragment) for fragment in self._snapshot.fragments]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """One fragment, ``None`` if this version does not have it."""
        if not self._snapshot.fragments.has(fragment_id):
            return None
        return LanceFragment(self, fragment_id)

    def validate(self) -> None:
        """Check this version against its files; raises :class:`~tablewright.errors.CorruptTable` with all problems."""
        validate(self._snapshot, LocalEngine().map)

    # ---- writing

    def insert(self, data: Any, *, schema: pa.Schema | None = None, mode: str = "append", **options: Any) -> None:
        """Add rows; this dataset moves to the new version."""
        self._snapshot = write_dataset(data, self, schema=schema, mode=mode, **options)._snapshot

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
        self.update_config(dict.fromkeys(listed(keys, "keys")))

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
            for _ in range(_DROP_ROUNDS_MAX):  # a writer that is under way may still add files
                if not delete_tree(store, "", last=VERSIONS_DIR):
                    break
        elif next(iter(store.list("")), None) is not None:
            raise InvalidRequest(
                f"Refusing to drop {store.location.uri}: no readable Lance manifest was found under '_versions'."
            )
        elif not ignore_not_found:
            raise StorageError(f"Not found: {store.location.uri}. There is no table to drop.")


def _referenced(snapshot: Snapshot, reference: Reference) -> Snapshot:
    """The version that a number, tag or branch names. A number in quotes is a tag's name, and that is said."""
    try:
        return open_reference(snapshot, reference)
    except VersionNotFound as error:
        if not isinstance(reference, str) or not reference.isdecimal():
            raise
        hint = f"A text is the name of a tag: write version={reference} for the number."
        raise VersionNotFound(error.uri, error.what, hint) from error


def _reopen(uri: str, options: dict[str, str], version: int, scan: dict[str, Any]) -> LanceDataset:
    world = World(store=open_store(uri, options))
    return LanceDataset._of(open_snapshot(world, version), default_scan_options=scan)

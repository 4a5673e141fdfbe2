"""``LanceDataset``: one version of a table, under pylance's names. Every method hands over to a job or an operation.

A dataset is pinned to one version. Reading never changes it; writing through it (``insert``, ``restore``,
``update_config``…) moves it to the version it made; ``checkout_version`` returns another dataset. Reading
(:mod:`.read_verbs`), changes of rows and columns (:mod:`.change_verbs`), row identity (:mod:`.identity_verbs`), indices
(:mod:`.index_verbs`) and settings (:mod:`.settings_verbs`) have modules of their own.

Tests: ``tests/unit/api/test_dataset.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from tablewright.api import commit as committing
from tablewright.api.auto_cleanup import AutoCleanupConfig, cleanup_config, commits
from tablewright.api.change_verbs import ChangeVerbs
from tablewright.api.cleanup_verbs import CleanupVerbs
from tablewright.api.health_verbs import HealthVerbs
from tablewright.api.identity_verbs import IdentityVerbs
from tablewright.api.ignored import tell_unused_lock
from tablewright.api.index_verbs import IndexVerbs
from tablewright.api.locate import instant_ns, open_world
from tablewright.api.not_offered import PylanceNames
from tablewright.api.operation import LanceOperation, Transaction
from tablewright.api.optimize import DatasetOptimizer
from tablewright.api.pinned import move, table_of
from tablewright.api.read_verbs import ReadVerbs
from tablewright.api.refs import Branches, Tags
from tablewright.api.scanner import scan_options
from tablewright.api.schema import LanceSchema
from tablewright.api.settings_verbs import SettingsVerbs
from tablewright.api.translate import from_transaction
from tablewright.api.write import properties_of, write_table
from tablewright.checks import whole_number
from tablewright.engine.choose import choose_engine
from tablewright.engine.costs import Workload
from tablewright.engine.detect import check_session
from tablewright.errors import InvalidRequest, TableNotFound, VersionNotFound
from tablewright.jobs.branch import create_branch
from tablewright.jobs.commit import restore
from tablewright.jobs.drop import drop_table
from tablewright.jobs.table import Table
from tablewright.operations.describe import describe_versions
from tablewright.operations.write import WriteSettings
from tablewright.snapshot.files import read_manifest, read_transaction
from tablewright.snapshot.locate import find_version, latest_version, list_versions
from tablewright.snapshot.reference import Reference, open_reference
from tablewright.snapshot.refs import main_world
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.snapshot.standing import check_standing
from tablewright.world import World

__all__ = ["LanceDataset", "dataset", "write_dataset"]


def dataset(
    uri: str | Path | World,
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
    choose_engine(Workload(), engine, spark=spark)
    tell_unused_lock(commit_lock)
    world = open_world(uri, storage_options)
    if isinstance(version, str | tuple):
        snapshot = _referenced(open_snapshot(world), version)
    else:
        snapshot = open_snapshot(world, version, asof_ns=None if asof is None else instant_ns(asof))
    return LanceDataset._of(Table(snapshot, engine, spark), default_scan_options=default_scan_options)


class LanceDataset(
    ReadVerbs, ChangeVerbs, IdentityVerbs, IndexVerbs, SettingsVerbs, CleanupVerbs, HealthVerbs, PylanceNames
):
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
        self._set(Table(table_of(opened).snapshot, engine, spark), default_scan_options)

    def _set(self, table: Table, scan: Mapping[str, Any] | None) -> None:
        self._default_scan_options = dict(scan or {})
        self._pin(table)

    @classmethod
    def _of(cls, table: Table, *, default_scan_options: Mapping[str, Any] | None = None) -> LanceDataset:
        self = cls.__new__(cls)
        self._set(table, default_scan_options)
        return self

    def _at(self, table: Table) -> LanceDataset:
        """The same dataset at another version."""
        return LanceDataset._of(table, default_scan_options=self._default_scan_options)

    def __reduce__(self) -> tuple[Any, ...]:
        location = self._snapshot.location
        return _reopen, (location.uri, dict(location.storage_options), self.version, self._default_scan_options)

    def __copy__(self) -> LanceDataset:
        return self._at(self._table)

    def __len__(self) -> int:
        return self.count_rows()

    def __repr__(self) -> str:
        return f"<LanceDataset {self.uri} version {self.version}: {self._snapshot.fragments.total_live_rows} rows>"

    # ---- what it is

    @property
    def _snapshot(self) -> Snapshot:
        return self._table.snapshot

    @property
    def _world(self) -> World:
        return self._table.world

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
    def branches(self) -> Branches[LanceDataset]:
        """Lines of versions beside the main one: ``create``, ``list``, ``delete``."""
        return Branches(self, self.create_branch)

    def versions(self) -> list[dict[str, Any]]:
        """All versions, oldest first: ``version``, ``timestamp`` (local time) and ``metadata`` (totals)."""
        return describe_versions(self._world)

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

    @property
    def optimize(self) -> DatasetOptimizer:
        """Compaction, and what else keeps the table in good shape."""
        return DatasetOptimizer(self)

    # ---- versions

    def checkout_version(self, version: Reference) -> LanceDataset:
        """Another version of this table: a number, a tag, or ``(branch, number)``.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset([{"id": 1}], "memory://checkout-example")
        >>> ds.insert([{"id": 2}])
        >>> ds.checkout_version(1).count_rows(), ds.count_rows()
        (1, 2)
        """
        return self._at(self._table.at(_referenced(self._snapshot, version)))

    def checkout_latest(self) -> None:
        """Move this dataset to the newest version."""
        move(self, open_snapshot(self._world).after(self._snapshot))

    @commits
    def restore(self, *, skip_auto_cleanup: bool = False) -> None:
        """Make this version the newest again, as a new version."""
        move(self, restore(self._table))

    def create_branch(
        self, branch: str, reference: Reference | None = None, storage_options: Mapping[str, str] | None = None
    ) -> LanceDataset:
        """Start a branch from a version, a tag or this version; no data is copied."""
        if storage_options and dict(storage_options) != dict(self._snapshot.location.storage_options):
            raise InvalidRequest("create_branch() works with the storage_options that the dataset was opened with.")
        if reference is None:
            return self._at(self._table.at(create_branch(self._snapshot, branch)))
        check_standing(self._snapshot)  # the reference may mean a version of another table by now
        return self._at(self._table.at(create_branch(open_reference(self._snapshot, reference), branch)))

    # ---- writing

    @commits
    def insert(self, data: Any, *, schema: pa.Schema | None = None, mode: str = "append", **options: Any) -> None:
        """Add rows; this dataset moves to the new version."""
        self._follow(write_dataset(data, self, schema=schema, mode=mode, **options))

    @staticmethod
    @commits
    def commit(
        base_uri: str | Path | LanceDataset,
        operation: LanceOperation.BaseOperation | Transaction,
        read_version: int | None = None,
        commit_lock: Callable[[int], Any] | None = None,
        storage_options: Mapping[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = 20,
        *,
        commit_message: str | None = None,
        enable_stable_row_ids: bool | None = None,
        commit_timeout: timedelta | None = committing.DEFAULT_COMMIT_TIMEOUT,
        affected_rows: Any = None,
        skip_auto_cleanup: bool = False,
    ) -> LanceDataset:
        """Create a new version from an operation whose files are already written.

        ``read_version`` is the version that the operation was made from; only Overwrite and Restore can do without.
        ``affected_rows`` are the addresses of the rows that a Delete or Update touches: with them two writers on the
        same fragment rebase row by row instead of failing.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset([{"id": 1}], "memory://commit-example")
        >>> new = tw.fragment.write_fragments([{"id": 2}], ds)
        >>> tw.LanceDataset.commit(ds, tw.LanceOperation.Append(new), read_version=ds.version).count_rows()
        2
        """
        table = committing.commit_transaction(
            base_uri,
            operation,
            read_version,
            commit_lock,
            storage_options,
            enable_v2_manifest_paths,
            detached,
            max_retries,
            commit_message=commit_message,
            enable_stable_row_ids=enable_stable_row_ids,
            commit_timeout=commit_timeout,
            affected_rows=affected_rows,
        )
        return _like(base_uri, table)

    @staticmethod
    @commits
    def commit_batch(
        dest: str | Path | LanceDataset,
        transactions: Sequence[Transaction],
        commit_lock: Callable[[int], Any] | None = None,
        storage_options: Mapping[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = 20,
        *,
        commit_timeout: timedelta | None = committing.DEFAULT_COMMIT_TIMEOUT,
        skip_auto_cleanup: bool = False,
    ) -> dict[str, Any]:
        """Commit several append transactions as one version; returns ``{"dataset": …, "merged": …}``.

        A transaction that is in the list twice, or whose fragments came into the table since its ``read_version``, is
        refused: its rows would come twice. So a batch whose commit got no answer can be committed again.
        """
        merged = committing.merged_appends(transactions)
        dataset = LanceDataset.commit(
            dest,
            merged,
            None,
            commit_lock,
            storage_options,
            enable_v2_manifest_paths,
            detached,
            max_retries,
            commit_timeout=commit_timeout,
        )
        return {"dataset": dataset, "merged": merged}

    @staticmethod
    def drop(
        base_uri: str | Path, storage_options: Mapping[str, str] | None = None, ignore_not_found: bool = False
    ) -> None:
        """Delete a table with all its versions and files."""
        drop_table(open_world(base_uri, storage_options), ignore_not_found=ignore_not_found)


@commits
def write_dataset(
    data_obj: Any,
    uri: str | Path | World | LanceDataset,
    schema: pa.Schema | None = None,
    mode: str = "create",
    *,
    max_rows_per_file: int = 1024 * 1024,
    max_rows_per_group: int = 1024,
    max_bytes_per_file: int = 90 * 1024**3,
    commit_lock: Callable[[int], Any] | None = None,
    progress: Any = None,
    storage_options: Mapping[str, str] | None = None,
    data_storage_version: str | None = None,
    enable_v2_manifest_paths: bool = True,
    enable_stable_row_ids: bool = False,
    auto_cleanup_options: AutoCleanupConfig | Mapping[str, Any] | None = None,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    engine: Any = None,
    spark: Any = None,
    skip_auto_cleanup: bool = False,
) -> LanceDataset:
    """Write ``data_obj`` to a table and return the new version.

    ``mode`` is ``"create"`` (the table must not exist), ``"append"`` or ``"overwrite"`` (both create it if need be).
    Data may be a pyarrow Table, RecordBatch, RecordBatchReader, Dataset, Scanner, an iterable of batches, a pandas or
    polars frame, a dict of columns, a list of dicts, or a Spark DataFrame, which its executors write.
    ``max_rows_per_group`` has no effect (data files have no row groups); it is accepted because scripts pass it.
    ``enable_stable_row_ids``, ``data_storage_version`` and ``auto_cleanup_options`` count for a new table; a warning
    says where they have no effect. ``auto_cleanup_options`` (``interval``, ``older_than_seconds``,
    ``retain_versions``) let every ``interval``-th version clean up old ones; ``skip_auto_cleanup`` leaves that out now.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset([{"id": 1, "text": "one"}], "memory://write-example")
    >>> ds = tw.write_dataset([{"id": 2, "text": "two"}], ds, mode="append", commit_message="one more")
    >>> ds.version, ds.to_table(columns=["id"]).to_pydict()
    (2, {'id': [1, 2]})
    """
    settings = WriteSettings(
        mode=mode,
        max_rows_per_file=max_rows_per_file,
        max_bytes_per_file=max_bytes_per_file,
        data_storage_version=data_storage_version,
        enable_stable_row_ids=enable_stable_row_ids,
        enable_v2_manifest_paths=enable_v2_manifest_paths,
        config=cleanup_config(auto_cleanup_options),
    )
    table = write_table(
        data_obj,
        uri,
        schema,
        settings,
        commit_lock=commit_lock,
        progress=progress,
        storage_options=storage_options,
        properties=properties_of(commit_message, transaction_properties),
        engine=engine,
        spark=spark,
    )
    return _like(uri, table)


def _like(given: object, table: Table) -> LanceDataset:
    """The dataset that was given, at another version of its table; a new one if it was an address."""
    return given._at(table) if isinstance(given, LanceDataset) else LanceDataset._of(table)


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
    return LanceDataset._of(Table(open_snapshot(open_world(uri, options), version)), default_scan_options=scan)

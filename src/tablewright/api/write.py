"""``write_dataset``: from data in any form to a new version of a table.

Data that this process holds is written here, as a stream. A Spark DataFrame is written by its executors; the driver
makes the one commit. What a failed write minted is removed, unless we can't know whether it failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tablewright.api.ignored import cleanup_config, tell_cleanup, tell_only_at_creation
from tablewright.api.inputs import as_schema, as_source
from tablewright.api.locate import open_world
from tablewright.api.metadata import FragmentMetadata
from tablewright.checks import check_callable
from tablewright.data.write import discard_fragments
from tablewright.engine.choose import choose_engine
from tablewright.engine.detect import check_session, is_spark_frame
from tablewright.errors import (
    CommitConflict,
    CommitUnknown,
    InvalidRequest,
    StorageError,
    TableExists,
    TableNotFound,
    WrongType,
)
from tablewright.format.fragment import Fragment
from tablewright.format.naming import data_path
from tablewright.operations.write import (
    COMMIT_MESSAGE_KEY,
    WritePlan,
    WriteSettings,
    WriteTask,
    finish_write,
    plan_again,
    plan_write,
    run_again,
    run_write,
)
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.snapshot.standing import open_newest
from tablewright.storage.base import exists
from tablewright.transaction.commit import CommitOptions, commit
from tablewright.transaction.retry import with_retries
from tablewright.world import World

if TYPE_CHECKING:
    from tablewright.api.dataset import LanceDataset

__all__ = ["properties_of", "write_dataset", "write_files"]

Runner = Callable[[WritePlan], Sequence[Fragment]]


def write_dataset(
    data_obj: Any,
    uri: str | Path | LanceDataset,
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
    auto_cleanup_options: Mapping[str, Any] | None = None,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    engine: Any = None,
    spark: Any = None,
) -> LanceDataset:
    """Write ``data_obj`` to a table and return the new version.

    ``mode`` is ``"create"`` (the table must not exist), ``"append"`` or ``"overwrite"`` (both create it if need be).
    Data may be a pyarrow Table, RecordBatch, RecordBatchReader, Dataset, Scanner, an iterable of batches, a pandas or
    polars frame, a dict of columns, a list of dicts, or a Spark DataFrame, which its executors write.
    ``max_rows_per_group`` has no effect (data files have no row groups); it is accepted because scripts pass it.
    ``enable_stable_row_ids``, ``data_storage_version`` and ``auto_cleanup_options`` count for a new table; a warning
    says where they have no effect. ``auto_cleanup_options`` are stored and not acted on, which another warning says.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset([{"id": 1, "text": "one"}], "memory://write-example")
    >>> ds = tw.write_dataset([{"id": 2, "text": "two"}], ds, mode="append", commit_message="one more")
    >>> ds.version, ds.to_table(columns=["id"]).to_pydict()
    (2, {'id': [1, 2]})
    """
    from tablewright.api.dataset import LanceDataset

    check_session(spark)
    check_callable(commit_lock, "commit_lock", "a function of the version that returns a context manager")
    if progress is not None and not (hasattr(progress, "begin") and hasattr(progress, "complete")):
        raise WrongType(f"progress must have the methods begin and complete, got {progress!r}.")
    given = uri if isinstance(uri, LanceDataset) else None
    world = open_world(uri, storage_options) if given is None else given._world
    settings = WriteSettings(
        mode=mode,
        max_rows_per_file=max_rows_per_file,
        max_bytes_per_file=max_bytes_per_file,
        data_storage_version=data_storage_version,
        enable_stable_row_ids=enable_stable_row_ids,
        enable_v2_manifest_paths=enable_v2_manifest_paths,
        config=cleanup_config(auto_cleanup_options),
    )
    incoming, run = _incoming(data_obj, schema, world, given, mode, engine, spark, progress)
    tell_cleanup(settings.config)
    write = _Write(world, settings, properties_of(commit_message, transaction_properties), commit_lock)
    snapshot = write.run(given._snapshot if given is not None else None, incoming, run)
    if given is not None:
        return given._at(snapshot)
    return LanceDataset._of(snapshot, engine=engine, spark=spark)


def write_files(
    data_obj: Any,
    world: World,
    snapshot: Snapshot | None,
    schema: pa.Schema | None,
    settings: WriteSettings,
    progress: Any = None,
) -> tuple[WritePlan, tuple[Fragment, ...]]:
    """Write data files without committing them: for people who distribute the work themselves."""
    incoming, run = _incoming(data_obj, schema, world, None, settings.mode, None, None, progress)
    plan = plan_write(snapshot, world.store.location.uri, incoming, settings)
    return plan, tuple(run(plan))


def _incoming(
    data: Any, schema: pa.Schema | None, world: World, given: Any, mode: str, engine: Any, spark: Any, progress: Any
) -> tuple[pa.Schema, Runner]:
    """The schema of the data, and how its files get written: by this process or by Spark's executors."""
    schema = as_schema(schema)
    by_spark = engine is not None and choose_engine(0, engine, spark=spark).engine.name == "spark"
    if not is_spark_frame(data) and not by_spark:
        source = as_source(data, schema, _known_schema(world, given, mode) if _has_no_types(data) else None)
        told = None if progress is None else _Progress(progress)
        return source.schema, lambda plan: run_write(plan, source.batches, world, told)
    if is_spark_frame(data):
        from tablewright.engine.spark.inputs import adopted_schema, requested_schema

        if schema is not None:
            return _of_frame(data, requested_schema(data, schema), world)
        return _of_frame(data, adopted_schema(data, _known_schema(world, given, mode)), world)
    from tablewright.engine.spark.inputs import frame_of
    from tablewright.engine.spark.session import session_for

    source = as_source(data, schema)
    frame = frame_of(pa.Table.from_batches(source.batches, source.schema), session_for(engine, spark))
    return _of_frame(frame, source.schema, world)


def _has_no_types(data: Any) -> bool:
    """Python values, which take the types of the table that they go to."""
    return isinstance(data, dict | list)


def _of_frame(frame: Any, incoming: pa.Schema, world: World) -> tuple[pa.Schema, Runner]:
    from tablewright.engine.spark.frames import write_frame
    from tablewright.engine.spark.session import require_shared

    require_shared(world.store.location)

    def run(plan: WritePlan) -> list[Fragment]:
        task = WriteTask(plan, world.store.location)
        try:
            parts = write_frame(
                frame,
                task,
                plan.columns.to_arrow(),
                describe=f"Writing {plan.uri}",
                discard=lambda parts: discard_fragments(world, [fragment for part in parts for fragment in part]),
            )
        except BaseException:  # Spark does not say what the other partitions, or earlier attempts, have written
            task.mark.discard(world)
            raise
        return [fragment for part in parts for fragment in part]

    return incoming, run


def _known_schema(world: World, given: Any, mode: str) -> pa.Schema | None:
    """The table's own schema: what the columns of a DataFrame that is appended are cast to."""
    if mode != "append":
        return None
    if given is not None:
        return given.schema
    try:
        return open_snapshot(world).schema.to_arrow()
    except TableNotFound:
        return None


def properties_of(message: str | None, properties: Mapping[str, str] | None) -> dict[str, str]:
    """Transaction properties with the commit message among them."""
    if properties is not None and not isinstance(properties, Mapping):
        raise InvalidRequest(f"transaction_properties is a dict of texts, not {properties!r}.")
    merged = dict(properties or {})
    wrong = {key: value for key, value in merged.items() if not isinstance(key, str) or not isinstance(value, str)}
    if wrong or not isinstance(message, str | None):
        raise InvalidRequest(f"commit_message and transaction_properties must be text, got {wrong or message!r}.")
    if message is not None:
        if merged.get(COMMIT_MESSAGE_KEY, message) != message:
            raise InvalidRequest(
                f"commit_message and transaction_properties[{COMMIT_MESSAGE_KEY!r}] contradict each other."
            )
        merged[COMMIT_MESSAGE_KEY] = message
    return merged


class _Write:
    """One write under way: plan, run, commit.

    It is planned again where another writer created the table first, or changed columns of an append.
    """

    def __init__(self, world: World, settings: WriteSettings, properties: dict[str, str], lock: Any) -> None:
        self.world, self.settings, self.properties = world, settings, properties
        self.lock = lock or (lambda version: nullcontext())
        self.committed = False

    def run(self, base: Snapshot | None, incoming: pa.Schema, run: Runner) -> Snapshot:
        snapshot = self._planned_on(base)
        self.plan = plan_write(snapshot, self.world.store.location.uri, incoming, self.settings)
        if snapshot is not None:
            tell_only_at_creation(self.settings, snapshot)
        self.fragments = tuple(run(self.plan))
        try:
            return self._commit_onto(snapshot, incoming)
        except CommitUnknown:
            raise  # it may be visible: its files have to stay
        except Exception:
            if not self.committed:  # a lock that fails when it is left fails after the commit
                discard_fragments(self.world, self.fragments)
            raise

    def _planned_on(self, given: Snapshot | None) -> Snapshot | None:
        """The version that was given for an append, else the latest one; ``None`` where the write creates the table.

        A branch is not created by a write: one that was deleted meanwhile has no name that leads to the new rows.
        """
        if given is None or (given.branch is None and self.settings.mode != "append"):
            return self._latest()
        return given if self.settings.mode == "append" else open_newest(given)

    def _latest(self) -> Snapshot | None:
        try:
            return open_snapshot(self.world)
        except TableNotFound:
            return None

    def _commit_onto(self, snapshot: Snapshot | None, incoming: pa.Schema) -> Snapshot:
        def attempt(number: int) -> Snapshot:
            if number == 0:
                return self._commit(snapshot)
            newest = open_snapshot(self.world) if snapshot is None else open_newest(snapshot)
            self._write_again(newest)
            return self._commit(newest)

        try:
            return with_retries(self.world, attempt) if self.settings.mode == "append" else self._commit(snapshot)
        except TableExists:
            if self.settings.mode == "create":
                raise
        return self._commit_on_theirs(incoming)

    def _commit(self, snapshot: Snapshot | None) -> Snapshot:
        transaction = finish_write(self.plan, self.fragments, self.world.ids.uuid(), self.properties)
        options = CommitOptions(
            v2_manifest_names=self.settings.enable_v2_manifest_paths, creation=self.settings.creation
        )
        with self.lock(self.plan.read_version + 1):
            made = commit(self.world, transaction, base=snapshot, options=options).snapshot
            self.committed = True
            return made

    def _write_again(self, newest: Snapshot) -> None:
        """Plan on the newest version, and write the rows again if they belong into other columns there."""
        plan = plan_again(self.plan, newest, self.settings)
        files = [data_path(file.path) for fragment in self.fragments for file in fragment.files]
        if not all(exists(self.world.store, path) for path in files):
            raise StorageError(
                f"Data files that were written for {plan.uri} are gone: it was dropped or cleaned up meanwhile. "
                "Nothing was committed. Open the table, and write the rows again."
            )
        if plan.columns.fields != self.plan.columns.fields or plan.options != self.plan.options:
            written = run_again(plan, self.plan, self.fragments, self.world)
            discard_fragments(self.world, self.fragments)
            self.fragments = written
        self.plan = plan

    def _commit_on_theirs(self, incoming: pa.Schema) -> Snapshot:
        """Another writer created the table while we wrote: our files join it if they carry the same field ids."""
        snapshot = open_snapshot(self.world)
        again = plan_write(snapshot, self.plan.uri, incoming, self.settings)
        if again.columns.fields != self.plan.columns.fields or again.options != self.plan.options:
            raise CommitConflict(
                "Append", "Overwrite", snapshot.version, reason="the table was created with other columns"
            )
        self.plan = replace(again, options=self.plan.options)
        return self._commit(snapshot)


class _Progress:
    """Tells pylance's ``FragmentWriteProgress`` object about every fragment, in its own words."""

    def __init__(self, told: Any) -> None:
        self._told = told

    def begin(self, fragment: Fragment) -> None:
        self._told.begin(FragmentMetadata.of(fragment))

    def complete(self, fragment: Fragment) -> None:
        self._told.complete(FragmentMetadata.of(fragment))

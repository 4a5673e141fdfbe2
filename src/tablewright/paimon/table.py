"""``PaimonTable``: a Paimon table at one snapshot, to read, inspect and delete from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pyarrow as pa

from tablewright.engine import Engine, Workload, choose_engine, flow, frame_engine
from tablewright.engine.shared import require_shared
from tablewright.errors import CorruptTable, InvalidRequest, WrongType
from tablewright.expressions import Filter
from tablewright.format.row_set import RowSet
from tablewright.paimon.delete import DeleteResult, Matcher, delete_rows, explain_delete
from tablewright.paimon.format.binary_row import decode_partition
from tablewright.paimon.format.bucket_index import BucketIndex, BucketOptions
from tablewright.paimon.format.index_manifest import HASH
from tablewright.paimon.format.snapshot import Snapshot
from tablewright.paimon.kinds import has_buckets, uses_vectors
from tablewright.paimon.metadata import TableState
from tablewright.paimon.places import Places, store_of
from tablewright.paimon.read import (
    FileTask,
    ReadPlan,
    StoredVector,
    match_file,
    plan_read,
    read_file,
    read_vector,
    stored_vectors,
)
from tablewright.storage.address import join_uri
from tablewright.storage.base import ObjectNotFound, Store
from tablewright.transaction.retry import RetryOptions
from tablewright.world import World

__all__ = ["FileVector", "PaimonTable", "TableFile"]

_RETRY_TIMEOUT = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """One data file of a snapshot, for people to look at. ``path`` is below the table's directory, or an address."""

    path: str
    partition: Mapping[str, Any]
    bucket: int
    level: int
    rows: int
    size: int
    schema_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVector:
    """The rows that are deleted from a data file, and the place of the bin that says so."""

    vector: RowSet
    path: str
    offset: int
    length: int


class PaimonTable:
    """A Paimon table at one snapshot; :func:`tablewright.paimon.open` gives it.

    >>> import tablewright.paimon as paimon
    >>> orders = paimon.open("tests/golden/paimon/table")  # pypaimon wrote it
    >>> orders.to_table(columns=["id"], filter="year = 2024 and amount >= 10").to_pydict()
    {'id': [5, 7]}
    >>> orders.count_rows(), orders.partition_keys, orders.deletion_vectors()
    (12, ('year',), {})
    >>> [(file.partition, file.rows) for file in orders.files()]
    [({'year': 2024}, 4), ({'year': 2025}, 4), ({'year': 2025}, 4)]
    """

    def __init__(self, world: World, state: TableState, *, pinned: bool) -> None:
        self._world, self._state, self._pinned = world, state, pinned

    def __repr__(self) -> str:
        schema, snapshot = self._state.schema, self.snapshot
        facts = [f"primary key {', '.join(schema.primary_keys)}" if schema.primary_keys else "append"]
        if schema.partition_keys:
            facts.append(f"partitioned by {', '.join(schema.partition_keys)}")
        if has_buckets(schema):
            facts.append(f"bucket={schema.options.get('bucket', '-1')}")
        if uses_vectors(schema):
            facts.append("deletion vectors")
        facts.append("no snapshot yet" if snapshot is None else f"snapshot {snapshot.id}")
        facts.append(f"{len(self._state.files)} data files")
        return f"PaimonTable({self._state.location.uri!r}: {', '.join(facts)})"

    # ------------------------------------------------------------------------------------------------------ what it is
    @property
    def uri(self) -> str:
        """The table's directory."""
        return self._state.location.uri

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow knows them."""
        return self._state.schema.to_arrow()

    @property
    def options(self) -> dict[str, str]:
        """The table's options, as its newest schema has them."""
        return dict(self._state.schema.options)

    @property
    def primary_keys(self) -> tuple[str, ...]:
        """The columns of the primary key; none for an append table."""
        return self._state.schema.primary_keys

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """The columns that split the table into directories."""
        return self._state.schema.partition_keys

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that is read; ``None`` if nothing was ever committed."""
        return self._state.snapshot

    def files(self) -> tuple[TableFile, ...]:
        """The snapshot's data files, all of them: also those that a read leaves aside (level 0)."""
        places, schema = Places(self._state, self._store), self._state.schema
        types = [field.type.to_arrow() for field in schema.partition_fields]
        found = []
        for file in self._state.files:
            place = places.of_data(file)
            found.append(
                TableFile(
                    path=place.path if place.root is None else f"{place.root}/{place.path}",
                    partition=dict(
                        zip(schema.partition_keys, decode_partition(file.partition, types, file.manifest), strict=True)
                    ),
                    bucket=file.bucket,
                    level=file.level,
                    rows=file.row_count,
                    size=file.size,
                    schema_id=file.schema_id,
                )
            )
        return tuple(found)

    # --------------------------------------------------------------------------------------------------------- reading
    def to_batches(
        self, columns: Sequence[str] | None = None, filter: Filter | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows as a stream. A bad request fails at once; memory is bounded by a few batches."""
        plan = self._plan(columns, filter)
        return flow(partial(read_file, store=self._store), plan.tasks)

    def to_table(self, columns: Sequence[str] | None = None, filter: Filter | None = None) -> pa.Table:
        """The rows in memory, without those that deletion vectors hide."""
        plan = self._plan(columns, filter)
        batches = list(flow(partial(read_file, store=self._store), plan.tasks))
        if not len(plan.schema):
            rows = sum(batch.num_rows for batch in batches)
            return pa.table({"rows": pa.nulls(rows)}).select([])
        return pa.Table.from_batches(batches, plan.schema)

    def count_rows(self, filter: Filter | None = None) -> int:
        """How many rows there are. Without a filter the metadata are enough, and no data file is opened."""
        plan = self._plan((), filter)
        if filter is not None:
            return sum(batch.num_rows for batch in flow(partial(read_file, store=self._store), plan.tasks))
        return sum(task.rows - self._deleted(task.vector) for task in plan.tasks)

    def to_spark(self, columns: Sequence[str] | None = None, filter: str | None = None, *, spark: Any = None) -> Any:
        """The rows as a Spark DataFrame, one task per data file. No rows pass through the driver."""
        if filter is not None and not isinstance(filter, str):
            raise InvalidRequest("filter must be SQL text for to_spark(): Arrow expressions do not travel to workers.")
        require_shared(self._state.location)
        plan = self._plan(columns, filter)
        if not len(plan.schema):
            raise InvalidRequest("A DataFrame without columns has no rows: name at least one column.")
        return frame_engine(spark=spark).read_frame(_read_task, plan.tasks, self._world, plan.schema)

    # ----------------------------------------------------------------------------------------------------- index files
    def deletion_vectors(self) -> dict[str, FileVector]:
        """The deletion vectors by the name of their data file, read and checked."""
        found = {}
        for (_, _, name), stored in stored_vectors(self._state, self._store).items():
            place = stored.place
            found[name] = FileVector(
                vector=read_vector(self._store, stored),
                path=place.path if place.root is None else f"{place.root}/{place.path}",
                offset=stored.range.offset,
                length=stored.range.length,
            )
        return found

    def buckets(self) -> BucketIndex:
        """The hashes of the keys in each bucket, as the table's hash files have them (dynamic buckets)."""
        places, schema = Places(self._state, self._store), self._state.schema
        types = [field.type.to_arrow() for field in schema.partition_fields]
        files = []
        for file in self._state.index.of_type(HASH):
            place = places.of_index(file)
            home = store_of(place, self._store)
            where = join_uri(home.location.uri, place.path)
            try:
                data = home.get(place.path)
            except ObjectNotFound:
                raise CorruptTable(where, (f"it is missing, and holds the keys of bucket {file.bucket}",)) from None
            if len(data) != file.size:
                raise CorruptTable(where, (f"it has {len(data)} bytes where the index manifest notes {file.size}",))
            files.append((decode_partition(file.partition, types, file.manifest), file.bucket, data, where))
        return BucketIndex.from_files(files, BucketOptions.of_table(schema.options), self.schema)

    # -------------------------------------------------------------------------------------------------------- deleting
    def delete(
        self,
        predicate: Filter,
        *,
        engine: Any = None,
        conflict_retries: int = 20,
        retry_timeout: timedelta = _RETRY_TIMEOUT,
    ) -> DeleteResult:
        """Delete the rows that match, by deletion vectors, from the newest snapshot; this table moves to the new one.

        ``predicate`` is SQL text or a pyarrow expression. ``engine`` is ``"local"``, ``"spark"`` or a Spark session; by
        default the size of the table decides. If other writers commit first, the delete is put on top of what they
        did, ``conflict_retries`` times at most and not longer than ``retry_timeout``.
        """
        self._check_newest()
        if not isinstance(retry_timeout, timedelta):
            raise WrongType(f"retry_timeout must be a timedelta, got {retry_timeout!r}.")
        retries = RetryOptions(
            conflict_retries=conflict_retries,
            retry_timeout_seconds=retry_timeout.total_seconds(),
            are_arguments=True,
        )
        result, self._state = delete_rows(self._world, predicate, self._matcher(predicate, engine), retries)
        return result

    def explain_delete(self, predicate: Filter, *, engine: Any = None) -> str:
        """What :meth:`delete` would do now: rows, data files, index files. Rows are looked for, nothing is written.

        >>> import tablewright.paimon as paimon
        >>> orders = paimon.open("tests/golden/paimon/table")
        >>> print(orders.explain_delete("amount > 1000"))
        Delete: uri=...tests/golden/paimon/table, snapshot=2
          nothing matches: nothing is committed
        """
        self._check_newest()
        return explain_delete(self._world, predicate, self._matcher(predicate, engine))

    # ---------------------------------------------------------------------------------------------------------- inside
    def _check_newest(self) -> None:
        if self._pinned:
            raise InvalidRequest(
                f"This table was opened at snapshot {self._state.snapshot and self._state.snapshot.id}, and a delete "
                "works on the newest one: open the table without snapshot=."
            )

    def _matcher(self, predicate: Filter, engine: Any) -> Matcher:
        def match(plan: ReadPlan, tasks: Sequence[FileTask]) -> list[RowSet]:
            chosen = self._engine_for(plan, predicate, engine)
            return chosen.map(_match_task, tasks, self._world, describe="Searching rows")

        return match

    @property
    def _store(self) -> Store:
        return self._world.store

    def _plan(self, columns: Sequence[str] | None, filter: Filter | None) -> ReadPlan:
        return plan_read(self._state, self._store, columns, filter, now_ns=self._world.clock.now_ns())

    def _deleted(self, stored: StoredVector | None) -> int:
        if stored is None:
            return 0
        cardinality = stored.range.cardinality
        return len(read_vector(self._store, stored)) if cardinality is None else cardinality

    def _engine_for(self, plan: ReadPlan, predicate: Filter, engine: Any) -> Engine:
        stays_here = None if isinstance(predicate, str) else "a pyarrow expression does not travel"
        location, work = self._state.location, _workload(plan)
        return choose_engine(work, engine, location=location, stays_here=stays_here).engine


def _workload(plan: ReadPlan) -> Workload:
    """A read, a task per file."""
    rows, files = sum(file.row_count for file in plan.files), len(plan.files)
    return Workload(bytes_read=plan.estimated_bytes, rows=rows, files=files, tasks=len(plan.tasks))


def _read_task(task: FileTask, world: World) -> Iterator[pa.RecordBatch]:
    """The rows of a task."""
    return read_file(task, world.store)


def _match_task(task: FileTask, world: World) -> RowSet:
    """The positions that match in a task's file."""
    return match_file(task, world.store)

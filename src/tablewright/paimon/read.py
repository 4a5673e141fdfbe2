"""Reading: one picklable task per data file, run by a thread here or by a Spark worker.

1. *plan* (pure, but for the table's listing where directories are ambiguous): which files can hold rows that match
   (:mod:`.pruning`), which of their columns make the table's, which deletion vector belongs to each.
2. *run*: stream the row groups in which the filter can be true; drop rows that the vector names, before anything else
   sees them; bring the columns into the table's form; keep the rows for which the filter is true.

Positions in a vector count the physical rows of the file, so each batch comes with the position of its first row.

Tests: ``tests/unit/paimon/test_table.py``, ``tests/unit/paimon/test_golden_tables.py``,
``tests/differential/paimon/test_reading.py``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tablewright.checks import check_text, listed
from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.expressions import Filter, Predicate, compile_filter
from tablewright.expressions.scope import Scope
from tablewright.format.deletion_vectors.paimon import VectorRange, decode_vector
from tablewright.format.deletion_vectors.problems import problems_of_deletions
from tablewright.format.row_set import RowSet
from tablewright.paimon.columns import Source, match_columns
from tablewright.paimon.format.binary_row import decode_partition
from tablewright.paimon.format.index_manifest import DELETION_VECTORS
from tablewright.paimon.format.manifest import DataFile
from tablewright.paimon.kinds import readable_files, uses_vectors
from tablewright.paimon.metadata import TableState
from tablewright.paimon.parquet import read_batches
from tablewright.paimon.places import Place, Places, store_of
from tablewright.paimon.pruning import matching_partitions, may_match
from tablewright.paimon.statistics import bounds_of_files, bounds_of_row_groups
from tablewright.storage.address import join_uri
from tablewright.storage.base import ObjectNotFound, Store

__all__ = [
    "FileTask",
    "ReadPlan",
    "StoredVector",
    "match_file",
    "plan_read",
    "read_file",
    "read_vector",
    "stored_vectors",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVector:
    """Where the deletion vector of a data file lies."""

    place: Place
    range: VectorRange


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTask:
    """One data file to be read. Picklable.

    ``sources`` are the columns that are read, ``columns`` those that are wanted in the end; the filter may need more.
    """

    place: Place
    rows: int
    sources: tuple[Source, ...]
    columns: tuple[str, ...]
    schema: pa.Schema
    vector: StoredVector | None = None
    filter: Filter | None = None
    now_ns: int | None = None

    @property
    def result_schema(self) -> pa.Schema:
        """The schema of the batches that come out."""
        return pa.schema([self.schema.field(name) for name in self.columns])

    def predicate(self) -> Predicate | None:
        """The filter, compiled where it is used: a compiled one is not pickled."""
        if isinstance(self.filter, str):
            return _compiled(self.filter, self.schema, self.now_ns)
        return None if self.filter is None else compile_filter(self.filter, self.schema, now_ns=self.now_ns)


@lru_cache(maxsize=16)
def _compiled(filter: str, schema: pa.Schema, now_ns: int | None) -> Predicate:
    """All tasks of a plan have the same filter: a process compiles it once."""
    return compile_filter(filter, schema, now_ns=now_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """A decided read: its tasks, and the schema of the result."""

    tasks: tuple[FileTask, ...]
    schema: pa.Schema
    files: tuple[DataFile, ...]

    @property
    def estimated_bytes(self) -> int:
        """About how much will be read."""
        return sum(file.size for file in self.files)


def plan_read(
    state: TableState,
    store: Store,
    columns: Sequence[str] | None = None,
    filter: Filter | None = None,
    *,
    now_ns: int | None = None,
) -> ReadPlan:
    """Decide a read. Unknown columns, a bad filter and tables that need merging fail here."""
    schema = state.schema.to_arrow()
    wanted = tuple(schema.names) if columns is None else _known(columns, schema)
    predicate = None if filter is None else compile_filter(filter, schema, now_ns=now_ns)
    used = () if predicate is None else _known(predicate.columns, schema)
    needed = list(dict.fromkeys((*wanted, *used)))
    files = readable_files(state)
    if predicate is not None:
        files = _of_matching_partitions(state, files, predicate)
        files = _of_matching_bounds(state, files, predicate)
    places, vectors = Places(state, store), stored_vectors(state, store)
    tasks = tuple(
        FileTask(
            place=places.of_data(file),
            rows=file.row_count,
            sources=match_columns(state.schema, state.schemas[file.schema_id], file, needed),
            columns=wanted,
            schema=schema,
            vector=vectors.get((file.partition, file.bucket, file.name)),
            filter=filter,
            now_ns=now_ns,
        )
        for file in files
    )
    return ReadPlan(tasks=tasks, schema=pa.schema([schema.field(name) for name in wanted]), files=files)


def _of_matching_partitions(state: TableState, files: Sequence[DataFile], predicate: Predicate) -> tuple[DataFile, ...]:
    """The files of partitions for which the filter can be true: that is asked once for each partition."""
    if not {*predicate.columns} & {*state.schema.partition_keys}:
        return tuple(files)
    keys, partitions = state.schema.partition_fields, {file.partition: file.manifest for file in files}
    types = [field.type.to_arrow() for field in keys]
    rows = [decode_partition(partition, types, manifest) for partition, manifest in partitions.items()]
    columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(types)]
    values = pa.RecordBatch.from_arrays(columns, [field.name for field in keys])
    mask = matching_partitions(predicate, state.schema.to_arrow(), values)
    wanted = {partition for partition, matches in zip(partitions, mask, strict=True) if matches}
    return tuple(file for file in files if file.partition in wanted)


def _of_matching_bounds(state: TableState, files: Sequence[DataFile], predicate: Predicate) -> tuple[DataFile, ...]:
    """The files in which the filter can be true, by the bounds that manifests have for them."""
    bounds = bounds_of_files(files, state.schemas, state.schema, predicate.columns)
    mask = may_match(predicate, state.schema.to_arrow(), bounds, len(files))
    return tuple(itertools.compress(files, mask))


def stored_vectors(state: TableState, store: Store) -> dict[tuple[bytes, int, str], StoredVector]:
    """Where the deletion vectors of a table's data files lie, by partition, bucket and name of the data file."""
    if not uses_vectors(state.schema):
        return {}
    places, vectors, problems = Places(state, store), dict[tuple[bytes, int, str], StoredVector](), []
    for file in state.index.of_type(DELETION_VECTORS):
        place = places.of_index(file)
        for range in file.ranges:
            key = (file.partition, file.bucket, range.data_file)
            if key in vectors:
                problems.append(f"{range.data_file} has two deletion vectors, one in {file.name}")
            vectors[key] = StoredVector(place=place, range=range)
    if problems and state.snapshot is not None:
        raise CorruptTable(join_uri(store.location.uri, f"manifest/{state.snapshot.index_manifest}"), tuple(problems))
    return vectors


def read_vector(store: Store, stored: StoredVector) -> RowSet:
    """A deletion vector, checked against its checksum."""
    home = store_of(stored.place, store)
    where = join_uri(home.location.uri, stored.place.path)
    try:
        data = home.get_range(stored.place.path, stored.range.offset, stored.range.end_max)
    except ObjectNotFound:
        raise CorruptTable(
            where, (f"it is missing, and holds what is deleted from {stored.range.data_file}",)
        ) from None
    return decode_vector(data, stored.range, where)


def read_file(task: FileTask, store: Store) -> Iterator[pa.RecordBatch]:
    """The rows of a task, in batches."""
    predicate, schema = task.predicate(), task.result_schema
    for _, batch in _live_batches(task, store, predicate):
        kept = batch if predicate is None else predicate.filter(batch)
        if kept.num_rows:
            arrays = [kept.column(name) for name in task.columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema) if arrays else kept.select([])


def match_file(task: FileTask, store: Store) -> RowSet:
    """The physical positions of the live rows for which the task's filter is true (all of them, without a filter)."""
    predicate, found = task.predicate(), [np.array([], np.int64)]
    for positions, batch in _live_batches(task, store, predicate):
        if predicate is not None:
            positions = positions[predicate.mask(batch)]
        found.append(positions)
    return RowSet.of(np.concatenate(found))


def _live_batches(
    task: FileTask, store: Store, predicate: Predicate | None
) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
    """The rows that are not deleted, in the table's form, and their positions in the file.

    Rows for which the predicate is not true may be among them, and may be missing.
    """
    home = store_of(task.place, store)
    names = list(dict.fromkeys(source.name for source in task.sources if source.name is not None))
    choose = None if predicate is None else partial(_matching_groups, task, predicate)
    live: np.ndarray | None = None
    for begin, stored in read_batches(home, task.place.path, task.rows, names, choose):
        if live is None and task.vector is not None:  # only once the file is known to have this many rows
            live = _live_mask(task, task.vector, store)
        end = begin + stored.num_rows
        positions = np.arange(begin, end)
        if live is not None and not live[begin:end].all():
            positions = positions[live[begin:end]]
            stored = stored.filter(pa.array(live[begin:end])) if names else stored.slice(0, len(positions))
        if len(positions):
            yield positions, _in_table_form(task, stored, len(positions), home)


def _in_table_form(task: FileTask, stored: pa.RecordBatch, rows: int, home: Store) -> pa.RecordBatch:
    try:
        arrays = [
            source.values(None if source.name is None else stored.column(source.name), rows) for source in task.sources
        ]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        where = join_uri(home.location.uri, task.place.path)
        raise CorruptTable(where, (f"its values are not of the table's types: {error}",)) from error
    if not arrays:
        return pa.record_batch([pa.nulls(rows)], ["rows"]).select([])
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([source.field.to_arrow() for source in task.sources]))


def _matching_groups(task: FileTask, predicate: Predicate, file: pq.ParquetFile) -> np.ndarray:
    """Which row groups of a task's file can hold rows that match."""
    used = [source for source in task.sources if source.field.name in predicate.columns]
    bounds = bounds_of_row_groups(file.metadata, file.schema_arrow, used)
    return may_match(predicate, task.schema, bounds, file.num_row_groups)


def _live_mask(task: FileTask, stored: StoredVector, store: Store) -> np.ndarray:
    vector = read_vector(store, stored)
    problems = problems_of_deletions(vector, task.rows)
    if problems:
        where, file = join_uri(store.location.uri, stored.place.path), stored.range.data_file
        raise CorruptTable(where, tuple(f"the vector of {file}: {problem}" for problem in problems))
    return vector.absent_mask(task.rows)


def _known(columns: Sequence[str], schema: pa.Schema) -> tuple[str, ...]:
    names = [check_text(name, "a column") for name in listed(columns, "columns")]
    for name in names:
        if name not in schema.names:
            raise Scope(schema).unknown(name)
    if len(set(names)) < len(names):
        raise InvalidRequest(f"Invalid user input: columns names one twice: {names}.")
    return tuple(names)

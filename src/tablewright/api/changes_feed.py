"""``Changes``: what happened to the rows of a table between two versions, ready to be read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tablewright.api.locate import open_world
from tablewright.engine.choose import frame_engine
from tablewright.engine.shared import require_shared
from tablewright.errors import InvalidRequest
from tablewright.expressions.filters import Filter
from tablewright.operations.change_feed.plan import DEFAULT_BATCH_SIZE, FeedOptions, FeedPlan, plan_changes
from tablewright.operations.change_feed.task import run_change_task, run_change_tasks
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage.base import Location
from tablewright.storage.requests import requests_made

__all__ = ["Changes", "changes_of"]


class Changes:
    """A change feed, decided but not read yet; it can be read as often as you like.

    Each row is a row of the table with ``_change_type`` (``insert``, ``update_preimage``, ``update_postimage`` or
    ``delete``), ``_commit_version``, ``_commit_timestamp`` and ``_rowid``. Versions come in order; within one, rows as
    they were before come first.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset([{"id": 1, "n": 1}], "memory://changes-class", enable_stable_row_ids=True)
    >>> _ = ds.update({"n": "n + 1"})
    >>> ds.changes(1).to_table().select(["n", "_change_type"]).to_pylist()
    [{'n': 1, '_change_type': 'update_preimage'}, {'n': 2, '_change_type': 'update_postimage'}]
    """

    def __init__(self, snapshot: Snapshot, options: FeedOptions, engine: Any = None, spark: Any = None) -> None:
        self._snapshot, self._options, self._engine, self._spark = snapshot, options, engine, spark
        self._plan: FeedPlan = plan_changes(snapshot, options)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._snapshot.location, self._snapshot.version, self._options)

    def __repr__(self) -> str:
        versions = f"({self._options.from_version}, {self._options.to_version}]"
        return (
            f"<Changes of {self._snapshot.location.uri} in versions {versions}{', net' if self._options.net else ''}>"
        )

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows: the columns of the last version that were asked for, then those of the feed."""
        return self._plan.schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as a stream of batches."""
        return run_change_tasks(self._plan.tasks(), self._snapshot.world)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a RecordBatchReader."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_table(self) -> pa.Table:
        """The rows in memory."""
        return pa.Table.from_batches(self.to_batches(), self.schema)

    def to_pandas(self, **options: Any) -> Any:
        """The rows as a pandas DataFrame."""
        return self.to_table().to_pandas(**options)

    def to_spark(self, spark: Any = None) -> Any:
        """The rows as a Spark DataFrame, whose tasks read them. Which rows they are is found here, by metadata."""
        if self._options.filter is not None and not isinstance(self._options.filter, str):
            raise InvalidRequest("filter must be SQL text for to_spark(): Arrow expressions do not travel to workers.")
        require_shared(self._snapshot.location)
        tasks, engine = tuple(self._plan.tasks()), frame_engine(self._engine, spark or self._spark)
        return engine.read_frame(run_change_task, tasks, self._snapshot.world, self.schema)

    def explain_plan(self) -> str:
        """What happened in each version, and what will be read to show it. Reads metadata only.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2]}, "memory://changes-explain", enable_stable_row_ids=True)
        >>> _ = ds.delete("id = 1")
        >>> print(ds.changes(1).explain_plan())
        ChangeFeed: uri=memory://changes-explain, versions=(1, 2], per version
          columns=[id]
          version 2: 1 deleted; reads rows of 1 of 1 fragments before it, 0 of 1 after
        """
        return "\n".join(self._plan.explain())

    def analyze_plan(self) -> str:
        """Read the feed here, and say what it took."""
        started, requests = time.perf_counter(), requests_made()
        rows = size = batches = 0
        for batch in self.to_batches():
            rows, size, batches = rows + batch.num_rows, size + batch.nbytes, batches + 1
        metrics = f"rows={rows}, batches={batches}, bytes={size}, requests={requests_made() - requests}"
        seconds = time.perf_counter() - started
        return f"{self.explain_plan()}\n  metrics=[{metrics}, engine=local, seconds={seconds:.3f}]"


def changes_of(
    snapshot: Snapshot,
    from_version: int,
    to_version: int | None,
    columns: Sequence[str] | Mapping[str, str] | None,
    filter: Filter | None,
    *,
    net: bool,
    batch_size: int | None,
    engine: Any,
    spark: Any,
    use_scalar_index: bool | None = None,
) -> Changes:
    """The feed from one version (exclusive) to another (inclusive; the snapshot's own by default)."""
    options = FeedOptions(
        from_version=from_version,
        to_version=snapshot.version if to_version is None else to_version,
        columns=columns,
        filter=filter,
        net=net,
        batch_size=DEFAULT_BATCH_SIZE if batch_size is None else batch_size,
        use_scalar_index=use_scalar_index,
    )
    return Changes(snapshot, options, engine, spark)


def _reopen(location: Location, version: int, options: FeedOptions) -> Changes:
    return Changes(open_snapshot(open_world(location.uri, location.storage_options), version), options)

"""``LanceScanner``: a scan that is decided but not run yet."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from tablewright.api.arrow_dataset import ARROW_ONLY, passes_for
from tablewright.api.locate import open_world
from tablewright.api.pinned import Pinned, scan_defaults, table_of
from tablewright.checks import listed, whole_number
from tablewright.engine.choose import Choice, choose_engine, frame_engine
from tablewright.engine.detect import check_session
from tablewright.engine.shared import require_shared
from tablewright.errors import InvalidRequest, UnsupportedFeature, WrongType
from tablewright.jobs.workloads import scan_work
from tablewright.lazy import cached_property
from tablewright.operations.lookup import lookup_count, lookup_table
from tablewright.operations.scan import (
    ScanOptions,
    ScanPlan,
    count_rows,
    plan_scan,
    run_scan_task,
    scan_batches,
    scan_table,
)
from tablewright.operations.take import positions_within
from tablewright.reading.scan_task import ScanTask
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage.base import Location
from tablewright.world import World

__all__ = ["ColumnOrdering", "LanceScanner", "positional", "scan_options", "scan_pinned"]

_OPTIONS = frozenset(field.name for field in fields(ScanOptions))
_LATER = {
    "nearest": "search indices come with later work",
    "full_text_query": "search indices come with later work",
    "fast_search": "search indices come with later work",
    "scan_stats_callback": "analyze_plan() tells what a scan did",
}
_HINTS = frozenset(
    [
        "prefilter",
        "batch_readahead",
        "fragment_readahead",
        "use_stats",
        "io_buffer_size",
        "batch_size_bytes",
        "disable_scoring_autoprojection",
        "index_segments",
    ]
)  # hints to a reader that change how it reads, never what


@dataclass(frozen=True)
class ColumnOrdering:
    """How one column sorts."""

    column_name: str
    ascending: bool = True
    nulls_first: bool = False


def scan_options(given: Mapping[str, Any]) -> ScanOptions:
    """Options by pylance's names. Hints for pylance's own reader are ignored; an unknown name is an error."""
    if not isinstance(given, Mapping):
        raise WrongType(f"Scan options are a dict of names and values, got {given!r} of type {type(given).__name__}.")
    known = _OPTIONS
    chosen: dict[str, Any] = {}
    for name, value in given.items():
        if name in known:
            chosen[name] = value
        elif name in _LATER:
            if value not in (None, False):
                raise UnsupportedFeature(f"{name}= is not part of this release: {_LATER[name]}.")
        elif name not in _HINTS | ARROW_ONLY:
            raise InvalidRequest(f"Unknown scan option {name!r}: there are {', '.join(sorted(known))}.")
    if chosen.get("fragments") is not None:
        given_fragments = listed(chosen["fragments"], "fragments")
        chosen["fragments"] = [getattr(fragment, "fragment_id", fragment) for fragment in given_fragments]
    return ScanOptions(**chosen)


def scan_pinned(dataset: Pinned, given: Mapping[str, Any]) -> LanceScanner:
    """A scan of the version that a dataset shows, with its default options where ``given`` has no others."""
    chosen = {name: value for name, value in given.items() if value is not None}
    table = table_of(dataset)
    options = scan_options({**scan_defaults(dataset), **chosen})
    return LanceScanner(table.snapshot, options, table.engine, table.spark)


def positional(arguments: tuple[Any, ...], options: Mapping[str, Any], verb: str) -> dict[str, Any]:
    """The options of a scan, with the first positional arguments by their names."""
    names = ("columns", "filter")
    if len(arguments) > len(names) or any(name in options for name in names[: len(arguments)]):
        raise WrongType(f"{verb}() takes columns and filter, then options by name; got {len(arguments)} by position.")
    return {**dict(zip(names, arguments, strict=False)), **options}


class LanceScanner:
    """A scan of one version, ready to run as often as you like.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset({"id": [3, 1, 2]}, "memory://scanner-example")
    >>> ds.scanner(filter="id > 1", order_by=["id"]).to_table().to_pydict()
    {'id': [2, 3]}
    """

    __class__ = passes_for(pads.Scanner)

    def __init__(self, snapshot: Snapshot, options: ScanOptions, engine: Any = None, spark: Any = None) -> None:
        self._snapshot, self._options, self._engine, self._spark = snapshot, options, engine, spark

    def __reduce__(self) -> tuple[Any, ...]:
        """It travels as the table's address, the version and the options; the other side finds an engine of its own."""
        return _reopen, (self._snapshot.location, self._snapshot.version, self._options)

    @cached_property
    def _plan(self) -> ScanPlan:
        return plan_scan(self._snapshot, self._options)

    @property
    def _counting(self) -> Choice:
        """Where matching rows are counted, and why."""
        return choose_engine(scan_work(self._plan.for_counting().whole), self._engine, spark=self._spark)

    @property
    def dataset_schema(self) -> pa.Schema:
        """The table's schema."""
        return self._snapshot.schema.to_arrow()

    @property
    def projected_schema(self) -> pa.Schema:
        """The schema of the result."""
        return self._plan.schema

    def to_table(self) -> pa.Table:
        """The result in memory."""
        found = lookup_table(self._snapshot, self._options)
        if found is None:
            found = scan_table(self._plan, self._snapshot)
        return found

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The result as a stream. The plan is made at once, so a bad request fails here."""
        return scan_batches(self._plan, self._snapshot)

    def to_reader(self) -> pa.RecordBatchReader:
        """The result as a RecordBatchReader."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def scan_batches(self) -> Iterator[pads.TaggedRecordBatch]:
        """The stream in pyarrow's own wrapping is not offered; use :meth:`to_batches`."""
        raise UnsupportedFeature("scan_batches() is not offered: use to_batches().")

    def to_pandas(self, **options: Any) -> Any:
        """The result as a pandas DataFrame."""
        return self.to_table().to_pandas(**options)

    def head(self, num_rows: int) -> pa.Table:
        """The first rows of the result."""
        num_rows = whole_number(num_rows, "num_rows")
        limit = num_rows if self._options.limit is None else min(num_rows, self._options.limit)
        return LanceScanner(self._snapshot, replace(self._options, limit=limit)).to_table()

    def take(self, indices: Any) -> pa.Table:
        """Rows of the result by position."""
        table = self.to_table()
        return table.take(pa.array(positions_within(indices, table.num_rows, "the result")))

    def count_rows(self) -> int:
        """How many rows the result has. A filter over much data is counted by Spark's workers."""
        found = lookup_count(self._snapshot, self._options)
        if found is None:
            found = self._count_rows()
        return found

    def _count_rows(self) -> int:
        plan = self._plan
        if not isinstance(self._options.filter, str) or self._snapshot.location.is_of_this_process:
            return count_rows(plan, self._snapshot)
        plan = plan.narrowed_for_counting()
        engine, _ = choose_engine(scan_work(plan.whole), self._engine, spark=self._spark)
        if engine.in_process:
            return count_rows(plan, self._snapshot)
        rows = sum(engine.map(_count_task, plan.tasks, self._snapshot.world, describe="Counting rows"))
        rows = max(0, rows - plan.offset)
        return rows if plan.limit is None else min(rows, plan.limit)

    def to_spark(self, spark: Any = None) -> Any:
        """The result as a Spark DataFrame whose tasks read it, one per some 64 MiB."""
        check_session(spark)
        if self._options.limit is not None or self._options.offset or self._options.order_by:
            raise InvalidRequest("limit, offset and order_by are Spark's own verbs: ask the DataFrame for them.")
        if self._options.filter is not None and not isinstance(self._options.filter, str):
            raise InvalidRequest("filter must be SQL text for to_spark(): Arrow expressions do not travel to workers.")
        require_shared(self._snapshot.location)
        plan, engine = self._plan, frame_engine(self._engine, spark or self._spark)
        return engine.read_frame(run_scan_task, plan.narrowed().tasks, self._snapshot.world, plan.schema)

    def explain_plan(self, verbose: bool = False) -> str:
        """What the scan will do."""
        plan = self._plan
        if not verbose:
            return str(plan)
        engine, why = self._counting
        size = f"estimated_bytes={plan.estimated_bytes}, tasks={len(plan.tasks)}"
        return f"{plan}\n  {size}, engine={engine.name} for counting: {why}"

    def analyze_plan(self) -> str:
        """Run the scan, and say what it did."""
        started = time.perf_counter()
        rows = size = batches = 0
        for batch in self.to_batches():
            rows, size, batches = rows + batch.num_rows, size + batch.nbytes, batches + 1
        seconds = time.perf_counter() - started
        metrics = f"rows={rows}, batches={batches}, bytes={size}, engine=local, seconds={seconds:.3f}"
        return f"{self._plan}\n  metrics=[{metrics}]"


def _reopen(location: Location, version: int, options: ScanOptions) -> LanceScanner:
    return LanceScanner(open_snapshot(open_world(location.uri, location.storage_options), version), options)


def _count_task(task: ScanTask, world: World) -> int:
    """How many rows a task has."""
    return sum(batch.num_rows for batch in run_scan_task(task, world))

"""Reading a table as ``LanceDataset`` offers it: scans, rows by position or id, fragments.

Tests: ``tests/unit/api/test_dataset.py``, ``tests/unit/api/test_scanner.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablewright.api.arrow_dataset import ArrowDataset
from tablewright.api.blob_modes import blob_handling_of
from tablewright.api.fragment import LanceFragment
from tablewright.api.scanner import LanceScanner, positional, scan_options, scan_pinned
from tablewright.api.sql import SqlQueryBuilder
from tablewright.checks import whole_number
from tablewright.engine.detect import is_spark_session
from tablewright.engine.local import LocalEngine
from tablewright.errors import InvalidRequest
from tablewright.operations import take
from tablewright.operations.validate import validate

__all__ = ["ReadVerbs"]


class ReadVerbs(ArrowDataset):
    """The part of a dataset that reads rows."""

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
        return scan_pinned(self, given)

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
            return self._table.snapshot.fragments.total_live_rows
        table = self._table
        given = scan_options({"filter": filter, **options})
        return LanceScanner(table.snapshot, given, table.engine, table.spark).count_rows()

    def take(self, indices: Sequence[int] | pa.Array, columns: Any = None) -> pa.Table:
        """Rows by position, in the order asked for.

        >>> import tablewright as tw
        >>> tw.write_dataset({"id": [10, 20, 30]}, "memory://take-example").take([2, 0]).to_pydict()
        {'id': [30, 10]}
        """
        return take.take_positions(self._table.snapshot, indices, columns)

    def take_rows(self, row_ids: Sequence[int] | pa.Array, columns: Any = None) -> pa.Table:
        """Rows by row id (``_rowid``), in the order asked for."""
        return take.take_row_ids(self._table.snapshot, row_ids, columns)

    def _take_rows(self, row_ids: Sequence[int] | pa.Array, columns: Any = None) -> pa.Table:
        return self.take_rows(row_ids, columns)

    def sample(self, num_rows: int, columns: Any = None, randomize_order: bool = True) -> pa.Table:
        """Random rows, none twice."""
        return take.sample(self._table.snapshot, num_rows, columns, randomize_order=randomize_order)

    def sql(self, sql: str) -> SqlQueryBuilder:
        """A SQL query over this version, which it calls ``dataset``."""
        return SqlQueryBuilder(self, sql)

    def get_fragments(self, filter: pc.Expression | None = None) -> list[LanceFragment]:
        """All fragments, in order. A filter leaves none out: fragments have no partition values to compare it with."""
        if not isinstance(filter, pc.Expression | None):
            raise InvalidRequest(f"get_fragments() takes a pyarrow Expression, not {filter!r}.")
        return [LanceFragment(self, fragment=fragment) for fragment in self._table.snapshot.fragments]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """One fragment, ``None`` if this version does not have it."""
        if not self._table.snapshot.fragments.has(fragment_id):
            return None
        return LanceFragment(self, fragment_id)

    def validate(self) -> None:
        """Check this version against its files; raises :class:`~tablewright.errors.CorruptTable` with all problems."""
        validate(self._table.snapshot, LocalEngine().map)

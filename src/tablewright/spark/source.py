"""The data source ``tablewright``: ``spark.read.format("tablewright")``, ``df.write.format("tablewright")``, SQL views.

Spark makes an instance in a process of its own and sends it on as a pickle, so what it learns there travels along: the
version that a DataFrame shows is decided once, when it is made (:meth:`TablewrightSource.schema`, or the moment of
pickling where the caller gave the schema). The readers and writers are imported by the methods that make them.

Spark's ``pushFilters`` is left out on purpose: pushed filters stay with the relation and leak into other queries of the
same DataFrame (PySpark 4.3). Filters and columns are options.

Tests: tests/unit/spark/test_source.py, tests/spark/test_source.py
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

from tablewright.errors import InvalidRequest, TableNotFound, UnsupportedFeature
from tablewright.spark.options import of_stream, read_options, write_options

if TYPE_CHECKING:
    from tablewright.spark.places import Pin
    from tablewright.spark.reader import TableReader
    from tablewright.spark.stream_reader import TableStreamReader
    from tablewright.spark.stream_writer import TableStreamWriter
    from tablewright.spark.writer import TableWriter

__all__ = ["TablewrightSource"]


class TablewrightSource(DataSource):  # type: ignore[misc]  # pyspark is not followed
    """Lance tables by their path."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(dict(options))
        self._pin: Pin | None = None

    @classmethod
    def name(cls) -> str:
        """What ``format(…)`` takes."""
        return "tablewright"

    def schema(self) -> Any:
        """The columns that are read, in Spark's types; this decides the version."""
        if of_stream(self.options):
            return self._streams().stream_type(read_options(self.options, streams=True))
        # Spark imports this module in every session; what a table needs is imported when one is read.
        from tablewright.spark.reader import frame_type

        self._pin, struct = frame_type(read_options(self.options), self._pin)
        return struct

    def reader(self, schema: Any) -> TableReader:
        """The reader of a DataFrame. ``schema`` is that of :meth:`schema`, or the caller's."""
        # See schema.
        from tablewright.spark.reader import TableReader

        return TableReader(read_options(self.options), self._pin, schema)

    def writer(self, schema: Any, overwrite: bool) -> TableWriter:
        """The writer of a DataFrame: one version when all its partitions are written."""
        # See schema.
        from tablewright.spark.writer import TableWriter

        return TableWriter(write_options(self.options), schema, "overwrite" if overwrite else "append")

    def streamReader(self, schema: Any) -> TableStreamReader:
        """The reader of a stream."""
        reader: TableStreamReader = self._streams().TableStreamReader(read_options(self.options, streams=True), schema)
        return reader

    def _streams(self) -> Any:
        try:
            # See schema.
            from tablewright.spark import stream_reader
        except ImportError as error:
            raise UnsupportedFeature(f"Streams of tables need PySpark 4.2 or newer: {error}.") from error
        return stream_reader

    def streamWriter(self, schema: Any, overwrite: bool) -> TableStreamWriter:
        """The writer of a stream: a version for each batch, once."""
        # See schema.
        from tablewright.spark.stream_writer import TableStreamWriter

        if overwrite:
            raise InvalidRequest(
                'A stream is written in output mode append: outputMode("complete") would replace the table with every '
                "batch. For upserts give foreachBatch the function that tablewright.stream_upsert returns."
            )
        return TableStreamWriter(write_options(self.options, streams=True), schema)

    def __getstate__(self) -> dict[str, Any]:
        """Where the caller gave the schema, the version is decided when Spark sends the source on."""
        if self._pin is None:
            self._pin = self._decided()
        return self.__dict__

    def _decided(self) -> Pin | None:
        # See schema.
        from tablewright.spark.places import pin_of

        try:
            return pin_of(read_options(self.options))
        except (TableNotFound, InvalidRequest):
            return None  # it may be there to be written; otherwise the reader says what is wrong

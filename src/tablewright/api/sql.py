"""``ds.sql(query)``: a SELECT over one version of a table, run by DataFusion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset as pads

from tablewright.checks import check_text
from tablewright.errors import InvalidRequest, TablewrightError
from tablewright.expressions.engine import plain_message

__all__ = ["Queryable", "SqlQuery", "SqlQueryBuilder"]

_HOW = ("batch_size", "blob_handling")


class Scannable(Protocol):
    """What a query reads: a dataset, or one of its fragments."""

    def scanner(self, *arguments: Any, **options: Any) -> Any:
        """A scan with a projection and a filter."""


class Queryable(Scannable, Protocol):
    """A dataset, as far as a query needs it."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""

    def get_fragments(self) -> Sequence[Scannable]:
        """The parts that are read in parallel."""


class SqlQueryBuilder:
    """Choices before a query runs.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset({"id": [1, 2, 3]}, "memory://sql-example")
    >>> ds.sql("SELECT sum(id) AS total FROM dataset").build().to_batch_records()[0].to_pydict()
    {'total': [6]}
    """

    def __init__(self, dataset: Queryable, query: str) -> None:
        self._dataset, self._query = dataset, check_text(query, "the query")
        self._name, self._options = "dataset", dict[str, Any]()

    def table_name(self, table_name: str) -> SqlQueryBuilder:
        """The name that the query calls the table by."""
        self._name = table_name
        return self

    def with_row_id(self, with_row_id: bool = True) -> SqlQueryBuilder:
        """Offer the column ``_rowid`` to the query."""
        self._options["with_row_id"] = with_row_id
        return self

    def with_row_addr(self, with_row_addr: bool = True) -> SqlQueryBuilder:
        """Offer the column ``_rowaddr`` to the query."""
        self._options["with_row_address"] = with_row_addr
        return self

    def batch_size(self, batch_size: int) -> SqlQueryBuilder:
        """Rows per batch that the query reads."""
        self._options["batch_size"] = batch_size
        return self

    def blob_handling(self, blob_handling: str) -> SqlQueryBuilder:
        """How the query sees blob columns: their descriptions, or with ``"all_binary"`` their bytes."""
        self._options["blob_handling"] = blob_handling
        return self

    def build(self) -> SqlQuery:
        """The query, ready to run."""
        return SqlQuery(self._dataset, self._query, self._name, self._options)


class SqlQuery:
    """A query, ready to run."""

    def __init__(self, dataset: Queryable, query: str, name: str, options: dict[str, Any]) -> None:
        self._dataset, self._query, self._name, self._options = dataset, query, name, options

    def _frame(self) -> Any:
        from datafusion import SessionContext, SQLOptions

        context = SessionContext()
        context.register_dataset(self._name, _Queried(self._dataset, self._options))
        queries_only = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
        with self._our_errors():
            return context.sql_with_options(self._query, queries_only)

    @contextmanager
    def _our_errors(self) -> Iterator[None]:
        try:
            yield
        except TablewrightError:
            raise
        except Exception as error:  # DataFusion raises bare exceptions
            columns = ", ".join(self._dataset.schema.names)
            raise InvalidRequest(
                f"Bad SQL {self._query!r}: {plain_message(error)}. Columns of {self._name}: {columns}."
            ) from error

    def to_batch_records(self) -> list[pa.RecordBatch]:
        """The result in memory."""
        frame = self._frame()
        with self._our_errors():
            return list(frame.collect())

    def to_stream_reader(self) -> pa.RecordBatchReader:
        """The result as a stream."""
        frame = self._frame()

        def batches() -> Iterator[pa.RecordBatch]:
            with self._our_errors():
                yield from pa.RecordBatchReader.from_stream(frame)

        return pa.RecordBatchReader.from_batches(frame.schema(), batches())


class _Queried(pads.Dataset):
    """The dataset as DataFusion asks for it: it reads fragment by fragment, with a projection and an Arrow filter."""

    def __init__(self, dataset: Queryable, options: dict[str, Any]) -> None:
        self._dataset, self._options = dataset, options

    @property
    def schema(self) -> pa.Schema:
        schema: pa.Schema = self._dataset.scanner(**self._options).projected_schema
        return schema

    def _how(self) -> dict[str, Any]:
        return {name: value for name, value in self._options.items() if name in _HOW}

    def scanner(self, columns: Any = None, filter: Any = None, **asked: Any) -> Any:
        return self._dataset.scanner(columns=columns, filter=filter, **{**asked, **self._how()})

    def get_fragments(self, filter: Any = None) -> list[_Part]:
        return [_Part(fragment, self._how()) for fragment in self._dataset.get_fragments()]


class _Part:
    """One fragment of a queried dataset."""

    def __init__(self, fragment: Scannable, how: dict[str, Any]) -> None:
        self._fragment, self._how = fragment, how

    def scanner(self, schema: pa.Schema | None = None, **asked: Any) -> Any:
        return self._fragment.scanner(**{**asked, **self._how})

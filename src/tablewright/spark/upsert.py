"""``stream_upsert``: a function for ``foreachBatch`` that merges each batch of a stream into a table, exactly once.

After a crash Spark gives the last batch again. The merge commits the number of its batch with its rows, in one manifest
(:mod:`tablewright.transaction.stream_state`): a batch that the table has is skipped, before anything is computed. Where
two drivers run the same batch at the same time, the commit itself looks again.

Tests: tests/unit/spark/test_upsert.py, tests/spark/test_streams.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tablewright.api.dataset import LanceDataset, dataset
from tablewright.api.pinned import table_of
from tablewright.engine.detect import is_connect
from tablewright.engine.spark.session import active_session
from tablewright.errors import InvalidRequest
from tablewright.log import Log
from tablewright.operations.merge_insert.clauses import check_dedupe
from tablewright.transaction.stream_state import BatchCommitted, StreamBatch, check_new_batch

__all__ = ["stream_upsert"]

QUERY = "sql.streaming.queryId"  # Spark's own name of what it tells the thread of a stream
_NAMELESS = "This session does not say which query a batch belongs to: give stream_upsert a name, one for each stream."
_log = Log("stream")


def stream_upsert(
    table: str | Path | LanceDataset,
    on: str | Sequence[str],
    *,
    name: str | None = None,
    dedupe: str | None = None,
    optimize: str | None = None,
) -> Callable[[Any, int], None]:
    """A function for ``writeStream.foreachBatch``: rows with known keys are updated, others inserted, once per batch.

    ``on`` is the key. ``name`` names the stream in the table's config; without one it is the id of the running query,
    which its checkpoint keeps. Spark Connect does not tell that id, so it needs a name. ``dedupe`` (``"first"``,
    ``"last"``) says which of several rows of a batch with one key counts; otherwise they are an error.
    ``optimize="auto"`` keeps the table in good shape after each batch.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset([{"id": 1, "n": 1}], "memory://stream-upsert")
    >>> upsert = tw.stream_upsert(ds, on="id", name="numbers")
    >>> for _ in range(2):  # the same batch twice
    ...     upsert([{"id": 1, "n": 5}, {"id": 2, "n": 6}], 0)
    >>> tw.dataset("memory://stream-upsert").to_table().to_pydict(), tw.dataset("memory://stream-upsert").version
    ({'id': [1, 2], 'n': [5, 6]}, 2)
    """
    if optimize not in (None, "auto"):
        raise InvalidRequest(f'optimize must be None or "auto", got {optimize!r}.')
    if name is not None and (not isinstance(name, str) or not name):
        raise InvalidRequest(f"name must be text, got {name!r}.")
    if name is None and is_connect(active_session()):
        raise InvalidRequest(_NAMELESS)
    check_dedupe(dedupe)
    opened = table if isinstance(table, LanceDataset) else dataset(table)
    opened.merge_insert(on)  # a key that the table does not have is said at once

    def upsert(batch: Any, batch_id: int) -> None:
        ds = opened.checkout_version(opened.latest_version)
        query = _running_query(batch)
        if name is None and query is None:
            raise InvalidRequest(_NAMELESS)
        stream = StreamBatch(name=name or str(query), batch=batch_id, query=None if name is None else query)
        try:
            check_new_batch(table_of(ds).snapshot.manifest.config, stream.properties)
            merge = ds.merge_insert(on, dedupe=dedupe).when_matched_update_all().when_not_matched_insert_all()
            merge.transaction_properties(stream.properties).execute(batch)
        except BatchCommitted as error:
            _log.info("repeated", "%(table)s: %(error)s", table=ds.uri, error=error)
            return
        if optimize == "auto":
            ds.optimize.auto()

    return upsert


def _running_query(batch: Any) -> str | None:
    """The id of the query whose thread this is, if its session says."""
    session = getattr(batch, "sparkSession", None)
    if session is None or is_connect(session):
        return None
    found = session.sparkContext.getLocalProperty(QUERY)
    return None if found is None else str(found)

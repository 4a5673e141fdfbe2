"""A DataFrame without Spark: partitions whose write tasks run in this process, one after the other.

The part of a distributed write that the driver does is the real one (`tablewright.engine.spark.frames.gather_frame`):
marked files, rows that come back, partitions of both kinds. Only Spark's job is played here, and its tasks reach the
same store, so that faults hit them too. What a dying worker alone leaves behind is tested with Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest

from tablewright.api import write
from tablewright.engine.base import Outcome
from tablewright.engine.spark import frames, marks
from tablewright.engine.spark.engine import SparkEngine
from tablewright.engine.spark.worker import FewRows, few_rows
from tablewright.errors import TablewrightError
from tablewright.world import World

__all__ = ["Partitions", "set_up_partitions"]


@dataclass(frozen=True)
class Partitions:
    """Rows in partitions. Those of at most `few` bytes come back, the others are written by their task."""

    parts: tuple[pa.Table, ...]
    few: int


def set_up_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, in this test, `write_dataset` takes :class:`Partitions` for a DataFrame."""
    known = write.is_spark_frame
    monkeypatch.setattr(write, "is_spark_frame", lambda data: isinstance(data, Partitions) or known(data))
    monkeypatch.setattr(write, "incoming_schema", lambda data, schema: schema or data.parts[0].schema)
    monkeypatch.setattr(write, "frame_engine", lambda frame: SparkEngine(object()))
    for module in (write, frames):
        monkeypatch.setattr(module, "require_shared", lambda location: None)
    monkeypatch.setattr(frames, "_by_position", lambda frame, schema: frame)
    monkeypatch.setattr(frames, "_is_on_driver", lambda frame, bytes_max: False)
    monkeypatch.setattr(frames, "_outcomes", _outcomes)
    monkeypatch.setattr(frames.WorldAddress, "of", lambda world, mark: replace(world, ids=mark.ids))
    monkeypatch.setattr(marks, "QUIET_SECONDS", 0.0)


def _outcomes(
    frame: Partitions, columns: Any, run: Any, world: World, schema: pa.Schema, few_bytes: int, describe: str
) -> list[Outcome[Any]]:
    """Every task runs, also after one failed, as Spark's do: each ends with a result or an error."""
    return [_outcome(run, world, part.to_batches(), min(frame.few, few_bytes)) for part in frame.parts]


def _outcome(
    run: Callable[[Iterator[pa.RecordBatch], World], Any], world: World, rows: list[pa.RecordBatch], few_bytes: int
) -> Outcome[Any]:
    first, rest = few_rows(iter(rows), few_bytes)
    if rest is None:
        return Outcome(result=FewRows(first))
    try:
        return Outcome(result=run(chain(first, rest), world))
    except TablewrightError as error:
        return Outcome(error=error)

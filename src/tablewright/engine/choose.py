"""Which engine runs a piece of work, and why, as a sentence that ``explain`` prints. The first that holds decides:

1. The work can't leave this process: its table is in memory, or the caller names another reason.
2. The caller asked for an engine: ``"local"``, ``"spark"``, a Spark session, or an engine.
3. The input is a Spark DataFrame: it stays in Spark.
4. The bytes that the plan will read and write: small work stays on threads (a point delete must not wait for a JVM),
   large work goes to Spark. The threshold is lower where a session is active already.

Nothing starts here: an embedded session begins with the first task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tablewright.engine.base import Engine, FrameEngine
from tablewright.engine.detect import is_spark_session
from tablewright.engine.local import LocalEngine
from tablewright.engine.spark.engine import SparkEngine
from tablewright.engine.spark.java import find_java
from tablewright.engine.spark.payload import dump
from tablewright.engine.spark.session import active_session
from tablewright.errors import InvalidRequest
from tablewright.storage.base import Location

__all__ = ["Choice", "Thresholds", "choose_engine", "frame_engine", "why_not"]

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Work of at least this many bytes goes to Spark."""

    active_bytes: int = 64 * MIB
    embedded_bytes: int = 256 * MIB


class Choice(NamedTuple):
    """An engine and the reason for it: ``engine, why = choose_engine(…)``."""

    engine: Engine
    why: str


def choose_engine(
    estimated_bytes: int,
    engine: Any = None,
    *,
    spark: Any = None,
    location: Location | None = None,
    stays_here: str | None = None,
    tasks: int | None = None,
    thresholds: Thresholds | None = None,
) -> Choice:
    """Choose where work of ``estimated_bytes`` (read plus written) runs.

    ``engine`` is ``None`` (decide by bytes), ``"local"``, ``"spark"``, a Spark session, or an :class:`Engine`.
    ``spark`` is the session that the input comes from, if it is a Spark DataFrame. ``location`` is that of the table;
    ``stays_here`` is a reason why the work can't go to other processes; ``tasks`` is how many it consists of, if known.

    >>> choose_engine(10_000, "local").why
    'engine="local" was asked for'
    >>> choose_engine(10_000, "spark", location=Location("memory://table")).why
    'the table lives in this process'
    """
    if location is not None and location.is_of_this_process:
        stays_here = "the table lives in this process"
    if stays_here is not None:
        return Choice(LocalEngine(), stays_here)
    if engine is None and spark is None and tasks == 1:
        return Choice(LocalEngine(), "it is one task, which streams, and which more cores could not share")
    if engine is None:
        return _by_bytes(estimated_bytes, spark, thresholds or Thresholds())
    if is_spark_session(engine):
        return Choice(SparkEngine(engine), "a Spark session was given as engine")
    if isinstance(engine, str):
        if engine == "local":
            return Choice(LocalEngine(), 'engine="local" was asked for')
        if engine == "spark":
            return Choice(SparkEngine(spark or active_session()), 'engine="spark" was asked for')
    elif isinstance(engine, Engine):
        return Choice(engine, f"the {engine.name} engine was given")
    raise InvalidRequest(f'engine must be None, "local", "spark" or a Spark session, not {engine!r}.')


def frame_engine(engine: Any = None, spark: Any = None, frame: Any = None) -> FrameEngine:
    """The engine that reads and writes DataFrames: in the session of ``frame``, else the one that is given, else the
    active one, else an embedded one, which starts when it is needed.

    ``engine`` and ``spark`` are what a caller gave under these names; a session or Spark engine among them counts.
    """
    if frame is not None:
        return SparkEngine(frame.sparkSession)
    if is_spark_session(engine):
        return SparkEngine(engine)
    return engine if spark is None and isinstance(engine, SparkEngine) else SparkEngine(spark)


def why_not(value: object) -> str | None:
    """Why a function or task can't be sent to a Spark worker; ``None`` if it can."""
    try:
        dump(value, "function")
    except InvalidRequest as error:
        return str(error)
    return None


def _by_bytes(estimated_bytes: int, spark: Any, thresholds: Thresholds) -> Choice:
    if spark is not None:
        return Choice(SparkEngine(spark), "the input is a Spark DataFrame")
    session = active_session()
    threshold = thresholds.embedded_bytes if session is None else thresholds.active_bytes
    where = "no Spark session is active" if session is None else "a Spark session is active"
    size, limit = _readable(estimated_bytes), _readable(threshold)
    if estimated_bytes < threshold:
        return Choice(LocalEngine(), f"about {size} of work, below the {limit} at which Spark pays off while {where}")
    if session is None and (missing := _missing_java()):
        return Choice(LocalEngine(), f"about {size} of work would go to Spark, but {missing}")
    return Choice(SparkEngine(session), f"about {size} of work, at or above {limit} while {where}")


def _missing_java() -> str | None:
    return None if find_java() else "no Java 17 or newer was found"


def _readable(size: int) -> str:
    """Bytes for people: ``64 MiB``, ``1.5 GiB``."""
    amount, unit = float(size), "bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:.3g} {unit}" if amount < 1000 else f"{amount:.0f} {unit}"

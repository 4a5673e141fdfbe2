"""Which engine runs a piece of work, and why, as a sentence that ``explain`` prints.

Asked for is asked for: ``"local"``, ``"spark"``, a Spark session, or an engine. Otherwise the bytes that the plan
will read and write decide: small work stays on threads (a point delete must not wait for a JVM), large work goes to
Spark. The threshold is lower where a session is alive already. Input that is a Spark DataFrame stays in Spark.
Nothing starts here: an embedded session begins with the first task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tablewright.engine.base import Engine
from tablewright.engine.detect import active_session, is_spark_session
from tablewright.engine.local import LocalEngine
from tablewright.errors import InvalidRequest

__all__ = ["Choice", "Thresholds", "choose_engine"]

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
    thresholds: Thresholds | None = None,
) -> Choice:
    """Choose where work of ``estimated_bytes`` (read plus written) runs.

    ``engine`` is ``None`` (decide by bytes), ``"local"``, ``"spark"``, a Spark session, or an :class:`Engine`.
    ``spark`` is the session that the input comes from, if it is a Spark DataFrame.

    >>> choose_engine(10_000, "local").why
    'engine="local" was asked for'
    """
    if engine is None:
        return _by_bytes(estimated_bytes, spark, thresholds or Thresholds())
    if is_spark_session(engine):
        return Choice(_spark_engine(engine), "a Spark session was given as engine")
    if isinstance(engine, str):
        if engine == "local":
            return Choice(LocalEngine(), 'engine="local" was asked for')
        if engine == "spark":
            return Choice(_spark_engine(spark or active_session()), 'engine="spark" was asked for')
    elif isinstance(engine, Engine):
        return Choice(engine, f"the {engine.name} engine was given")
    raise InvalidRequest(f'engine must be None, "local", "spark" or a Spark session, not {engine!r}.')


def _by_bytes(estimated_bytes: int, spark: Any, thresholds: Thresholds) -> Choice:
    if spark is not None:
        return Choice(_spark_engine(spark), "the input is a Spark DataFrame")
    session = active_session()
    threshold = thresholds.embedded_bytes if session is None else thresholds.active_bytes
    where = "no Spark session is active" if session is None else "a Spark session is active"
    size, limit = _readable(estimated_bytes), _readable(threshold)
    if estimated_bytes < threshold:
        return Choice(LocalEngine(), f"about {size} of work, below the {limit} at which Spark pays off while {where}")
    if session is None and (missing := _missing_java()):
        return Choice(LocalEngine(), f"about {size} of work would go to Spark, but {missing}")
    return Choice(_spark_engine(session), f"about {size} of work, at or above {limit} while {where}")


def _spark_engine(session: Any) -> Engine:
    from tablewright.engine.spark.engine import SparkEngine

    return SparkEngine(session)


def _missing_java() -> str | None:
    from tablewright.engine.spark.java import find_java

    return None if find_java() else "no Java 17 or newer was found"


def _readable(size: int) -> str:
    """Bytes for people: ``64 MiB``, ``1.5 GiB``."""
    amount, unit = float(size), "bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:.3g} {unit}" if amount < 1000 else f"{amount:.0f} {unit}"

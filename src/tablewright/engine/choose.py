"""Which engine runs a piece of work, and why, as a sentence that ``explain`` prints. The first that holds decides:

1. The work can't leave this process: its table is in memory, or the caller names another reason.
2. The caller asked for an engine: ``"local"``, ``"spark"``, a Spark session, or an engine.
3. It has to hold more at once than this process may take: Spark, which spills; an embedded session if none is active.
4. The time that each engine takes (:mod:`.costs`). Without a session Spark has to be faster with its start counted.
   With one, Spark gets what it does faster, and bulk work unless it is more than 1.3 times slower: there people
   watch, limit and cancel it.

Nothing starts here: an embedded session begins with the first task.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tablewright.engine.base import Engine, FrameEngine
from tablewright.engine.costs import COSTS, Cores, Costs, Workload, one_thread_seconds, seconds_for
from tablewright.engine.detect import is_spark_session
from tablewright.engine.flow import default_threads
from tablewright.engine.local import LocalEngine
from tablewright.engine.memory import available_bytes
from tablewright.engine.spark.engine import SparkEngine
from tablewright.engine.spark.java import find_java
from tablewright.engine.spark.payload import dump
from tablewright.engine.spark.session import active_session, is_running, session_cores
from tablewright.errors import InvalidRequest
from tablewright.storage.base import Location

__all__ = ["Choice", "choose_engine", "frame_engine", "wants_spark", "why_not"]

_HELD_BYTES_MIN = 64 << 20  # for less the system is not asked how much memory there is


class Choice(NamedTuple):
    """An engine and the reason for it: ``engine, why = choose_engine(…)``."""

    engine: Engine
    why: str


def choose_engine(
    work: Workload,
    engine: Any = None,
    *,
    spark: Any = None,
    location: Location | None = None,
    stays_here: str | None = None,
    costs: Costs = COSTS,
) -> Choice:
    """Choose where work runs.

    ``engine`` is ``None`` (decide by time and memory), ``"local"``, ``"spark"``, a Spark session, or an
    :class:`Engine`. ``spark`` is the session to use where Spark is chosen, by default the active one. ``location`` is
    that of the table; ``stays_here`` is a reason why the work can't go to other processes.

    >>> choose_engine(Workload(bytes_read=10_000), "local").why
    'engine="local" was asked for'
    >>> choose_engine(Workload(), "spark", location=Location("memory://table")).why
    'the table lives in this process'
    """
    if location is not None and location.is_of_this_process:
        stays_here = "the table lives in this process"
    if stays_here is not None:
        return Choice(LocalEngine(), stays_here)
    if engine is None:
        return _by_cost(work, spark, costs)
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


def wants_spark(engine: Any) -> bool:
    """Whether a caller asked for Spark: then also a small DataFrame is written by its executors.

    >>> wants_spark(None), wants_spark("local"), wants_spark("spark")
    (False, False, True)
    """
    return engine is not None and not choose_engine(Workload(), engine).engine.in_process


def why_not(value: object) -> str | None:
    """Why a function or task can't be sent to a Spark worker; ``None`` if it can."""
    try:
        dump(value, "function")
    except InvalidRequest as error:
        return str(error)
    return None


def _by_cost(work: Workload, spark: Any, costs: Costs) -> Choice:
    """Small work does not even ask which session is active: the JVM's answer would take longer than the work."""
    too_much = _more_than_fits(work, costs)
    seconds = one_thread_seconds(work, costs)
    if too_much is None and seconds < costs.job_seconds:  # one thread is done before a Spark job could be
        return Choice(LocalEngine(), _here_because(seconds, spark is not None or is_running(), costs))
    session = spark or active_session()
    choice = _judged(work, session, too_much, costs)
    if session is None and not choice.engine.in_process and (missing := _missing_java()):
        return Choice(LocalEngine(), f"it would go to Spark, but {missing}: {choice.why}")
    return choice


def _judged(work: Workload, session: Any, too_much: str | None, costs: Costs) -> Choice:
    """The engine that serves best, Java or not."""
    if too_much is not None:
        return Choice(SparkEngine(session), too_much)
    here = default_threads()
    cores = Cores(here=here, spark=here if session is None else session_cores(session), starts=session is None)
    seconds = seconds_for(work, cores, costs)
    ours = f"about {_readable_seconds(seconds.here)} on {_counted(here, 'thread')} here"
    theirs = f"{_readable_seconds(seconds.spark)} on {_counted(cores.spark, 'core')} of Spark"
    theirs += ", its start counted" if cores.starts else ""
    if seconds.spark < seconds.here:
        return Choice(SparkEngine(session), f"about {theirs}; {ours.removeprefix('about ')}")
    if session is None or seconds.here < costs.bulk_seconds:
        return Choice(LocalEngine(), f"{ours}, {theirs}")
    if seconds.spark > costs.slower_max * seconds.here:
        return Choice(LocalEngine(), f"{ours}, {theirs}, which is more than {costs.slower_max} times as long")
    return Choice(SparkEngine(session), f"bulk work, {ours}, {theirs}: there it can be watched, limited and cancelled")


def _here_because(seconds: float, has_session: bool, costs: Costs) -> str:
    """Why work that takes this long on one thread stays here."""
    here = _readable_seconds(seconds)
    if not has_session:
        return f"about {here} of work, and a Spark session takes {costs.start_seconds:g} s to start"
    return f"about {here} of work, and a Spark job takes {costs.job_seconds:g} s before it begins"


def _more_than_fits(work: Workload, costs: Costs) -> str | None:
    """What is to be said if this process can't hold what the work needs at once."""
    if work.held_bytes < _HELD_BYTES_MIN:
        return None
    available = available_bytes()
    if available is None or work.held_bytes <= costs.memory_share * available:
        return None
    limit = _readable(int(costs.memory_share * available))
    return f"it holds about {_readable(work.held_bytes)} at once, of {limit} that this process may take for it"


def _missing_java() -> str | None:
    return None if find_java() else "no Java 17 or newer was found"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _readable_seconds(seconds: float) -> str:
    """Seconds for people: ``3 ms``, ``1.2 s``, ``450 s``."""
    if seconds < 0.0995:
        return f"{max(1, round(seconds * 1000))} ms"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def _readable(size: int) -> str:
    """Bytes for people: ``64 MiB``, ``1.5 GiB``."""
    amount, unit = float(size), "bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:.3g} {unit}" if amount < 1000 else f"{amount:.0f} {unit}"

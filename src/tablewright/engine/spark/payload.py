"""What travels to Spark's workers: functions and tasks, pickled on the driver.

PySpark's ``cloudpickle`` is used, which also takes functions that are not importable by name. Tasks are pickled one by
one, so a worker unpickles only its own. Few and small payloads travel with the function; many or large ones as files
where the workers are on this machine (:mod:`.spool`), and elsewhere as a column, since every Spark task would otherwise
carry all of them; very many large ones in several jobs.

Tests: tests/spark/test_tasks.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from tablewright.engine.spark.spool import Spool, Spooled
from tablewright.errors import InvalidRequest

__all__ = ["distribute", "dump", "per_job"]

CARRIED_BYTES_MAX = 1 << 20
JOB_BYTES_MAX = 1 << 27


def dump(value: object, what: str) -> bytes:
    """Pickle for a worker; :class:`InvalidRequest` says what can't be pickled."""
    from pyspark import cloudpickle

    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        raise InvalidRequest(
            f"A {what} can't be sent to a Spark worker: {error}. A task must be picklable and free of open files, "
            "clients, locks and sessions."
        ) from error


def per_job(payloads: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Payloads that travel in one job: they pass through the driver's JVM, which may have little memory."""
    together: list[bytes] = []
    size = 0
    for payload in payloads:
        if together and size + len(payload) > JOB_BYTES_MAX:
            yield together
            together, size = [], 0
        together.append(payload)
        size += len(payload)
    if together:
        yield together


def distribute(
    spark: Any, payloads: Sequence[bytes], spool: Spool | None = None
) -> tuple[Any, Sequence[bytes | Spooled]]:
    """A DataFrame with one partition per payload, and the payloads that the function has to carry to all of them.

    Few and small payloads are carried, and so is where each is in the spool; without one they travel as a second
    column, each to its own partition only.
    """
    is_small = sum(map(len, payloads)) <= CARRIED_BYTES_MAX
    if is_small or spool is not None:
        carried = payloads if is_small or spool is None else spool.write(payloads)
        return spark.range(0, len(payloads), 1, max(1, len(payloads))), carried
    numbers = pa.array(range(len(payloads)), pa.int64())
    frame = spark.createDataFrame(pa.table({"number": numbers, "payload": pa.array(payloads, pa.binary())}))
    number = frame["number"].cast("int")
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(len(payloads), number), ()
    return frame.repartitionByRange(len(payloads), number), ()  # PySpark 4.0: by a sample of the numbers

"""What a piece of work costs on each engine, in seconds. Pure: a plan's figures and a few measured constants.

A plan says how much it reads, writes and computes (:class:`Workload`). Both engines run the same tasks, so they share
the processor time; they differ in what comes on top:

- *here*: the processor time, divided by the threads that have a task. Rows in turns (keys that do not fit into memory
  together) are read once per turn.
- *Spark*: a job, its tasks, a start where no session is active; the same processor time and a little more, divided by
  the cores that have a task; rows of this process that workers have to find in storage first; keys that each worker
  prepares for itself; rows that are shuffled.

The constants come from ``python -m benchmarks engines`` and ``tasks`` on two cores: cells of the grid are kept with the
workloads of their stages, and with the processor time of this process, the JVM and the workers. Other processes ran
beside it, which adds to processor time too, so these are figures of one sitting, fitted by hand. In all 90 cells of
that grid the work stayed in this process: it says where Spark does not pay, and nothing was measured where it does.

- *Rates here*, from cells of 10 million rows of two numbers, where nothing else counts: a count with a filter (160 MB
  read, 0.09 to 0.13 s), a delete (80 MB, 0.12 to 0.15 s), new columns (160 MB read and written, 0.45 to 0.51 s), a
  write (160 MB, 0.27 s; 1 million rows with texts and vectors, 96 MB: 0.26 s). Within a third these are 1,500 MB/s
  read, 450 MB/s written, 6 ns per row. An update takes half as much again: its expression is not counted.
- *A task* that does nothing: the least of four jobs of 1,000 less that of 100, after 3,000 tasks (before, while the JVM
  compiles, it is two to four times as much), on a quiet machine: 6.5 ms by the clock on two cores, 6.0 ms of processor
  time. A job of one task took 0.07 s.
- *Spark*, from cells of 10 rows: 0.2 s for each job, once warm. The workers take as much as threads do (update of 10
  million rows: 0.6 and 0.7 s), the JVM 0.3 to 0.6 s for each job (at a load above 10), which is why small work takes
  several times the processor time there. ``spark_factor`` is a judgement.
- *Shared sources and shuffles*, from merges: 96 MB are written and read back in 0.4 s, and in 0.1 s where the workers
  are on this machine; keys of 10 million rows with 10 million take 7 s on two cores through Spark's shuffle, so 0.7 us
  for each row of either side, and 3 s through files of this machine; keys are prepared at 0.25 us each. The constants
  are those of workers elsewhere: on the cores of this machine threads are as fast in any case.
- *A start* took 13 s on a quiet machine, with the first task, and 8 to 11.5 s earlier; on a busy one 23 and 32 s.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["COSTS", "Cores", "Costs", "Seconds", "Workload", "one_thread_seconds", "seconds_for"]

_MB = 1_000_000
_TASK_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What a plan will do, as far as it knows: bytes in memory, rows that are looked at, and tasks.

    ``files``: how many data files are opened. ``tasks``: how many parts it has, ``None`` if that is not known;
    ``uses_threads``: each of them is shared by several threads. ``threads_max``: how many parts may run at once in this
    process. ``held_bytes``: what this process has to hold at once if it does the work. ``shipped_bytes``: rows in this
    process that workers would have to find in storage. ``prepared_rows``: rows that each worker prepares for itself.
    ``shuffled_rows``: rows that Spark brings together by key, where this process takes ``turns`` instead.

    >>> Workload(bytes_read=200 << 20).task_count
    4
    """

    bytes_read: int = 0
    bytes_written: int = 0
    rows: int = 0
    files: int = 0
    tasks: int | None = None
    uses_threads: bool = False
    threads_max: int | None = None
    held_bytes: int = 0
    shipped_bytes: int = 0
    prepared_rows: int = 0
    shuffled_rows: int = 0
    turns: int = 1

    @property
    def task_count(self) -> int:
        """How many tasks there are; if it is not known, one for some 64 MiB."""
        size = self.bytes_read + self.bytes_written
        return max(1, -(-size // _TASK_BYTES)) if self.tasks is None else max(1, self.tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Measured constants, and the limits by which they decide.

    Rates are per core. ``start_seconds``: from nothing to the first task of an embedded session. ``job_seconds`` and
    ``task_seconds``: what Spark takes for a job and for a task that do nothing. ``spark_factor``: how much longer the
    same task takes in a Spark worker. ``shipped_bytes_per_second``: rows written to storage and read back there.

    ``bulk_seconds``: work that takes longer counts as bulk, which goes to an active session if that takes at most
    ``slower_max`` times as long as here. ``memory_share``: how much of the memory that is available work may hold.
    """

    read_bytes_per_second: float = 1500 * _MB
    written_bytes_per_second: float = 450 * _MB
    row_seconds: float = 6e-9
    file_seconds: float = 0.4e-3
    start_seconds: float = 10.0
    job_seconds: float = 0.2
    task_seconds: float = 0.0065
    spark_factor: float = 1.1
    shipped_bytes_per_second: float = 250 * _MB
    prepared_row_seconds: float = 250e-9
    shuffled_row_seconds: float = 0.7e-6
    bulk_seconds: float = 1.0
    slower_max: float = 1.3
    memory_share: float = 0.5


COSTS = Costs()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cores:
    """How many tasks run at once: on threads here, and on Spark. ``starts``: no session is active yet."""

    here: int
    spark: int
    starts: bool = False


@dataclass(frozen=True, slots=True)
class Seconds:
    """What the same work takes here and on Spark."""

    here: float
    spark: float


def seconds_for(work: Workload, cores: Cores, costs: Costs = COSTS) -> Seconds:
    """What the work takes on each engine.

    >>> seconds = seconds_for(Workload(bytes_read=2 * 10**9, tasks=8), Cores(here=2, spark=8))
    >>> round(seconds.here, 2), round(seconds.spark, 2)
    (0.67, 0.39)
    """
    return Seconds(_here(work, cores, costs), _on_spark(work, cores, costs))


def one_thread_seconds(work: Workload, costs: Costs = COSTS) -> float:
    """What the work takes on one thread here.

    >>> round(one_thread_seconds(Workload(bytes_read=2 * 10**9, tasks=8)), 2)
    1.33
    """
    return work.turns * _processor_seconds(work, costs)


def _processor_seconds(work: Workload, costs: Costs) -> float:
    """What all tasks take together, on one core."""
    moved = work.bytes_read / costs.read_bytes_per_second + work.bytes_written / costs.written_bytes_per_second
    return moved + work.rows * costs.row_seconds + work.files * costs.file_seconds


def _busy(work: Workload, cores: Cores, most: int) -> int:
    """How many of so many cores have something to do."""
    return min(most, work.task_count * (cores.here if work.uses_threads else 1))


def _here(work: Workload, cores: Cores, costs: Costs) -> float:
    threads = _busy(work, cores, work.threads_max or cores.here)
    return work.turns * _processor_seconds(work, costs) / threads


def _on_spark(work: Workload, cores: Cores, costs: Costs) -> float:
    busy = _busy(work, cores, cores.spark)
    rounds = -(-work.task_count // cores.spark)
    begin = (costs.start_seconds if cores.starts else 0.0) + costs.job_seconds + rounds * costs.task_seconds
    moved = work.shipped_bytes / costs.shipped_bytes_per_second
    prepared = work.prepared_rows * costs.prepared_row_seconds
    shuffled = work.shuffled_rows * costs.shuffled_row_seconds / cores.spark
    return begin + moved + prepared + shuffled + costs.spark_factor * _processor_seconds(work, costs) / busy

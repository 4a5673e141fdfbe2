"""One Spark job, run so that a person can watch and stop it.

PySpark does not cancel a running job on Ctrl-C: the interrupt arrives, the job goes on, the next one queues after
it. So a job runs in a thread of its own under a tag of its own, and the calling thread waits for it:

1. the job's thread inherits the caller's properties (scheduler pool, job group, tags) and adds the tag;
2. the caller waits in small steps, which lets interrupts in, and asks for progress if it is shown;
3. an interrupt cancels all jobs with the tag, then goes on to the caller;
4. after a job that failed or was cancelled, the caller waits until its other tasks have ended too, so that whoever
   removes their files finds them. Spark reports the failure of a job while they still run.

Classic sessions cancel by ``SparkContext.cancelJobsWithTag`` (``interruptTag`` cancels nothing there), Connect
sessions by ``interruptTag``.

Tests: tests/spark/test_tasks.py, tests/spark/test_own_session.py
"""

from __future__ import annotations

import abc
import contextlib
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from tablewright.engine.detect import is_connect
from tablewright.engine.progress import Progress
from tablewright.errors import InternalError

__all__ = ["run_job"]

R = TypeVar("R")

WAIT_SECONDS = 0.1
CANCEL_PATIENCE_SECONDS = 5.0
TASKS_PATIENCE_SECONDS = 5.0


def run_job(spark: Any, action: Callable[[], R], *, describe: str = "", show: bool | None = None) -> R:
    """Run ``action``, which starts Spark jobs, and return its result. ``show`` overrides whether progress is drawn."""
    job: _Job[R] = _ConnectJob(spark, action) if is_connect(spark) else _ClassicJob(spark, action)
    with _plain_interrupts(), Progress(describe, show=show) as progress:
        try:
            job.start(progress)
            while not job.wait():
                if progress.shown:
                    job.report(progress)
        except BaseException:
            job.cancel()
            job.settle()
            raise
        if job.failed:
            job.settle()
    return job.result()


class _Job(abc.ABC, Generic[R]):
    """An action in its own thread, under its own tag."""

    def __init__(self, spark: Any, action: Callable[[], R]) -> None:
        self._spark, self._action = spark, action
        self._tag = f"tablewright-{uuid.uuid4().hex}"
        self._thread: threading.Thread
        self._results: list[R] = []
        self._error: BaseException | None = None

    def wait(self) -> bool:
        self._thread.join(WAIT_SECONDS)
        return not self._thread.is_alive()

    @property
    def failed(self) -> bool:
        """Whether it has ended with an error."""
        return self._error is not None

    def settle(self) -> None:
        """Wait until no task of the job runs, but not for ever: a task may sit in a call that can't be interrupted."""
        deadline = time.monotonic() + TASKS_PATIENCE_SECONDS
        with contextlib.suppress(Exception):  # a session may be stopped under us
            while self._is_running() and time.monotonic() < deadline:
                time.sleep(WAIT_SECONDS / 2)

    def result(self) -> R:
        if self._error is not None:
            raise self._error
        if not self._results:
            raise InternalError("A Spark job ended with neither a result nor an error.")
        return self._results[0]

    def cancel(self) -> None:
        with contextlib.suppress(Exception):
            self._cancel_tag()
        if self._thread.ident is not None:
            self._thread.join(CANCEL_PATIENCE_SECONDS)

    def _run(self) -> None:
        try:
            with self._tagged():
                self._results.append(self._action())
        except BaseException as error:
            self._error = error

    @abc.abstractmethod
    def start(self, progress: Progress) -> None:
        """Start the thread, as a child of the calling one."""

    @abc.abstractmethod
    def report(self, progress: Progress) -> None:
        """Tell how far the job is."""

    @abc.abstractmethod
    def _is_running(self) -> bool:
        """Whether tasks of the job still run, as far as can be known."""

    @abc.abstractmethod
    def _cancel_tag(self) -> None:
        """End all jobs that carry our tag."""

    @abc.abstractmethod
    def _tagged(self) -> contextlib.AbstractContextManager[None]:
        """Jobs begun inside carry our tag."""


class _ClassicJob(_Job[R]):
    def start(self, progress: Progress) -> None:
        from pyspark import InheritableThread

        self._thread = InheritableThread(self._run, name="tablewright-job", daemon=True)
        self._thread.start()

    def report(self, progress: Progress) -> None:
        """Tasks done of tasks known, over the stages of our jobs."""
        with contextlib.suppress(Exception):  # a session may end under us; the job itself will tell
            stages = [stage for job in self._jobs() for stage in self._stages(job)]
            done, total = sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)
            progress.update(done, total or None)

    def _jobs(self) -> list[Any]:
        """What Spark knows of the jobs with our tag."""
        context = self._spark.sparkContext
        found = map(context.statusTracker().getJobInfo, context._jsc.sc().statusTracker().getJobIdsForTag(self._tag))
        return [job for job in found if job]

    def _stages(self, job: Any) -> list[Any]:
        return [stage for stage in map(self._spark.sparkContext.statusTracker().getStageInfo, job.stageIds) if stage]

    def _is_running(self) -> bool:
        return any(
            job.status == "RUNNING" or any(stage.numActiveTasks for stage in self._stages(job)) for job in self._jobs()
        )

    def _cancel_tag(self) -> None:
        self._spark.sparkContext.cancelJobsWithTag(self._tag)

    @contextlib.contextmanager
    def _tagged(self) -> Iterator[None]:
        context = self._spark.sparkContext
        context.addJobTag(self._tag)
        try:
            yield
        finally:
            with contextlib.suppress(Exception):  # the session may have been stopped
                context.removeJobTag(self._tag)


class _ConnectJob(_Job[R]):
    def start(self, progress: Progress) -> None:
        self._user_tags = self._spark.getTags()
        self._progress = progress
        self._thread = threading.Thread(target=self._run, name="tablewright-job", daemon=True)
        self._thread.start()

    def report(self, progress: Progress) -> None:
        """Nothing to ask: a Connect server tells by itself."""

    def _told(self, stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        if stages:
            self._progress.update(
                sum(stage.num_completed_tasks for stage in stages), sum(stage.num_tasks for stage in stages)
            )

    def _is_running(self) -> bool:
        """A client can't ask for tasks."""
        return False

    def _cancel_tag(self) -> None:
        self._spark.interruptTag(self._tag)

    @contextlib.contextmanager
    def _tagged(self) -> Iterator[None]:
        for tag in {*self._user_tags, self._tag}:
            self._spark.addTag(tag)
        watched = self._progress.shown
        if watched:
            self._spark.registerProgressHandler(self._told)
        try:
            yield
        finally:
            if watched:
                self._spark.removeProgressHandler(self._told)


@contextlib.contextmanager
def _plain_interrupts() -> Iterator[None]:
    """Ctrl-C raises ``KeyboardInterrupt`` and nothing more: pyspark's own handler would cancel everybody's jobs."""
    before = signal.getsignal(signal.SIGINT)
    ours = threading.current_thread() is threading.main_thread()
    if not ours or not getattr(before, "__module__", "").startswith("pyspark"):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

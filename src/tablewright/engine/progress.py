"""Progress of long work, for people only.

A bar appears on standard error when that is a terminal, the work has lasted a second, and this is no CI machine;
otherwise nothing is ever printed, so pipes and logs stay clean. The work reports absolute numbers
(:meth:`Progress.update`); drawing happens in the bar's own thread. Of a stream, whose end is not known, the rows and
bytes so far are shown (:class:`RowProgress`).
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from tablewright.redact import redact

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import ProgressColumn, TaskID

__all__ = ["Progress", "RowProgress", "wanted"]

DELAY_SECONDS = 1.0


def wanted() -> bool:
    """True where a person looks at standard error: a terminal that understands more than lines, outside CI."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return terminal and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"


class Progress:
    """One bar, as a context manager: ``with Progress("Writing", total) as progress: progress.update(done)``.

    >>> with Progress("Writing", 3, show=False) as progress:
    ...     progress.update(1)
    ...     progress.visible
    False
    """

    def __init__(
        self,
        describe: str,
        total: int | None = None,
        *,
        show: bool | None = None,
        console: Console | None = None,
        delay_seconds: float | None = None,
    ) -> None:
        self._describe = describe or "Working"
        self._done, self._total, self._note = 0, total, ""
        self._show = wanted() if show is None else show
        self._console = console
        self._appears_at = time.monotonic() + (DELAY_SECONDS if delay_seconds is None else delay_seconds)
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    @property
    def shown(self) -> bool:
        """Whether a bar is, or will be, on the screen: if not, there is no need to count."""
        return self._show

    @property
    def visible(self) -> bool:
        """Whether the bar is on the screen now."""
        return self._bar is not None

    def __enter__(self) -> Self:
        if self._show:
            self._timer = threading.Timer(max(0.0, self._appears_at - time.monotonic()), self._appear)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._show = False
            bar, self._bar = self._bar, None
        if self._timer is not None:
            self._timer.cancel()
        if bar is not None:
            bar.stop()

    def update(self, done: int, total: int | None = None, note: str = "") -> None:
        """Set how many units are done, and of how many if that is better known now."""
        with self._lock:
            self._done, self._note = done, note
            self._total = self._total if total is None else total
            if self._bar is not None and self._task is not None:
                self._bar.update(self._task, completed=self._done, total=self._total, note=note)

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as Bar

        with self._lock:
            if not self._show:
                return
            self._bar = Bar(
                *self._columns(),
                console=self._console or Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(
                redact(self._describe), total=self._total, completed=self._done, note=self._note
            )
            self._bar.start()

    def _columns(self) -> list[ProgressColumn]:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

        return [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]


class RowProgress(Progress):
    """Rows and bytes of a stream as they are taken: ``with RowProgress("Writing") as progress: …``.

    >>> batch = pa.record_batch({"id": [1, 2]})
    >>> with RowProgress("Writing", show=False) as progress:
    ...     sum(each.num_rows for each in progress.counted([batch, batch]))
    4
    """

    def counted(self, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        """The same batches; each counts when the next one is asked for. Without a terminal nothing is counted."""
        return self._counted(batches) if self.shown else batches

    def _counted(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from rich.filesize import decimal

        rows = size = 0
        for batch in batches:
            yield batch
            rows, size = rows + batch.num_rows, size + batch.nbytes
            self.update(rows, note=decimal(size))

    def _columns(self) -> list[ProgressColumn]:
        from rich.progress import TextColumn, TimeElapsedColumn

        rows = "{task.completed:,.0f} rows, {task.fields[note]}"
        return [TextColumn("{task.description}"), TextColumn(rows), TimeElapsedColumn()]

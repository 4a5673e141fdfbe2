"""A fault at every storage call of the data source's commit and abort: ``df.write.format("tablewright")``.

A batch of ``writeStream`` is among the writes.

Partitions have written their files; then the writer's ``commit`` or ``abort`` runs in this process, without a JVM, on a
store that fails, loses a reply, crashes or lists too little at one call. Each time:

- a reader finds the old version or the new one, whole and once;
- a commit that returned is there; one that failed with anything but CommitUnknown is not there, and left no file;
- the abort that Spark calls after a commit that failed changes nothing;
- a commit that is called again makes no second version of its rows, and removes no file of the first;
- the next write works, and cleanup removes what is left.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructType
from tests.concurrency.scene import FAULTS, leftovers, one_thread, outcome_of
from tests.concurrency.stage import ADDRESS, copied, history, listing, makes_sense, new_store, numbers, on_stage, set_up
from tests.depth import stride

import tablewright as tw
from tablewright.errors import CommitUnknown, StorageError
from tablewright.spark.options import write_options
from tablewright.spark.stream_writer import StreamPart, TableStreamWriter
from tablewright.spark.writer import PlannedWrite, TableWriter, WrittenPart
from tablewright.storage import Store
from tablewright.testing import Call, FailBefore, Fault, FaultyStore, LoseReply, SimulatedCrash, at_call
from tablewright.world import World

FRAME = StructType().add("id", LongType()).add("s", StringType())
OLD, NEW = [0, 1, 2], [10, 11, 12, 13, 14, 15]
PARTS = ((10, 12), (12, 13), (13, 16))
Ending = BaseException | None


class Place:
    """Where writers open their table: a store that a test puts here, as if all processes reached it."""

    store: Store

    def world(self, *given: Any, **named: Any) -> World:
        return World(store=self.store)

    def open_store(self, *given: Any) -> Store:
        return self.store


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place()
    monkeypatch.setattr("tablewright.spark.places.open_world", made.world)
    monkeypatch.setattr("tablewright.engine.spark.worker.open_store", made.open_store)
    for module in ("engine.spark.worker", "spark.writer"):
        monkeypatch.setattr(f"tablewright.{module}.require_shared", lambda location: None)
    return made


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer is one thread, so that its calls come in one order, and waits for nothing."""
    set_up(monkeypatch)
    one_thread(monkeypatch)
    monkeypatch.setattr("tablewright.world.SystemClock.sleep", lambda clock, seconds: None)
    monkeypatch.setattr("tablewright.spark.stream_writer._running", lambda: ("query", "0"))


# ------------------------------------------------------------------------------------------------------------- writes
class BatchWriter:
    """The writer of a stream, for its batch 0."""

    _write: PlannedWrite

    def __init__(self) -> None:
        options = write_options({"path": ADDRESS, "checkpointLocation": "/checkpoint"}, streams=True)
        self._writer = pickle.loads(pickle.dumps(TableStreamWriter(options, FRAME)))

    def write(self, rows: Iterator[pa.RecordBatch]) -> StreamPart:
        part: StreamPart = self._writer.write(rows)
        assert part.write is not None
        self._write = part.write
        return part

    def commit(self, messages: list[StreamPart | None]) -> None:
        self._writer.commit(messages, 0)

    def abort(self, messages: list[StreamPart | None]) -> None:
        self._writer.abort(messages, 0)


Writer = TableWriter | BatchWriter
Written = tuple[Writer, tuple[WrittenPart, ...]]


def _planned(mode: str = "append", **options: str) -> TableWriter:
    """A writer as Spark sends it on."""
    return pickle.loads(pickle.dumps(TableWriter(write_options({"path": ADDRESS, **options}), FRAME, mode)))


def _parts(writer: Writer, *ranges: tuple[int, int]) -> tuple[WrittenPart, ...]:
    """The answers of partitions that hold these rows."""
    return tuple(writer.write(iter(numbers(*each).to_batches())) for each in ranges)


def _append() -> Written:
    writer = _planned()
    return writer, _parts(writer, *PARTS)


def _overwrite() -> Written:
    writer = _planned("overwrite")
    return writer, _parts(writer, *PARTS)


def _retried() -> Written:
    """A partition was tried twice: the files of its first attempt go after the commit."""
    writer = _planned(max_rows_per_file="2")
    _parts(writer, PARTS[-1])
    parts = _parts(writer, *PARTS)
    return writer, (*parts[:-1], replace(parts[-1], retried=True))


def _after_a_cast() -> Written:
    """A column was cast meanwhile: the commit writes the rows again."""
    writer, parts = _append()
    tw.dataset(ADDRESS).alter_columns({"path": "id", "data_type": pa.int32()})
    return writer, parts


def _after_an_append() -> Written:
    """Another writer came first."""
    writer, parts = _append()
    tw.dataset(ADDRESS).insert(numbers(5, 6))
    return writer, parts


def _batch() -> Written:
    writer = BatchWriter()
    return writer, _parts(writer, *PARTS)


WRITES: dict[str, tuple[Callable[[], Written], list[list[int]], list[int]]] = {
    "append": (_append, [OLD], [*OLD, *NEW]),
    "create": (_append, [], NEW),
    "overwrite": (_overwrite, [OLD], NEW),
    "a partition that was tried twice": (_retried, [OLD], [*OLD, *NEW]),
    "after a cast": (_after_a_cast, [OLD, OLD], [*OLD, *NEW]),
    "a batch of a stream": (_batch, [OLD], [*OLD, *NEW]),
    "after another writer": (_after_an_append, [OLD, [*OLD, 5]], [*OLD, 5, *NEW]),
}
"""By name: what writes the files, the ids in every version before the commit, and those in the version it makes."""


@dataclass(frozen=True)
class Case:
    """A write before its commit. ``store`` has the files of its partitions, ``objects`` are all others."""

    place: Place
    writer: Writer
    parts: tuple[WrittenPart, ...]
    store: Store
    objects: frozenset[str]
    before: list[list[int]]
    after: list[list[int]]

    @classmethod
    def of(cls, name: str, place: Place) -> Case:
        write, before, newest = WRITES[name]
        place.store = new_store()
        if before:
            on_stage(place.store, lambda: tw.write_dataset(numbers(0, 3), ADDRESS))
        writer, parts = on_stage(place.store, write, seed=1)
        mark = writer._write.address.mark
        objects = frozenset(path for path in listing(place.store) if not mark.is_in(path))
        return cls(place, writer, parts, place.store, objects, before, [*before, newest])

    def commit(self) -> None:
        self.writer.commit(pickle.loads(pickle.dumps(list(self.parts))))

    def abort(self, *, commit_failed: bool = False) -> None:
        """Spark's call after the commit failed, or after the last partition did."""
        self.writer.abort([*self.parts] if commit_failed else [*self.parts[:-1], None])

    def faults(self, act: Callable[[], None], step: int) -> Iterator[tuple[Call, Fault, Store, Ending]]:
        """Every fault at every call of ``act``, in CI one of ``step``: also the store after it, and how it ended."""
        recording = FaultyStore(copied(self.store))
        assert self.outcome(recording, act) is None
        points = [(call, fault) for call in recording.calls for fault in FAULTS if makes_sense(fault, call)]
        for call, fault in points[:: stride(step)]:
            store = copied(self.store)
            yield call, fault, store, self.outcome(FaultyStore(store, at_call(call.index, fault)), act)

    def outcome(self, store: Store, act: Callable[[], None]) -> Ending:
        """How ``act`` ends where the writer opens ``store``."""
        self.place.store = store
        return outcome_of(store, act)

    def written_again(self, store: Store, where: str) -> None:
        """The next write works, and cleanup removes what no version names."""
        found = history(store)

        def write() -> None:
            writer = _planned()
            writer.commit(list(_parts(writer, (20, 22))))

        assert self.outcome(store, write) is None, where
        expected = [*found, [*(found[-1] if found else []), 20, 21]]
        assert history(store) == expected, where
        clean_up = lambda: tw.dataset(ADDRESS).cleanup_old_versions(retain_versions=1000, delete_unverified=True)  # noqa: E731
        on_stage(store, clean_up)
        assert not leftovers(store), where
        assert history(store) == expected, where


# ------------------------------------------------------------------------------------------------------------- commits
@pytest.mark.slow
@pytest.mark.parametrize("name", WRITES)
def test_a_fault_at_every_call_of_a_commit(name: str, place: Place) -> None:
    case, endings = Case.of(name, place), set[type[BaseException] | None]()
    for call, fault, store, error in case.faults(case.commit, 7):
        where = f"{fault} at {call}: {error!r}"
        endings.add(None if error is None else type(error))
        _judge(case, store, error, where, stays=call.method in ("delete", "list"))
        if error is not None and not isinstance(error, SimulatedCrash):
            left = listing(store)
            assert case.outcome(store, lambda: case.abort(commit_failed=True)) is None
            assert listing(store) == left, where
        case.written_again(store, where)
    assert {None, SimulatedCrash, StorageError} <= endings


def _judge(case: Case, store: Store, error: Ending, where: str, *, stays: bool) -> None:
    """What a reader may find. ``stays``: the fault hit the search for files to remove, or a removal."""
    found = history(store)
    assert found in (case.before, case.after), where
    assert case.objects <= listing(store), f"{where}: files of older versions are gone"
    if error is None:
        assert found == case.after, where
        assert stays or not leftovers(store), where
    elif not isinstance(error, SimulatedCrash | CommitUnknown):
        assert found == case.before, where
        assert stays or listing(store) <= case.objects, where


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITES)
def test_a_commit_that_is_called_again(name: str, place: Place) -> None:
    """Rows that are there are there once. Else it commits them, or fails where the first call had joined files.

    After a failure that is certain there is no second call: the files are removed.
    """
    case = Case.of(name, place)
    for call, fault, store, error in case.faults(case.commit, 5):
        if error is None or isinstance(error, SimulatedCrash | CommitUnknown):
            where, found = f"{fault} at {call}: {error!r}", history(store)
            again = case.outcome(store, case.commit)
            assert history(store) == (case.after if again is None else case.before), f"{where}, then {again!r}"
            assert again is None or found == case.before, where


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("second", [FailBefore(), LoseReply()], ids=["fails", "loses a reply"])
def test_a_commit_that_is_called_again_and_fails(name: str, second: Fault, place: Place) -> None:
    """The first call was silenced after its version was made; whatever the second meets, that version stays whole."""
    case = Case.of(name, place)
    silenced = copied(case.store)
    assert isinstance(case.outcome(FaultyStore(silenced, _silent()), case.commit), CommitUnknown)
    assert history(silenced) == case.after
    recording = FaultyStore(copied(silenced))
    assert case.outcome(recording, case.commit) is None
    assert history(recording.inner) == case.after
    for call in recording.calls[:: stride(2)]:
        store = copied(silenced)
        case.outcome(FaultyStore(store, at_call(call.index, second)), case.commit)
        assert history(store) == case.after, f"{second} at {call}"


def _silent() -> Callable[[Call], Fault | None]:
    """From the creation of a version on, no call about versions is answered."""
    silent = False

    def plan(call: Call) -> Fault | None:
        nonlocal silent
        silent = silent or (call.method == "put_if_absent" and call.path.startswith("_versions"))
        return LoseReply() if silent and call.path.startswith("_versions") else None

    return plan


# -------------------------------------------------------------------------------------------------------------- aborts
@pytest.mark.slow
@pytest.mark.parametrize("name", WRITES)
def test_a_fault_at_every_call_of_an_abort(name: str, place: Place) -> None:
    """No version is made and none is harmed. The files are gone, or the fault kept them, and cleanup removes them."""
    case = Case.of(name, place)
    for call, fault, store, error in case.faults(case.abort, 3):
        where = f"{fault} at {call}: {error!r}"
        assert error is None or isinstance(error, SimulatedCrash), where
        assert history(store) == case.before, where
        assert case.objects <= listing(store), where
        case.written_again(store, where)


def test_an_abort_removes_the_files_of_every_partition(place: Place) -> None:
    for name in WRITES:
        case = Case.of(name, place)
        store = copied(case.store)
        assert listing(store) > case.objects
        assert case.outcome(store, case.abort) is None
        assert listing(store) == case.objects, name

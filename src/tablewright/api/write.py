"""From data in any form to a new version of a table: what ``write_dataset`` and ``insert`` do.

Data that this process holds is written here, as a stream. A Spark DataFrame is written by its executors, unless it is
small and comes back; the driver makes the one commit.

Tests: ``tests/unit/api/test_write.py``, ``tests/spark/test_frames.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from tablewright.api.ignored import tell_only_at_creation
from tablewright.api.inputs import as_schema, as_source
from tablewright.api.metadata import FragmentMetadata
from tablewright.api.pinned import Pinned, place_of
from tablewright.checks import check_callable
from tablewright.engine.base import COLLECTED_BYTES
from tablewright.engine.choose import Choice, frame_engine, wants_spark
from tablewright.engine.detect import check_session, is_spark_frame
from tablewright.engine.events import log_choice
from tablewright.engine.frames import incoming_schema
from tablewright.engine.local import LocalEngine
from tablewright.engine.progress import RowProgress
from tablewright.engine.shared import require_shared
from tablewright.errors import InvalidRequest, WrongType
from tablewright.format.fragment import Fragment
from tablewright.jobs.small_files import join_small_files
from tablewright.jobs.table import Table
from tablewright.jobs.write import RowWriter, WriteJob, latest_or_none
from tablewright.operations.write import COMMIT_MESSAGE_KEY, WritePlan, WriteSettings, plan_write, run_write
from tablewright.snapshot.snapshot import Snapshot
from tablewright.world import World

__all__ = ["properties_of", "write_files", "write_table"]


def write_table(
    data_obj: Any,
    uri: str | Path | World | Pinned,
    schema: pa.Schema | None,
    settings: WriteSettings,
    *,
    commit_lock: Callable[[int], Any] | None = None,
    progress: Any = None,
    storage_options: Mapping[str, str] | None = None,
    properties: Mapping[str, str],
    engine: Any = None,
    spark: Any = None,
) -> Table:
    """Write data to a table, and return it at its new version."""
    check_session(spark)
    check_callable(commit_lock, "commit_lock", "a function of the version that returns a context manager")
    if progress is not None and not (hasattr(progress, "begin") and hasattr(progress, "complete")):
        raise WrongType(f"progress must have the methods begin and complete, got {progress!r}.")
    given, world = place_of(uri, storage_options)
    base = None if given is None else given.snapshot
    if base is None and settings.mode == "append" and _has_no_types(data_obj):
        base = latest_or_none(world)  # its schema gives the rows their types; it is read once
    incoming, write = _incoming(data_obj, schema, world, base, settings.mode, engine, progress)
    job = WriteJob(
        world=world, settings=settings, incoming=incoming, write=write, properties=properties, lock=commit_lock
    )
    base = job.base_for(base)
    plan = job.plan(base)
    if base is not None:
        tell_only_at_creation(settings, base)
    snapshot = job.run(base, plan)
    return Table(snapshot, engine, spark) if given is None else given.at(snapshot)


def write_files(
    data_obj: Any,
    world: World,
    snapshot: Snapshot | None,
    schema: pa.Schema | None,
    settings: WriteSettings,
    progress: Any = None,
) -> tuple[WritePlan, tuple[Fragment, ...]]:
    """Write data files without committing them: for people who distribute the work themselves."""
    incoming, write = _incoming(data_obj, schema, world, None, settings.mode, progress=progress)
    plan = plan_write(snapshot, world.store.location.uri, incoming, settings)
    return plan, tuple(write(plan))


def _incoming(
    data: Any,
    schema: pa.Schema | None,
    world: World,
    given: Snapshot | None,
    mode: str,
    engine: Any = None,
    progress: Any = None,
) -> tuple[pa.Schema, RowWriter]:
    """The schema of the data, and how its files get written: by Spark's executors, if it is a DataFrame, or here.

    Rows that this process has would go through the JVM to get to workers, which takes seven times the processor time
    of writing them. So they are written here whichever engine is asked for.
    """
    schema, collects = as_schema(schema), not wants_spark(engine)
    if is_spark_frame(data):
        return _of_frame(data, incoming_schema(data, schema), world, collects=collects)
    source = as_source(data, schema, _known_schema(world, given, mode) if _has_no_types(data) else None)
    reported = None if progress is None else _Progress(progress)

    def write(plan: WritePlan) -> tuple[Fragment, ...]:
        log_choice(f"Writing {plan.uri}", Choice(LocalEngine(), "the rows are in this process, and stream"))
        with RowProgress(f"Writing {plan.uri}") as shown:
            batches, in_memory = shown.counted(source.batches), source.nbytes is not None
            return run_write(plan, batches, world, reported, in_memory=in_memory)

    return source.schema, write


def _has_no_types(data: Any) -> bool:
    """Python values: those that have no Arrow type of their own take that of the table."""
    return isinstance(data, dict | list)


def _of_frame(frame: Any, incoming: pa.Schema, world: World, *, collects: bool) -> tuple[pa.Schema, RowWriter]:
    engine = frame_engine(frame=frame)
    require_shared(world.store.location)  # before anything is planned

    def write(plan: WritePlan) -> list[Fragment]:
        columns, describe = plan.columns.to_arrow(), f"Writing {plan.uri}"
        most = COLLECTED_BYTES if collects and not _has_dictionaries(plan) else 0
        part = partial(_write_part, plan)
        written = engine.gather_frame(frame, part, world, columns, describe=describe, bytes_max=most)
        if written.rows is not None:
            log_choice(describe, Choice(LocalEngine(), "the DataFrame is small, and its rows were collected"))
            return list(run_write(plan, written.rows.to_batches(), world, in_memory=True))
        log_choice(describe, Choice(engine, "the rows are in a Spark DataFrame"))
        return join_small_files(plan, [fragment for part in written.results for fragment in part], world, engine)

    return incoming, write


def _has_dictionaries(plan: WritePlan) -> bool:
    """Whether a column is a dictionary: those of all partitions may have more values than their indices count."""
    return any(node.logical_type.startswith("dict:") for node in plan.columns.fields)


def _write_part(plan: WritePlan, batches: Iterator[pa.RecordBatch], world: World) -> tuple[Fragment, ...]:
    """On a worker: the rows of one partition."""
    return run_write(plan, batches, world)


def _known_schema(world: World, given: Snapshot | None, mode: str) -> pa.Schema | None:
    """The table's own schema, if rows are appended to it."""
    if mode != "append":
        return None
    snapshot = latest_or_none(world) if given is None else given
    return None if snapshot is None else snapshot.schema.to_arrow()


def properties_of(message: str | None, properties: Mapping[str, str] | None) -> dict[str, str]:
    """Transaction properties with the commit message among them."""
    if properties is not None and not isinstance(properties, Mapping):
        raise InvalidRequest(f"transaction_properties is a dict of texts, not {properties!r}.")
    merged = dict(properties or {})
    wrong = {key: value for key, value in merged.items() if not isinstance(key, str) or not isinstance(value, str)}
    if wrong or not isinstance(message, str | None):
        raise InvalidRequest(f"commit_message and transaction_properties must be text, got {wrong or message!r}.")
    if message is not None:
        if merged.get(COMMIT_MESSAGE_KEY, message) != message:
            raise InvalidRequest(
                f"commit_message and transaction_properties[{COMMIT_MESSAGE_KEY!r}] contradict each other."
            )
        merged[COMMIT_MESSAGE_KEY] = message
    return merged


class _Progress:
    """Tells pylance's ``FragmentWriteProgress`` object about every fragment, in its own words."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress

    def begin(self, fragment: Fragment) -> None:
        self._progress.begin(FragmentMetadata.of(fragment))

    def complete(self, fragment: Fragment) -> None:
        self._progress.complete(FragmentMetadata.of(fragment))

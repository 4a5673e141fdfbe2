"""A checkpoint: what a function has computed so far, in a SQLite file, so that a run that died goes on where it was.

=========  ====================================================================================================
made_for   what the checkpoint belongs to: table, columns read, columns made. Another use of it is refused.
windows    values of a window of physical rows (:mod:`.read`), with the offsets of the rows they belong to.
           Rows deleted since then are left out; rows that are new to a window make it unknown.
files      finished column files, in the table's data directory already; their windows are forgotten.
=========  ====================================================================================================

Windows and files carry the :class:`~.keep.Inputs` that they were computed from, and count only while these are
what the fragment has. Field ids are stored by position: they are given when the columns are committed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tablewright.errors import InvalidRequest, StorageError, TablewrightError
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.naming import data_path
from tablewright.format.schema import Schema
from tablewright.operations.columns.keep import Inputs
from tablewright.operations.columns.plan import ColumnsPlan, ColumnsResult, ColumnsTask, ColumnsWork
from tablewright.operations.columns.read import Window
from tablewright.world import World

__all__ = ["Checkpoint", "CheckpointedWork"]

_TABLES = """
CREATE TABLE IF NOT EXISTS made_for (what TEXT);
CREATE TABLE IF NOT EXISTS windows
    (fragment INT, inputs TEXT, start INT, stop INT, offsets BLOB, result BLOB, PRIMARY KEY (fragment, start, stop));
CREATE TABLE IF NOT EXISTS files (fragment INT PRIMARY KEY, inputs TEXT, deleted_rows INT, file TEXT);
"""
_FILE_FACTS = ("path", "column_indices", "file_major_version", "file_minor_version", "file_size_bytes")


class Checkpoint:
    """An open checkpoint file, of one process at a time."""

    def __init__(self, path: str | Path, plan: ColumnsPlan) -> None:
        self._path = Path(path)
        self._schema = plan.written.to_arrow().remove_metadata()
        with self._speaking():
            self._connection = sqlite3.connect(self._path, check_same_thread=False)
            self._connection.executescript(_TABLES)
            known = self._connection.execute("SELECT what FROM made_for").fetchone()
            if known is None:
                self._write("INSERT INTO made_for VALUES (?)", _made_for(plan))
        if known is not None and known[0] != _made_for(plan):
            self.close()
            raise InvalidRequest(
                f"The checkpoint file {self._path} was made for another table or other columns, {known[0]}; "
                f"this is {_made_for(plan)}. Name another file, or remove this one."
            )

    def window(self, window: Window, inputs: Inputs) -> pa.RecordBatch | None:
        """The values for the live rows of a window, if they are known."""
        with self._speaking():
            row = self._connection.execute(
                "SELECT offsets, result FROM windows WHERE fragment = ? AND inputs = ? AND start = ? AND stop = ?",
                (window.fragment.id, _digest(inputs), window.start, window.stop),
            ).fetchone()
        if row is None:
            return None
        offsets, wanted = np.frombuffer(row[0], np.uint32), window.rows.offsets
        places = np.searchsorted(offsets, wanted).clip(max=len(offsets) - 1)
        if not np.array_equal(offsets[places], wanted):
            return None
        batch = pa.ipc.open_stream(row[1]).read_next_batch()
        return batch if len(wanted) == len(offsets) else batch.take(pa.array(places))

    def add_window(self, window: Window, inputs: Inputs, result: pa.RecordBatch) -> None:
        """Remember the values of a window."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, result.schema) as writer:
            writer.write_batch(result)
        self._write(
            "INSERT OR REPLACE INTO windows VALUES (?, ?, ?, ?, ?, ?)",
            window.fragment.id,
            _digest(inputs),
            window.start,
            window.stop,
            window.rows.offsets.astype(np.uint32).tobytes(),
            sink.getvalue().to_pybytes(),
        )

    def file(self, fragment: Fragment, inputs: Inputs, written: Schema) -> DataFile | None:
        """The finished file of a fragment, if there is one that is still right."""
        with self._speaking():
            row = self._connection.execute(
                "SELECT inputs, deleted_rows, file FROM files WHERE fragment = ?", (fragment.id,)
            ).fetchone()
        if row is None or row[0] != _digest(inputs) or row[1] > fragment.deleted_rows:
            return None
        facts = json.loads(row[2])
        ids = [field.id for field in written.fields]
        fields = tuple(ids[position] for position in facts.pop("fields"))
        return DataFile(**{**facts, "column_indices": tuple(facts["column_indices"])}, fields=fields)

    def add_file(self, fragment: Fragment, inputs: Inputs, file: DataFile, written: Schema) -> None:
        """Remember a finished file, and forget its windows."""
        positions = {field.id: position for position, field in enumerate(written.fields)}
        facts = {name: getattr(file, name) for name in _FILE_FACTS}
        text = json.dumps({**facts, "fields": [positions[id] for id in file.fields]})
        self._write(
            "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)",
            fragment.id,
            _digest(inputs),
            fragment.deleted_rows,
            text,
        )
        self._write("DELETE FROM windows WHERE fragment = ?", fragment.id)

    def close(self) -> None:
        """Leave it for the next run."""
        with suppress(sqlite3.Error):
            self._connection.close()

    def remove(self) -> None:
        """All is committed: it is no longer needed."""
        self.close()
        self._path.unlink(missing_ok=True)

    def _write(self, sql: str, *values: Any) -> None:
        with self._speaking(), self._connection:
            self._connection.execute(sql, values)

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _error_of(self._path, error) from error


@dataclass(frozen=True, slots=True)
class CheckpointedWork:
    """The work of a plan, with a checkpoint that is read first and written afterwards.

    ``reused`` gets the paths of files that an earlier run wrote.
    """

    work: ColumnsWork
    checkpoint: Checkpoint
    inputs: Mapping[int, Inputs]
    reused: set[str]

    def __call__(self, task: ColumnsTask, world: World) -> ColumnsResult:
        fragment, inputs = task.fragment, self.inputs[task.fragment.id]
        known = self.checkpoint.file(fragment, inputs, self.work.written)
        if known is not None and _exists(world, known):
            self.reused.add(known.path)
            return ColumnsResult(fragment_id=fragment.id, file=known)
        made = self.work.run(task, world, self._compute)
        self.checkpoint.add_file(fragment, inputs, made.file, self.work.written)
        return made

    def _compute(self, window: Window) -> pa.RecordBatch:
        inputs = self.inputs[window.fragment.id]
        known = self.checkpoint.window(window, inputs)
        if known is None:
            known = self.work.compute(window)
            self.checkpoint.add_window(window, inputs, known)
        return known


def _error_of(path: Path, error: sqlite3.Error) -> TablewrightError:
    """A place that is full or refuses is a storage error; one that is no file of ours is a wrong request."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return StorageError(
            f"Could not write the checkpoint file {path}: {error}. Free some space there, then run again."
        )
    is_refused = name.startswith("SQLITE_CANTOPEN") and _may_be_file(path)
    if is_refused or name.startswith(("SQLITE_READONLY", "SQLITE_PERM")):
        return StorageError(
            f"Could not open the checkpoint file {path} for writing: {error}. Check permissions and free space of its "
            "directory, or name a file in another one."
        )
    return InvalidRequest(f"The checkpoint file {path} can't be used: {error}.")


def _may_be_file(path: Path) -> bool:
    """Whether a file of this name may be made, as far as directories go: there is one to hold it, and none at it."""
    try:
        os.stat(path.parent / ".")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # it can't be seen: this is the refusal
        return True
    return not os.path.isdir(path)


def _exists(world: World, file: DataFile) -> bool:
    try:
        return world.store.head(data_path(file.path)).size == file.file_size_bytes
    except TablewrightError:
        return False


def _digest(inputs: Inputs) -> str:
    return hashlib.sha256(repr(inputs).encode()).hexdigest()


def _made_for(plan: ColumnsPlan) -> str:
    made = ", ".join(f"{field.name}: {field.type}" for field in plan.written.to_arrow())
    return f"{plan.location.uri} (columns read: {', '.join(plan.reads.names)}; columns made: {made})"

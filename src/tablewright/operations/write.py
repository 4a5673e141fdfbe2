"""Create, append, overwrite: the same steps with another transaction at the end.

1. *plan* (pure): which columns the new files hold under which field ids, in which file version. An append must fit the
   table's schema (``data/fit_types.py``; every difference is listed); it may leave out nullable columns, which then
   read as null.
2. *run*: batches become data files under names that no other writer uses, here or on Spark workers.
3. *finish* (pure): one Append or Overwrite transaction.

Where another writer cast a column of an append meanwhile, the rows are read back from the files that the append wrote,
cast the same way, and written again onto the newest schema (:func:`plan_again`, :func:`run_again`). A column that was
replaced by one of another kind is a :class:`~tablewright.errors.SchemaMismatch`.

Tests: ``tests/unit/api/test_write.py``, ``tests/differential/test_modes.py``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.types as at

from tablewright.checks import check_flag, whole_number
from tablewright.data.fit_types import refusal
from tablewright.data.read import read_fragment
from tablewright.data.task_context import TaskContext
from tablewright.data.write import WriteOptions, WriteProgress, write_fragments
from tablewright.errors import InvalidRequest, TableExists
from tablewright.expressions.casts import castable
from tablewright.format.flags import check_writable
from tablewright.format.fragment import Fragment
from tablewright.format.schema import Schema, check_file_version
from tablewright.format.transaction import Append, Overwrite, Transaction
from tablewright.operations.columns.cast import recast
from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.apply import Creation
from tablewright.world import World

__all__ = [
    "MODES",
    "WritePlan",
    "WriteSettings",
    "asked_file_version",
    "finish_write",
    "plan_again",
    "plan_write",
    "run_again",
    "run_write",
]

MODES = ("create", "append", "overwrite")

COMMIT_MESSAGE_KEY = "__lance_commit_message"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSettings:
    """What a caller of ``write_dataset`` may choose, with the defaults of pylance."""

    mode: str = "create"
    max_rows_per_file: int = 1024 * 1024
    max_bytes_per_file: int = 90 * 1024**3
    data_storage_version: str | None = None
    enable_stable_row_ids: bool = False
    enable_v2_manifest_paths: bool = True
    config: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidRequest(f"Invalid mode {self.mode!r}: use one of {', '.join(MODES)}.")
        for name in ("max_rows_per_file", "max_bytes_per_file"):
            whole_number(getattr(self, name), name, minimum=1)
        for name in ("enable_stable_row_ids", "enable_v2_manifest_paths"):
            check_flag(getattr(self, name), name)

    @property
    def file_version(self) -> str | None:
        """The data-file version asked for, by number; ``None`` for the default."""
        return asked_file_version(self.data_storage_version)

    @property
    def creation(self) -> Creation:
        """The choices that only a new table takes."""
        return Creation(
            stable_row_ids=self.enable_stable_row_ids,
            data_storage_version=self.file_version or DEFAULT_FILE_VERSION,
            config=self.config,
        )


DEFAULT_FILE_VERSION = "2.2"
_FILE_VERSIONS = {"stable": DEFAULT_FILE_VERSION, "next": "2.3", "2.0": "2.0", "2.1": "2.1", "2.2": "2.2", "2.3": "2.3"}


def asked_file_version(name: str | None) -> str | None:
    """The number of a data-file version that a caller names; ``None`` if it leaves that open. An unknown one raises."""
    if name is None:
        return None
    if name not in _FILE_VERSIONS:
        raise InvalidRequest(f"Unknown data_storage_version {name!r}: use one of {', '.join(_FILE_VERSIONS)}.")
    return _FILE_VERSIONS[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """A decided write: ``columns`` are what the new files hold, ``schema`` is the table's afterwards."""

    mode: str
    uri: str
    read_version: int
    schema: Schema
    columns: Schema
    options: WriteOptions

    @property
    def creates(self) -> bool:
        return self.read_version == 0

    def __str__(self) -> str:
        verb = "create" if self.creates else self.mode
        return (
            f"Write: {verb} {self.uri} at version {self.read_version}, {len(self.columns.top_level)} of "
            f"{len(self.schema.top_level)} columns, file version {self.options.data_storage_version}"
        )


def plan_write(snapshot: Snapshot | None, uri: str, incoming: pa.Schema, settings: WriteSettings) -> WritePlan:
    """Decide how ``incoming`` data enter the table (``snapshot`` is ``None`` where there is none)."""
    if snapshot is not None and settings.mode == "create":
        raise TableExists(uri)
    if snapshot is not None:
        check_writable(snapshot.manifest.writer_flags, uri)
    if snapshot is not None and settings.mode == "append":
        schema = snapshot.schema
        columns = _appended_columns(schema, incoming)
        version = snapshot.manifest.data_storage_version
    else:
        schema = columns = Schema.from_arrow(incoming)
        kept = None if snapshot is None else snapshot.manifest.data_storage_version
        version = settings.file_version or kept or DEFAULT_FILE_VERSION
    unreadable = [field.name for field in columns.top_level if not field.name or "`" in field.name]
    if unreadable:
        raise InvalidRequest(f"Column names {unreadable} can't be read back by Lance: use names without backticks.")
    problems = check_file_version(columns, version)
    if problems:
        raise InvalidRequest(f"File version {version} can't store these columns: " + "; ".join(problems))
    options = WriteOptions(
        max_rows_per_file=settings.max_rows_per_file,
        max_bytes_per_file=settings.max_bytes_per_file,
        data_storage_version=version,
    )
    read_version = 0 if snapshot is None else snapshot.version
    return WritePlan(
        mode=settings.mode, uri=uri, read_version=read_version, schema=schema, columns=columns, options=options
    )


def _appended_columns(schema: Schema, incoming: pa.Schema) -> Schema:
    if schema.is_arrow(incoming):
        return schema
    mismatch = refusal(schema, incoming)
    if mismatch is not None:
        raise mismatch
    return schema.project_ids(schema.node_ids(incoming.names))


def run_write(
    plan: WritePlan,
    batches: Iterable[pa.RecordBatch],
    world: World,
    progress: WriteProgress | None = None,
    *,
    in_memory: bool = False,
) -> tuple[Fragment, ...]:
    """Write data files for a stream of batches. If it fails, the files it made are removed.

    Batches that are ``in_memory``, and stay as they are, are not copied.
    """
    rows = batches if plan.columns.fields else _no_rows(batches)
    return write_fragments(world, plan.columns, rows, replace(plan.options, in_memory=in_memory), progress=progress)


def _no_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            raise InvalidRequest(f"{batch.num_rows} rows without columns can't be stored: the data has no columns.")
        yield batch


def plan_again(plan: WritePlan, newest: Snapshot, settings: WriteSettings) -> WritePlan:
    """The append onto a newer version: columns that were cast meanwhile are cast."""
    theirs = newest.schema.to_arrow()
    fields = [
        _cast_field(field, theirs.field(field.name)) if field.name in theirs.names else field
        for field in plan.columns.to_arrow()
    ]
    return plan_write(newest, plan.uri, pa.schema(fields), settings)


def _cast_field(ours: pa.Field, theirs: pa.Field) -> pa.Field:
    """Our column in their type, where a cast leads from one to the other; members of structs by their names."""
    if at.is_struct(ours.type) and at.is_struct(theirs.type):
        known = {member.name: member for member in theirs.type}
        members = [_cast_field(member, known[member.name]) if member.name in known else member for member in ours.type]
        return theirs.with_type(pa.struct(members))
    return theirs if castable(ours.type, theirs.type) else ours


def run_again(plan: WritePlan, before: WritePlan, fragments: Sequence[Fragment], world: World) -> tuple[Fragment, ...]:
    """Write the rows of uncommitted ``fragments``, which ``before`` made, as ``plan`` says."""
    by_name = {field.name: field.type for field in plan.columns.to_arrow()}
    context = TaskContext(world)

    def batches() -> Iterator[pa.RecordBatch]:
        for fragment in fragments:
            for batch in read_fragment(context, fragment, before.columns, before.columns):
                names = batch.schema.names
                arrays = [_recast(array, by_name[name], name) for array, name in zip(batch.columns, names, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, names)

    return run_write(plan, batches(), world)


def _recast(array: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    """Structs are cast member by member in their own order; writing puts the members in the table's."""
    if not at.is_struct(kind) or not isinstance(array, pa.StructArray):
        return recast(array, kind, name)
    known = {member.name: member for member in kind}
    members = [
        _recast(array.field(index), known[member.name].type, f"{name}.{member.name}")
        for index, member in enumerate(array.type)
    ]
    fields = [member.with_type(value.type) for member, value in zip(array.type, members, strict=True)]
    return pa.StructArray.from_arrays(members, fields=fields, mask=array.is_null() if array.null_count else None)


def finish_write(
    plan: WritePlan, fragments: Sequence[Fragment], uuid: uuid.UUID, properties: Mapping[str, str]
) -> Transaction:
    """The transaction that makes the written fragments part of the table."""
    operation: Append | Overwrite
    if plan.creates or plan.mode != "append":
        operation = Overwrite(fragments=tuple(fragments), schema=plan.schema)
    else:
        operation = Append(fragments=tuple(fragments))
    return Transaction(read_version=plan.read_version, uuid=str(uuid), operation=operation, properties=dict(properties))

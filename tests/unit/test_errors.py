"""errors.py: one parent, the built-in parents that scripts catch, and a safe way home from a worker."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from tablewright import errors
from tablewright.errors import (
    AccessDenied,
    ColumnNotFound,
    CommitConflict,
    CommitUnknown,
    CompactionIncomplete,
    CorruptTable,
    EmptyFragment,
    ForkedProcess,
    IndexExists,
    IndexNotFound,
    InternalError,
    InvalidRequest,
    JobCancelled,
    SchemaMismatch,
    StorageError,
    TableExists,
    TableNotFound,
    TablewrightError,
    TaggedVersions,
    UnknownIndexType,
    UnsupportedFeature,
    VersionNotFound,
    WorkerLost,
    WrongType,
)

EXAMPLES: list[TablewrightError] = [
    TablewrightError("something"),
    InvalidRequest("columns must be a list"),
    WrongType("limit must be a whole number"),
    SchemaMismatch(("missing: a", "type of b: int32, expected int64")),
    EmptyFragment("no rows"),
    TaggedVersions({"release": 3}),
    TableNotFound("s3://bucket/t.lance"),
    VersionNotFound("t.lance", "Version 7", "The oldest one is 9: it was cleaned up."),
    IndexNotFound("i", ("a", "b")),
    IndexExists("i", ", please specify a different name."),
    ColumnNotFound("x", ("a", "b")),
    UnknownIndexType("HASH is not built"),
    TableExists("t.lance"),
    StorageError("the disk is full"),
    AccessDenied("no permission for t.lance/_versions"),
    ForkedProcess("the parent has used obstore"),
    CommitConflict("Append", "Overwrite", 5, retryable=False, reason="the schema changed"),
    CommitConflict("Delete", "Update", 6, fragments=(1, 2)),
    CompactionIncomplete("t.lance", ("the disk is full",), "fragments_removed=3"),
    JobCancelled("Writing t.lance: the Spark job was cancelled"),
    WorkerLost("Writing t.lance", "executor 3 was lost", "Run it again."),
    CommitUnknown("t.lance", 8, "0-1-2", "connection reset"),
    UnsupportedFeature("unknown feature flag 64"),
    CorruptTable("_versions/1.manifest", ("wrong magic", "offset beyond the end")),
    InternalError("a fragment has no files"),
]


def test_every_error_class_has_an_example() -> None:
    classes = {c for _, c in inspect.getmembers(errors, inspect.isclass) if c.__module__ == errors.__name__}
    assert classes == {type(e) for e in EXAMPLES}
    assert {c.__name__ for c in classes} == set(errors.__all__)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_survives_pickling_whole(error: TablewrightError, protocol: int) -> None:
    back = pickle.loads(pickle.dumps(error, protocol))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert back.__dict__ == error.__dict__


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda e: type(e).__name__)
def test_survives_copying(error: TablewrightError) -> None:
    assert str(copy.copy(error)) == str(error)
    assert copy.deepcopy(error).__dict__ == error.__dict__


def test_facts_are_attributes() -> None:
    conflict = pickle.loads(pickle.dumps(CommitConflict("Delete", "Update", 6, fragments=(1, 2))))
    assert (conflict.ours, conflict.theirs, conflict.version) == ("Delete", "Update", 6)
    assert conflict.retryable
    assert conflict.fragments == (1, 2)
    assert SchemaMismatch(("a",)).differences == ("a",)
    assert CorruptTable("f", ("p",)).path == "f"
    assert CommitUnknown("u", 3, "id", "why").uuid == "id"


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (InvalidRequest, ValueError),
        (WrongType, ValueError),
        (WrongType, TypeError),
        (SchemaMismatch, ValueError),
        (SchemaMismatch, OSError),
        (TableNotFound, ValueError),
        (TableNotFound, FileNotFoundError),
        (VersionNotFound, ValueError),
        (IndexNotFound, KeyError),
        (IndexNotFound, RuntimeError),
        (IndexExists, RuntimeError),
        (ColumnNotFound, KeyError),
        (UnknownIndexType, NotImplementedError),
        (TableExists, OSError),
        (StorageError, OSError),
        (AccessDenied, PermissionError),
        (CommitConflict, OSError),
        (CommitUnknown, OSError),
        (UnsupportedFeature, NotImplementedError),
        (CorruptTable, OSError),
        (InternalError, RuntimeError),
    ],
)
def test_scripts_that_catch_the_builtin_keep_working(error: type[Exception], builtin: type[Exception]) -> None:
    assert issubclass(error, builtin)
    assert issubclass(error, TablewrightError)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SchemaMismatch(("missing: a", "extra: b")), "Append with different schema: missing: a; extra: b"),
        (TableNotFound("x.lance"), "Dataset at path x.lance was not found"),
        (TableExists("x.lance"), "Dataset already exists: x.lance"),
        (TableExists("x.lance"), 'mode="overwrite"'),
        (VersionNotFound("x", "Version 7"), "Version 7 of the table at x was not found."),
        (VersionNotFound("x", "Tag 'a'", "Tags: b."), "was not found. Tags: b."),
        (CommitConflict("Append", "Overwrite", 5), "Retryable commit conflict for version 5"),
        (CommitConflict("Append", "Overwrite", 5), "preempted by concurrent transaction Overwrite at version 5"),
        (CommitConflict("Append", "Restore", 5, retryable=False), "Incompatible transaction: This Append"),
        (CommitConflict("A", "B", 5, reason="same rows"), "Reason: same rows."),
        (CommitConflict("A", "B", 5, fragments=(1, 2)), "Both touch fragments [1, 2]."),
        (CommitUnknown("x", 8, "0-1", "timeout"), "look for transaction 0-1"),
        (CorruptTable("f.manifest", ("wrong magic", "too short")), "Corrupt table file f.manifest: wrong magic; too"),
    ],
)
def test_messages_say_what_where_and_what_now(error: TablewrightError, words: str) -> None:
    assert words in str(error)

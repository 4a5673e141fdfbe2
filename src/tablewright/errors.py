"""Every error this package raises, grouped by what the caller does next.

One parent, :class:`TablewrightError`. Each family also derives from the built-in class that people
catch with pylance (``ValueError``, ``OSError``…), and keeps the words that scripts match. Facts travel
as attributes, and every error survives pickling, so it arrives complete from a Spark worker. No message
holds credentials: :mod:`tablewright.redact` sees each of them.

=========================  ==============================================================
fix the call               :class:`InvalidRequest`, :class:`WrongType`, :class:`SchemaMismatch`, :class:`EmptyFragment`,
                           :class:`TaggedVersions`, :class:`ColumnNotFound`, :class:`IndexExists`,
                           :class:`UnknownIndexType`
point elsewhere            :class:`TableNotFound`, :class:`VersionNotFound`, :class:`TableExists`,
                           :class:`IndexNotFound`
fix access or network      :class:`StorageError`, :class:`AccessDenied`
start workers afresh       :class:`ForkedProcess`
run again                  :class:`CommitConflict`, :class:`CompactionIncomplete`, :class:`JobCancelled`,
                           :class:`WorkerLost`
look first                 :class:`CommitUnknown`
upgrade                    :class:`UnsupportedFeature`
restore                    :class:`CorruptTable`
tell us                    :class:`InternalError`
=========================  ==============================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tablewright.redact import redact

__all__ = [
    "AccessDenied",
    "ColumnNotFound",
    "CommitConflict",
    "CommitUnknown",
    "CompactionIncomplete",
    "CorruptTable",
    "EmptyFragment",
    "ForkedProcess",
    "IndexExists",
    "IndexNotFound",
    "InternalError",
    "InvalidRequest",
    "JobCancelled",
    "SchemaMismatch",
    "StorageError",
    "TableExists",
    "TableNotFound",
    "TablewrightError",
    "TaggedVersions",
    "UnknownIndexType",
    "UnsupportedFeature",
    "VersionNotFound",
    "WorkerLost",
    "WrongType",
]


def _rebuild(cls: type[TablewrightError], message: str, facts: dict[str, Any]) -> TablewrightError:
    # Of several built-in parents the one with its own memory layout, OSError, has to make the object.
    error: TablewrightError = (OSError if issubclass(cls, OSError) else Exception).__new__(cls)
    error.args = (message,)
    error.__dict__.update(facts)
    return error


class TablewrightError(Exception):
    """The parent of all. ``str(error)`` says what happened, where, and what to do now."""

    def __init__(self, message: str) -> None:
        super().__init__(redact(message))

    def add(self, sentence: str) -> None:
        """Append to the message what the caller has to know besides.

        >>> error = TablewrightError("The disk is full.")
        >>> error.add("The new columns stay.")
        >>> str(error)
        'The disk is full. The new columns stay.'
        """
        self.args = (f"{self} {redact(sentence)}",)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), str(self), dict(self.__dict__))


class InvalidRequest(TablewrightError, ValueError):
    """The call can't mean anything: fix its arguments. Nothing was read or written."""


class WrongType(InvalidRequest, TypeError):
    """An argument is of a type that the call does not take."""


class SchemaMismatch(InvalidRequest, OSError):
    """The data do not fit the table's schema. ``differences`` lists every one."""

    def __init__(self, differences: tuple[str, ...]) -> None:
        super().__init__("Append with different schema: " + "; ".join(differences))
        self.differences = differences


class EmptyFragment(InvalidRequest, OSError):
    """A fragment without rows or files was to be committed."""


class TaggedVersions(InvalidRequest, OSError):
    """Versions that cleanup was to remove have tags. ``tags`` maps these to versions; nothing was removed."""

    def __init__(self, tags: dict[str, int]) -> None:
        listed = ", ".join(f'"{tag}": {version}' for tag, version in sorted(tags.items()))
        super().__init__(
            f"Cleanup error: {len(tags)} tagged version(s) have been marked for cleanup. Either set "
            "`error_if_tagged_old_versions=false` or delete the following tag(s) to enable cleanup: "
            f"{{{listed}}}"
        )
        self.tags = tags


class ColumnNotFound(InvalidRequest, KeyError):
    """The table has no column of this name that an index could be built on. ``column`` is the name."""

    def __init__(self, column: str, columns: tuple[str, ...]) -> None:
        super().__init__(
            f"{column} not found in schema: there is no column to index. Columns are: {', '.join(columns)}."
        )
        self.column = column

    def __str__(self) -> str:
        return str(self.args[0])


class IndexExists(InvalidRequest, RuntimeError):
    """An index of this name is there, and it was not to be replaced, or is on other columns. ``name`` is the name."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"Index name '{name}' already exists{reason}")
        self.name = name


class UnknownIndexType(InvalidRequest, NotImplementedError):
    """A type of index that is not built here."""


class TableNotFound(TablewrightError, ValueError, FileNotFoundError):
    """There is no Lance table at this address."""

    def __init__(self, uri: str) -> None:
        super().__init__(
            f"Dataset at path {uri} was not found: there is no _versions directory with a manifest. "
            "Check the address, or create the table with write_dataset(data, uri)."
        )
        self.uri = uri


class VersionNotFound(TablewrightError, ValueError, OSError):
    """The table has no such version, tag or branch (any more)."""

    def __init__(self, uri: str, what: str, hint: str = "") -> None:
        super().__init__(f"{what} of the table at {uri} was not found." + (f" {hint}" if hint else ""))
        self.uri = uri
        self.what = what


class IndexNotFound(TablewrightError, KeyError, RuntimeError):
    """The table has no index of this name (index not found). ``names`` are those that it has."""

    def __init__(self, name: str, names: tuple[str, ...]) -> None:
        there = f"There are {', '.join(names)}." if names else "The table has none."
        super().__init__(f'Index "{name}" not found (index not found: name={name}). {there}')
        self.name, self.names = name, names

    def __str__(self) -> str:
        return str(self.args[0])


class TableExists(TablewrightError, OSError):
    """``mode="create"`` at an address that already holds a table."""

    def __init__(self, uri: str) -> None:
        super().__init__(
            f'Dataset already exists: {uri}. Use mode="append" to add rows or mode="overwrite" to replace them.'
        )
        self.uri = uri


class StorageError(TablewrightError, OSError):
    """The store failed: network, disk, credentials. The state of the table is what it was, or the message says more.

    ``nothing_written`` tells that a failed write certainly had no effect, as on a full disk.
    """

    nothing_written: bool = False


class AccessDenied(StorageError, PermissionError):
    """The store refused: no permission for this path."""


class ForkedProcess(TablewrightError, RuntimeError):
    """A forked child can't use what its parent has used: start workers with ``spawn``. Nothing was read or written."""


class CommitConflict(TablewrightError, OSError):
    """Another writer won. Nothing of ours is visible.

    ``retryable`` tells whether running the operation again on the latest version makes sense.
    """

    def __init__(
        self,
        ours: str,
        theirs: str,
        version: int,
        *,
        retryable: bool = True,
        fragments: tuple[int, ...] = (),
        reason: str = "",
    ) -> None:
        if retryable:
            text = (
                f"Retryable commit conflict for version {version}: This {ours} transaction was preempted by "
                f"concurrent transaction {theirs} at version {version}. Please retry."
            )
        else:
            text = (
                f"Commit conflict for version {version}: Incompatible transaction: This {ours} transaction is "
                f"incompatible with concurrent transaction {theirs} at version {version}."
            )
        if reason:
            text += f" Reason: {reason}."
        if fragments:
            text += f" Both touch fragments {list(fragments)}."
        super().__init__(text)
        self.ours, self.theirs, self.version = ours, theirs, version
        self.retryable, self.fragments, self.reason = retryable, fragments, reason


class JobCancelled(TablewrightError, RuntimeError):
    """The Spark job of an operation was cancelled, or its session stopped. Nothing of it is visible."""


class CompactionIncomplete(TablewrightError, OSError):
    """Some groups of a compaction failed; the others are committed. Compact again once the cause is removed.

    ``errors`` has the message of each group that failed, ``metrics`` says what was committed.
    """

    def __init__(self, uri: str, errors: Sequence[str], metrics: object) -> None:
        super().__init__(
            f"{len(errors)} groups of the compaction of {uri} failed, and their fragments stay as they were; "
            f"what was committed: {metrics}. The first error: {errors[0]}"
        )
        self.errors, self.metrics = tuple(errors), metrics


class CommitUnknown(TablewrightError, OSError):
    """We can't know whether our version became visible. Look before trying again.

    ``uuid`` is our transaction's: if some version carries it, the commit happened.
    """

    def __init__(self, uri: str, version: int, uuid: str, cause: str) -> None:
        super().__init__(
            f"The commit of version {version} of {uri} got no answer ({cause}), and looking for it failed too. "
            f"Open the table and look for transaction {uuid} before running this again."
        )
        self.uri, self.version, self.uuid = uri, version, uuid


class WorkerLost(TablewrightError, OSError):
    """A process that ran tasks of Spark died, as often as Spark tried. Nothing was changed; run it again.

    ``what`` says which process that was, as far as Spark knows.
    """

    def __init__(self, job: str, what: str, remedy: str) -> None:
        super().__init__(f"{job}: {what}. Nothing of it is visible. {remedy}")
        self.what = what


class UnsupportedFeature(TablewrightError, ValueError, NotImplementedError):
    """The table, or the call, needs something that this release does not do."""


class CorruptTable(TablewrightError, OSError):
    """A file of the table is damaged or foreign. ``path`` names it; ``problems`` lists what is wrong."""

    def __init__(self, path: str, problems: tuple[str, ...]) -> None:
        super().__init__(
            f"Corrupt table file {path}: " + "; ".join(problems) + ". Restore the file, or check out another version."
        )
        self.path, self.problems = path, problems


class InternalError(TablewrightError, RuntimeError):
    """A mistake of ours. Please report it with this message."""

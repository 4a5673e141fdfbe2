"""Cleanup of old versions as ``LanceDataset`` offers it: pylance's names and arguments.

Tests: ``tests/unit/api/test_cleanup.py``, ``tests/differential/test_cleanup.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from tablewright.api.pinned import Pinned, table_of
from tablewright.checks import check_flag, whole_number
from tablewright.jobs.cleanup import clean_up, explain_cleanup
from tablewright.operations.cleanup.files import CleanupExplanation, CleanupStats
from tablewright.operations.cleanup.options import CleanupOptions

__all__ = ["CleanupVerbs"]


class CleanupVerbs(Pinned):
    """The part of a dataset that removes old versions."""

    def cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: Sequence[int] | None = None,
        delete_concurrency: int | None = None,
    ) -> CleanupStats:
        """Remove old versions, and the files that only they need. Returns what was removed.

        A version goes if it is older than ``older_than`` (by default two weeks, if nothing else is given), is not among
        the newest ``retain_versions``, and is among ``versions``, as far as these are given. This dataset's version,
        later ones, tagged ones and those that a branch begins from stay; a tag on a version that would go is an error,
        unless ``error_if_tagged_old_versions=False``. A file that no version names stays until it is seven days old.

        ``delete_unverified=True`` removes such files at once, *also those of writers that are under way*: only use it
        while nothing writes to the table. ``delete_rate_limit`` is in files per second, ``delete_concurrency`` in
        threads.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2, 3]}, "memory://cleanup-example")
        >>> ds = tw.write_dataset({"id": [4]}, ds, mode="overwrite")
        >>> stats = ds.cleanup_old_versions(retain_versions=1)
        >>> stats.old_versions, stats.data_files_removed, [each["version"] for each in ds.versions()]
        (1, 1, [2])
        """
        options = CleanupOptions(
            older_than=older_than,
            retain_versions=retain_versions,
            versions=versions,
            delete_unverified=delete_unverified,
            error_if_tagged_old_versions=error_if_tagged_old_versions,
            delete_rate_limit=delete_rate_limit,
            delete_concurrency=delete_concurrency,
        )
        return clean_up(table_of(self), options)

    def explain_cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: Sequence[int] | None = None,
        include_files: bool = True,
        max_files: int | None = None,
    ) -> CleanupExplanation:
        """What :meth:`cleanup_old_versions` would remove, every file with its reason. Nothing is deleted.

        ``include_files=False`` leaves the list of files out, ``max_files`` cuts it; the totals always count all.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2, 3]}, "memory://explain-cleanup-example")
        >>> ds = tw.write_dataset({"id": [4]}, ds, mode="overwrite")
        >>> print(ds.explain_cleanup_old_versions(retain_versions=1))  # doctest: +ELLIPSIS
        Cleanup of memory://explain-cleanup-example, seen from version 2
          removes versions 1; keeps 2
          bytes_removed=..., old_versions=1, data_files_removed=1, transaction_files_removed=1, ...
          manifest ... _versions/18446744073709551614.manifest: version 1 is removed
          ...
        """
        check_flag(include_files, "include_files")
        options = CleanupOptions(
            older_than=older_than,
            retain_versions=retain_versions,
            versions=versions,
            delete_unverified=delete_unverified,
            error_if_tagged_old_versions=error_if_tagged_old_versions,
            delete_rate_limit=delete_rate_limit,
        )
        limit = None if max_files is None else whole_number(max_files, "max_files", minimum=1)
        return explain_cleanup(table_of(self), options, include_files=include_files, max_files=limit)

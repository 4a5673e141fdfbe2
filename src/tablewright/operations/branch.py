"""The first version of a branch: the source's manifest with every file of its own reached through a base path. Pure.

Format: ``docs/format/table.md#tags-and-branches``.

Tests: ``tests/unit/jobs/test_branch.py``, ``tests/differential/jobs/test_branch.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from tablewright._version import __version__
from tablewright.format.fragment import DataFile, DeletionFile, Fragment, FragmentList
from tablewright.format.index import IndexMetadata
from tablewright.format.manifest import BasePath, Manifest, WriterVersion
from tablewright.format.transaction import Clone

__all__ = ["plan_branch"]

F = TypeVar("F", DataFile, DeletionFile, IndexMetadata)


def plan_branch(source: Manifest, clone: Clone, *, transaction_file: str, timestamp_ns: int) -> Manifest:
    """The first manifest of a branch: ``source`` with every file of its own reached through a base path."""
    base_id = max((base.id for base in source.base_paths), default=-1) + 1
    base = BasePath(id=base_id, path=clone.ref_path, name=clone.ref_name, is_dataset_root=True)
    return replace(
        source,
        fragments=FragmentList.of(_inherited_fragment(fragment, base_id) for fragment in source.fragments),
        indices=tuple(_inherited(index, base_id) for index in source.indices),
        base_paths=(*source.base_paths, base),
        branch=clone.branch_name,
        timestamp_ns=timestamp_ns,
        transaction_file=transaction_file,
        writer=WriterVersion(library="tablewright", version=__version__),
    )


def _inherited_fragment(fragment: Fragment, base_id: int) -> Fragment:
    deletion = fragment.deletion
    return replace(
        fragment,
        files=tuple(_inherited(file, base_id) for file in fragment.files),
        deletion=None if deletion is None else _inherited(deletion, base_id),
    )


def _inherited(file: F, base_id: int) -> F:
    return replace(file, base_id=base_id) if file.base_id is None else file

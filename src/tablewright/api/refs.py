"""``ds.tags`` and ``ds.branches``: names for versions, and lines of versions beside the main one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from tablewright.api.pinned import Pinned, table_of
from tablewright.jobs.branch import delete_branch
from tablewright.snapshot import refs
from tablewright.snapshot.reference import Reference, resolve_reference
from tablewright.snapshot.refs import Branch, Tag, in_order
from tablewright.snapshot.snapshot import Snapshot
from tablewright.snapshot.standing import check_standing
from tablewright.world import World

__all__ = ["Branches", "Tags"]

D = TypeVar("D")
Listing = list[tuple[str, dict[str, Any]]]


def _moment(time_ns: int | None) -> datetime | None:
    """A time as pylance gives it: UTC, in microseconds."""
    if time_ns is None:
        return None
    return datetime.fromtimestamp(time_ns // 1_000_000_000, UTC).replace(microsecond=time_ns % 1_000_000_000 // 1000)


class _Refs:
    def __init__(self, dataset: Pinned) -> None:
        self._dataset = dataset

    @property
    def _snapshot(self) -> Snapshot:
        return table_of(self._dataset).snapshot

    @property
    def _main(self) -> World:
        """Tags and branches are kept in the root of the main table, whatever branch the dataset is on."""
        snapshot = self._snapshot
        return refs.main_world(snapshot.world, snapshot.branch)

    def _main_to_change(self) -> World:
        """The same, once it is certain that the table there is still the one that the dataset was opened on."""
        check_standing(self._snapshot)
        return self._main


class Tags(_Refs):
    """Names for versions. A tagged version is never cleaned up.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset([{"id": 1}], "memory://tags-example")
    >>> ds.tags.create("first", 1)
    >>> ds.tags.get_version("first")
    1
    """

    def create(self, tag: str, reference: Reference | None = None) -> None:
        """Name a version: a number, another tag, ``(branch, number)``; this dataset's version by default."""
        main = self._main_to_change()
        branch, version = resolve_reference(self._snapshot, reference)
        refs.create_tag(main, tag, version, branch)

    def update(self, tag: str, reference: Reference | None = None) -> None:
        """Let an existing tag name another version."""
        main = self._main_to_change()
        branch, version = resolve_reference(self._snapshot, reference)
        refs.update_tag(main, tag, version, branch)

    def delete(self, tag: str) -> None:
        """Forget a tag; the version stays."""
        refs.delete_tag(self._main_to_change(), tag)

    def replace_metadata(self, tag: str, metadata: Mapping[str, str]) -> None:
        """Exchange the texts attached to a tag."""
        refs.replace_tag_metadata(self._main_to_change(), tag, metadata)

    def get_version(self, tag: str) -> int:
        """The number of the version that a tag names."""
        return refs.read_tag(self._main.store, tag).version

    def list(self) -> dict[str, dict[str, Any]]:
        """Every tag: ``branch``, ``version``, ``created_at``, ``updated_at``, ``manifest_size``, ``metadata``."""
        return {name: _tag(tag) for name, tag in refs.list_tags(self._main.store).items()}

    def list_ordered(self, order: str | None = None) -> Listing:
        """Tags by version, the newest first unless ``order="asc"``."""
        return [(name, _tag(tag)) for name, tag in in_order(refs.list_tags(self._main.store), order)]


class Branches(_Refs, Generic[D]):
    """Lines of versions beside the main one.

    ``ds.checkout_version((name, None))`` goes there.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset([{"id": 1}], "memory://branches-example")
    >>> ds.branches.create("experiment").insert([{"id": 2}])
    >>> ds.count_rows(), ds.checkout_version(("experiment", None)).count_rows()
    (1, 2)
    """

    def __init__(self, dataset: Pinned, create: Callable[[str, Reference | None], D]) -> None:
        super().__init__(dataset)
        self._create = create

    def create(self, branch: str, reference: Reference | None = None) -> D:
        """Start a branch from a version (this one by default), and return a dataset there."""
        return self._create(branch, reference)

    def list(self) -> dict[str, dict[str, Any]]:
        """Every branch: where it began, when, and its metadata."""
        return {name: _branch(branch) for name, branch in refs.list_branches(self._main.store).items()}

    def list_ordered(self, order: str | None = None) -> Listing:
        """Branches by the version they began from, the newest first unless ``order="asc"``."""
        return [(name, _branch(branch)) for name, branch in in_order(refs.list_branches(self._main.store), order)]

    def delete(self, branch: str) -> None:
        """Delete a branch with its versions and files; one that a tag names is refused."""
        delete_branch(self._main_to_change(), branch)

    def replace_metadata(self, branch: str, metadata: Mapping[str, str]) -> None:
        """Exchange the texts attached to a branch."""
        refs.replace_branch_metadata(self._main_to_change(), branch, metadata)


def _tag(tag: Tag) -> dict[str, Any]:
    return {
        "branch": tag.branch,
        "version": tag.version,
        "created_at": _moment(tag.created_at_ns),
        "updated_at": _moment(tag.updated_at_ns),
        "manifest_size": tag.manifest_size,
        "metadata": dict(tag.metadata),
    }


def _branch(branch: Branch) -> dict[str, Any]:
    return {
        "parent_branch": branch.parent_branch,
        "branch_identifier": list(branch.identifier),
        "parent_version": branch.parent_version,
        "create_at": branch.created_at_s,
        "manifest_size": branch.manifest_size,
        "metadata": dict(branch.metadata),
    }

"""Indices as ``LanceDataset`` offers them: pylance's names and arguments.

Tests: ``tests/unit/api/test_index_verbs.py``, ``tests/differential/test_create_index.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from tablewright.api.auto_cleanup import commits
from tablewright.api.pinned import Pinned, run_on, table_of
from tablewright.checks import check_callable, check_text, listed
from tablewright.errors import IndexNotFound, InvalidRequest, UnknownIndexType, WrongType
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import IndexKind, kind_of
from tablewright.indices.query import Between, IsNull
from tablewright.indices.registry import by_name, offered
from tablewright.jobs.create_index import CreateIndexJob
from tablewright.jobs.drop_index import DropIndexJob
from tablewright.jobs.index_build import OnStage
from tablewright.operations.create_index.options import IndexRequest
from tablewright.operations.create_index.segment import plain_type
from tablewright.operations.describe import describe_indices
from tablewright.operations.index_description import IndexDescription, indices_described
from tablewright.operations.statistics import index_statistics
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["IndexProgress", "IndexVerbs"]

_FULL_TEXT = ("INVERTED", "FTS", "RTREE", "MINHASHLSH")


@dataclass(frozen=True)
class IndexProgress:
    """A stage of a build began or is done. ``completed`` are rows that were read, if that is known."""

    event: Literal["start", "progress", "complete"]
    stage: str
    completed: int | None = None
    total: int | None = None
    unit: str = ""

    @property
    def fraction(self) -> float | None:
        """How much is done, if that is known."""
        return None if self.completed is None or not self.total else min(self.completed / self.total, 1.0)


class IndexVerbs(Pinned):
    """The part of a dataset that builds, drops and describes indices."""

    @commits
    def create_scalar_index(
        self,
        column: str | Sequence[str],
        index_type: Any,
        name: str | None = None,
        *,
        replace: bool = True,
        train: bool = True,
        fragment_ids: Sequence[int] | None = None,
        index_uuid: str | None = None,
        progress_callback: Callable[[IndexProgress], Any] | None = None,
        format_version: int | str | None = None,
        skip_auto_cleanup: bool = False,
        **kwargs: Any,
    ) -> None:
        """Build an index on a column, or on a member of a struct (``"a.b"``), and move to the new version.

        ``index_type`` is BTREE, BITMAP, LABEL_LIST, ZONEMAP, BLOOMFILTER or NGRAM in any case, or an ``IndexConfig``
        with parameters, which can be given as keywords as well: ``rows_per_zone`` of ZONEMAP, ``number_of_items`` and
        ``probability`` of BLOOMFILTER. Without a ``name`` it is called after its column, ``id_idx``. An index of that
        name is replaced, unless ``replace=False``. ``train=False`` builds an empty one, which ``optimize_indices``
        fills; ``fragment_ids`` limits it to some fragments. Other writers are not blocked, and what they commit
        meanwhile does not cost the work: where rows moved, their new addresses are written.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": range(100), "kind": ["a", "b"] * 50}, "memory://create-index-example")
        >>> ds.create_scalar_index("id", "BTREE")
        >>> [(index["name"], index["type"], index["fields"]) for index in ds.list_indices()]
        [('id_idx', 'BTree', ['id'])]
        """
        check_callable(progress_callback, "progress_callback", "a function")
        if index_uuid is not None or format_version is not None:
            raise InvalidRequest("index_uuid and format_version belong to index types that are not built here.")
        kind, settings = _type_of(index_type)
        request = IndexRequest(
            column=_one_column(column),
            kind=kind,
            name=name,
            replace=replace,
            train=train,
            fragment_ids=None if fragment_ids is None else tuple(listed(fragment_ids, "fragment_ids")),
            settings=settings | kwargs,
        )
        run_on(self, CreateIndexJob(request, table_of(self).world, _reporting(progress_callback)))

    @commits
    def drop_index(self, name: str, *, skip_auto_cleanup: bool = False) -> None:
        """Drop an index, and move to the new version; its files go with the next cleanup.

        Raises :class:`~tablewright.errors.IndexNotFound` (a ``KeyError`` and a ``RuntimeError``) if there is none.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": range(100)}, "memory://drop-index-example")
        >>> ds.create_scalar_index("id", "BTREE")
        >>> ds.drop_index("id_idx")
        >>> ds.list_indices()
        []
        """
        run_on(self, DropIndexJob(check_text(name, "name")))

    def list_indices(self) -> list[dict[str, Any]]:
        """Every index segment: ``name``, ``type``, ``uuid``, ``fields``, ``version``, ``fragment_ids``."""
        return describe_indices(table_of(self).snapshot)

    def describe_indices(self) -> list[IndexDescription]:
        """Every index with its segments, by name.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": range(100)}, "memory://describe-indices-example")
        >>> ds.create_scalar_index("id", "BTREE")
        >>> (index,) = ds.describe_indices()
        >>> index.name, index.index_type, index.field_names, index.num_rows_indexed, len(index.segments)
        ('id_idx', 'BTree', ['id'], 100, 1)
        """
        return indices_described(table_of(self).snapshot)

    def index_statistics(self, index_name: str) -> dict[str, Any]:
        """What an index covers, and what its files say; the same as ``stats.index_stats``."""
        return index_statistics(table_of(self).snapshot, index_name)

    def prewarm_index(
        self, name: str, *, with_position: bool = False, index_segments: Iterable[str | UUID] | None = None
    ) -> None:
        """Read an index into the cache, so that the first queries find it there; ``index_segments`` limits it.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": range(100)}, "memory://prewarm-example")
        >>> ds.create_scalar_index("id", "BTREE")
        >>> ds.prewarm_index("id_idx")
        """
        snapshot = table_of(self).snapshot
        every = [index for index in snapshot.manifest.indices if index.name == check_text(name, "name")]
        if not every:
            raise IndexNotFound(name, tuple(sorted({index.name for index in snapshot.manifest.indices})))
        wanted = None if index_segments is None else {str(each) for each in listed(index_segments, "index_segments")}
        for index in every:
            if wanted is None or str(index.uuid) in wanted:
                _read_whole(snapshot, index)


def _type_of(index_type: Any) -> tuple[IndexKind, dict[str, Any]]:
    """The kind that is asked for, and its parameters."""
    name, parameters = index_type, None
    if not isinstance(index_type, str):
        name, parameters = getattr(index_type, "index_type", None), getattr(index_type, "parameters", None)
        if not isinstance(name, str) or not hasattr(index_type, "parameters"):
            raise WrongType(f"index_type must be text or an IndexConfig, got {index_type!r}.")
        if parameters is not None and not isinstance(parameters, dict):
            raise WrongType(f"The parameters of an IndexConfig must be a dict, got {parameters!r}.")
    if name.upper() in _FULL_TEXT:
        raise UnknownIndexType(
            f"Indices of type {name.upper()} are not built by this release: let pylance build it. It survives our "
            "writes and compactions."
        )
    return by_name(name), dict(parameters or {})


def _one_column(column: Any) -> str:
    if isinstance(column, str):
        return column
    names = listed(column, "column")
    if len(names) != 1:
        raise UnknownIndexType(f"Scalar indices currently only support a single column, got {names}.")
    return check_text(names[0], "column")


def _reporting(callback: Callable[[IndexProgress], Any] | None) -> OnStage | None:
    if callback is None:
        return None

    def report(stage: str, is_done: bool, rows: int) -> None:
        callback(IndexProgress("complete" if is_done else "start", stage, rows, None, "rows"))

    return report


def _read_whole(snapshot: Snapshot, index: IndexMetadata) -> None:
    """Ask an index for everything; kinds that can't be asked so are opened."""
    kind = kind_of(index)
    functions = None if kind is None else offered(kind)
    if functions is None or functions.search is None or functions.answers is None:
        return
    type = plain_type(snapshot.schema, index.fields[0])
    for query in (Between(), IsNull()):
        if functions.answers(query, type):
            functions.search(snapshot, index, query)
            return

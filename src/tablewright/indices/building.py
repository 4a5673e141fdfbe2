"""What all kinds share when they are built: the plan, the values of the column, and what was written.

A kind is built by ``build(plan, world, stage)``:

1. tasks read the column of some fragments each and make a *part*, in memory or in files below ``plan.directory``;
2. parts, and what is kept of older segments, are merged into the files of the index, by further stages where that pays;
3. files of parts are removed, and :class:`WrittenIndex` says what the index consists of.

``stage`` runs tasks on the engine that the job chose; a task may run twice, or die, so it writes names of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.format.fragment import Fragment
from tablewright.format.index import IndexFile, IndexMetadata
from tablewright.format.index_kinds import IndexKind
from tablewright.format.manifest import BasePath
from tablewright.format.naming import index_dir
from tablewright.format.schema import Schema
from tablewright.indices.query import Ids
from tablewright.world import World

__all__ = ["BuildPlan", "Entries", "OldSegment", "PartResult", "Stage", "Translate", "WrittenIndex"]

Translate = Callable[[Ids], tuple[Ids, npt.NDArray[np.bool_]]]
"""Where rows are now: the new id of each id (any number where it is gone), and which ones are kept."""

T = TypeVar("T")


class PartResult(Protocol):
    """What a task of a build returns."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that the task wrote, below the table's root."""

    @property
    def rows_read(self) -> int: ...

    @property
    def bytes_read(self) -> int: ...


R = TypeVar("R", bound=PartResult)


class Stage(Protocol):
    """Runs the tasks of one stage of a build on the job's engine, and returns their results in order."""

    def __call__(self, name: str, run: Callable[[T, World], R], tasks: Sequence[T]) -> list[R]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """A batch of live rows to be indexed: their values, and the ids that the index stores for them.

    Rows come in the order of their addresses, fragment by fragment; a batch is of one fragment.
    """

    values: pa.Array
    ids: Ids
    fragment_id: int
    offsets: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class OldSegment:
    """An older segment whose entries go into the new index: what ``translate`` keeps of them, under its new ids.

    Kinds that describe zones keep the zones of ``fragments`` as they are, and do not translate: these are the
    fragments that the segment covers and that still exist.
    """

    index: IndexMetadata
    translate: Translate
    fragments: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlan:
    """A decided build. ``path`` leads to the column, through structs; ``field_id`` is the leaf's.

    ``fragments`` are those to be read. ``stable``: ids are stable row ids, else addresses; kinds that describe zones
    use addresses always. ``uuid`` names the new directory. ``settings`` are the kind's own (``rows_per_zone`` …).
    """

    kind: IndexKind
    uuid: UUID
    uri: str
    version: int
    schema: Schema
    path: tuple[str, ...]
    field_id: int
    type: pa.DataType
    fragments: Sequence[Fragment]
    base_paths: tuple[BasePath, ...] = ()
    stable: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)
    old: tuple[OldSegment, ...] = ()

    @property
    def directory(self) -> str:
        """Where the files of the index go, below the table's root."""
        return index_dir(self.uuid)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenIndex:
    """The files of an index, and what its entry in the manifest says about them."""

    files: tuple[IndexFile, ...]
    details_type_url: str
    details_value: bytes = b""
    index_version: int = 0

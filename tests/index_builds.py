"""Indices built directly, without a job: a plan on the newest version, tasks one after the other, and a commit."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID

import pyarrow as pa

import tablewright as tw
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import BITMAP, LABEL_LIST, NGRAM, IndexKind
from tablewright.format.transaction import CreateIndex, Transaction
from tablewright.indices import bitmap, label_list, ngram
from tablewright.indices.building import BuildPlan, OldSegment, WrittenIndex
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.transaction.commit import commit
from tablewright.world import World

T = TypeVar("T")
R = TypeVar("R")

FUNCTIONS: dict[IndexKind, Any] = {BITMAP: bitmap, LABEL_LIST: label_list, NGRAM: ngram}


class DirectStage:
    """Runs tasks here, each as a worker would get it: through pickle."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.tasks = 0

    def __call__(self, name: str, run: Callable[[T, World], R], tasks: Sequence[T]) -> list[R]:
        self.tasks += len(tasks)
        return [pickle.loads(pickle.dumps(run(pickle.loads(pickle.dumps(task)), self._world))) for task in tasks]


def plan_of(
    snapshot: Snapshot,
    column: str,
    kind: IndexKind,
    *,
    uuid: UUID,
    fragments: Sequence[int] | None = None,
    old: tuple[OldSegment, ...] = (),
) -> BuildPlan:
    """The build of an index on some fragments, by their ids, or on all."""
    field = snapshot.schema.resolve(column)
    path = tuple(column.split("."))
    found: Any = snapshot.schema.to_arrow().field(path[0]).type
    for name in path[1:]:
        found = found.field(name).type
    return BuildPlan(
        kind=kind,
        uuid=uuid,
        uri=snapshot.location.uri,
        version=snapshot.version,
        schema=snapshot.schema,
        path=path,
        field_id=field.id,
        type=found,
        fragments=[each for each in snapshot.fragments if fragments is None or each.id in fragments],
        stable=snapshot.manifest.stable_row_ids,
        old=old,
    )


def entry_of(plan: BuildPlan, written: WrittenIndex, coverage: Sequence[int]) -> IndexMetadata:
    """The entry of a manifest for what was written."""
    return IndexMetadata(
        uuid=plan.uuid,
        fields=(plan.field_id,),
        name=f"{'.'.join(plan.path)}_idx",
        dataset_version=plan.version,
        details_type_url=written.details_type_url,
        details_value=written.details_value,
        index_version=written.index_version,
        files=written.files,
    ).with_coverage(coverage)


def built(
    uri: str, column: str, kind: IndexKind, *, fragments: Sequence[int] | None = None, old: tuple[OldSegment, ...] = ()
) -> tuple[Snapshot, IndexMetadata]:
    """Build an index on the newest version of a table, without a commit."""
    world = World(open_store(uri))
    snapshot = open_snapshot(world)
    plan = plan_of(snapshot, column, kind, uuid=world.ids.uuid(), fragments=fragments, old=old)
    written = FUNCTIONS[kind].build(plan, world, DirectStage(world))
    return snapshot, entry_of(plan, written, [each.id for each in plan.fragments])


def create(uri: str, column: str, kind: IndexKind) -> IndexMetadata:
    """Build an index and commit it; it replaces one of its name."""
    snapshot, entry = built(uri, column, kind)
    world = World(open_store(uri))
    gone = tuple(index for index in snapshot.manifest.indices if index.name == entry.name)
    operation = CreateIndex(new_indices=(entry,), removed_indices=gone)
    change = Transaction(read_version=snapshot.version, uuid=str(world.ids.uuid()), operation=operation)
    commit(world, change, base=snapshot)
    return entry


def ids_of(uri: str, stable: bool) -> list[int]:
    """The ids that an index stores for the rows of a table, in the order of a scan."""
    column = "_rowid" if stable else "_rowaddr"
    rows = tw.dataset(uri).to_table(columns=["i"], with_row_id=stable, with_row_address=not stable)
    return [int(found) for found in rows[column].to_pylist()]


def table_of(column: pa.Array, name: str = "x") -> pa.Table:
    """A column beside a number for each row."""
    return pa.table({name: column, "i": pa.array(range(len(column)), pa.int64())})

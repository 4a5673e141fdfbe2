"""Plans of index builds for tests: a column of a snapshot, built in this process, found as an index of its table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa

from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import IndexKind
from tablewright.indices.building import BuildPlan, WrittenIndex
from tablewright.snapshot import Snapshot
from tablewright.world import World

__all__ = ["here", "metadata_of", "plan_of"]


def here(world: World) -> Any:
    """A stage that runs its tasks one after the other in this process."""

    def stage(name: str, run: Callable[[Any, World], Any], tasks: Sequence[Any]) -> list[Any]:
        return [run(task, world) for task in tasks]

    return stage


def plan_of(snapshot: Snapshot, path: str, kind: IndexKind, uuid: UUID, **more: Any) -> BuildPlan:
    """A build on all fragments, or on those given."""
    names = tuple(path.split("."))
    found: Any = snapshot.schema.to_arrow()
    for name in names:
        found = found.field(name) if isinstance(found, pa.Schema) else found.type.field(name)
    values = {"fragments": snapshot.fragments, **more}
    return BuildPlan(
        kind=kind,
        uuid=uuid,
        uri=snapshot.location.uri,
        version=snapshot.version,
        schema=snapshot.schema,
        path=names,
        field_id=snapshot.schema.resolve(path).id,
        type=found.type,
        base_paths=snapshot.manifest.base_paths,
        stable=snapshot.manifest.stable_row_ids,
        **values,
    )


def metadata_of(plan: BuildPlan, written: WrittenIndex, name: str = "i", coverage: Sequence[int] | None = None) -> Any:
    """The manifest entry of an index that was written."""
    covered = [fragment.id for fragment in plan.fragments] if coverage is None else coverage
    return IndexMetadata(
        uuid=plan.uuid,
        fields=(plan.field_id,),
        name=name,
        dataset_version=plan.version,
        details_type_url=written.details_type_url,
        details_value=written.details_value,
        index_version=written.index_version,
        files=written.files,
    ).with_coverage(covered)

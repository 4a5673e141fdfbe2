"""A merge, decided as far as its clauses and schemas tell. Bad names, types and conditions fail here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tablewright.expressions.filters import Predicate
from tablewright.expressions.scope import with_system_columns
from tablewright.format.blobs import as_descriptions
from tablewright.format.flags import check_writable
from tablewright.format.fragment import FragmentList
from tablewright.format.schema import Schema
from tablewright.operations.merge_insert.changes import Changes, CompiledClauses, compile_changes
from tablewright.operations.merge_insert.clauses import Clauses, InvalidMerge
from tablewright.operations.merge_insert.keys.key_columns import KeyColumns, find_key
from tablewright.operations.merge_insert.limits import MergeLimits
from tablewright.operations.merge_insert.match.condition import (
    MatchConditions,
    compile_condition,
    compile_table_condition,
)
from tablewright.operations.merge_insert.source.fit import FittedSchema, fit_schema
from tablewright.operations.rewrite.file_version import new_file_version
from tablewright.reading.fragment import ReadPlan
from tablewright.reading.match import read_fields
from tablewright.reading.projection import Output, Path, RowLayout, Selection
from tablewright.reading.scan_task import ScanTask, scan_task
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["MergePlan", "plan_merge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """A decided merge, up to how its rows are matched. ``str(plan)`` explains it.

    ``reads`` are the ids of the fields that decide which rows are touched; ``None``: it may be any. ``changes`` are
    what ordered clauses do; without, rows get the source's columns.
    """

    clauses: Clauses
    key: KeyColumns
    fitted: FittedSchema
    conditions: MatchConditions | None
    by_source_conditions: tuple[Predicate | None, ...]
    scan: ScanTask
    fragments: FragmentList
    file_version: str
    reads: frozenset[int] | None
    changes: Changes | None = None

    @property
    def table(self) -> Schema:
        """The table's schema."""
        return self.fitted.table

    @property
    def limits(self) -> MergeLimits:
        """The sizes by which it decides how it works."""
        return self.clauses.limits

    @property
    def version(self) -> int:
        """The version that it is planned on."""
        return self.scan.version

    @property
    def changed_columns(self) -> tuple[str, ...]:
        """The columns whose values change where rows are updated."""
        if self.changes is not None:
            return self.changes.columns_of(self.table, range(len(self.changes.rows)))
        return self.fitted.changed(self.key) if self.clauses.updates else ()

    @property
    def changed_ids(self) -> tuple[int, ...]:
        """Their ids, with all below them."""
        return tuple(sorted(self.table.node_ids(self.changed_columns)))

    @property
    def looks_at_place(self) -> bool:
        """Whether a condition asks where in the table a row is, which other fragments decide."""
        paths = [] if self.conditions is None else list(self.conditions.target_paths)
        paths += _paths_of(self.by_source_conditions)
        return ("_rowoffset",) in paths

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        clauses, scan = self.clauses, self.scan
        given = "all columns" if self.fitted.is_full else f"partial, columns=[{', '.join(self.fitted.schema.names)}]"
        yield f"MergeInsert: on=[{', '.join(self.key.names)}], {clauses}, write_mode={clauses.write_mode}"
        yield f"  source: {given}" + (f", dedupe={clauses.dedupe}" if clauses.dedupe else "")
        if self.conditions is not None:
            read = ", ".join(dict.fromkeys(path[0] for path in self.conditions.target_paths))
            yield f"  condition: {self.conditions}; reads target [{read}] of matched rows only"
        yield (
            f"  LanceRead: uri={scan.uri}, version={scan.version}, "
            f"projection=[{', '.join(scan.reads.first.names)}], num_fragments={len(self.fragments)}, "
            f"rows={self.fragments.total_live_rows}"
        )


def plan_merge(snapshot: Snapshot, clauses: Clauses, on: Any, incoming: pa.Schema, now_ns: int) -> MergePlan:
    """Decide a merge of data with the schema ``incoming``; ``now()`` in conditions is ``now_ns``."""
    check_writable(snapshot.manifest.writer_flags, snapshot.location.uri)
    table = snapshot.schema
    key = find_key(table, on)
    if clauses.ordered is None:
        compiled = _compile_simple(clauses, table, incoming, key, now_ns)
    else:
        compiled = compile_changes(clauses.ordered, table, incoming, key, now_ns)
    conditions, changes = compiled.conditions, compiled.changes
    looked_at = [*key.paths, *(conditions.target_paths if conditions is not None else ())]
    if changes is not None:
        every = range(len(changes.rows))
        looked_at += [*changes.target_paths_of(every), *((name,) for name in changes.kept_of(compiled.fitted, every))]
    plan = MergePlan(
        clauses=clauses,
        key=key,
        fitted=compiled.fitted,
        conditions=conditions,
        by_source_conditions=compiled.by_source,
        scan=_scan(snapshot, key, conditions, compiled.by_source),
        fragments=snapshot.fragments,
        file_version=_file_version(snapshot, clauses),
        reads=None if clauses.changes_unmatched else read_fields(table, looked_at),
        changes=changes,
    )
    _check_mode(plan)
    return plan


def _compile_simple(
    clauses: Clauses, table: Schema, incoming: pa.Schema, key: KeyColumns, now_ns: int
) -> CompiledClauses:
    """One clause of each kind, without expressions: rows get the source's columns as they are."""
    fitted = fit_schema(table, incoming, key, inserts=clauses.insert, updates=clauses.updates)
    conditions = by_source = None
    seen = as_descriptions(table)
    if clauses.condition is not None:
        conditions = MatchConditions((compile_condition(clauses.condition, seen, fitted.schema, now_ns),))
    if clauses.by_source_condition is not None:
        by_source = compile_table_condition(clauses.by_source_condition, seen, now_ns)
    return CompiledClauses(fitted=fitted, conditions=conditions, by_source=(by_source,), changes=None)


def _paths_of(conditions: tuple[Predicate | None, ...]) -> list[Path]:
    return [path for condition in conditions if condition is not None for path in condition.paths]


def _file_version(snapshot: Snapshot, clauses: Clauses) -> str:
    """The version of new data files. Merges that write none may be in a table for which we can't write any."""
    if clauses.updates or clauses.inserts or clauses.data_storage_version is not None:
        return new_file_version(snapshot.manifest, clauses.data_storage_version)
    return snapshot.manifest.data_storage_version


def _check_mode(plan: MergePlan) -> None:
    if plan.clauses.wants_columns and plan.clauses.updates and not plan.changed_columns:
        raise InvalidMerge(
            "Invalid user input: MergeInsertWriteMode::RewriteColumns cannot express this merge insert: the source "
            "carries no column besides the join key. Use write_mode auto or rewrite_rows instead."
        )


def _scan(
    snapshot: Snapshot, key: KeyColumns, conditions: MatchConditions | None, by_source: tuple[Predicate | None, ...]
) -> ScanTask:
    """All fragments, with what the match reads: keys first, the conditions' columns of matched rows."""
    table = as_descriptions(snapshot.schema)
    later = () if conditions is None else conditions.target_paths
    rest = RowLayout.of(table, later)
    reads = ReadPlan(
        table=table,
        selection=_selection(rest, later),
        predicate=None,
        first=RowLayout.of(table, [*key.paths, *_paths_of(by_source)]),
        rest=rest,
    )
    return scan_task(snapshot, reads)


def _selection(layout: RowLayout, paths: tuple[Path, ...]) -> Selection:
    names = tuple(dict.fromkeys(path[0] for path in paths))
    known = with_system_columns(layout.fields)
    return Selection(
        outputs=tuple(Output(name=name, path=(name,)) for name in names),
        schema=pa.schema([known.field(name) for name in names]),
        paths=paths,
    )

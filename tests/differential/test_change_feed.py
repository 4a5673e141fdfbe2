"""Random histories, and the change feed over them: replayed version by version it gives every snapshot.

Rows and columns change by either library; tables are also compacted, indexed, restored, overwritten and merged into.
What is true is read from the snapshots by pylance: rows by their id, in the columns of the feed's last version.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.differential.change_strategies import changes
from tests.property.row_model import (
    COLUMNS,
    AddColumns,
    AddNulls,
    Append,
    Change,
    DropColumns,
    MergeColumns,
    Model,
    Rename,
    Row,
    created,
    new_rows,
    table_of,
)

import tablewright as tw
from tablewright.api.changes_feed import Changes
from tablewright.operations.change_feed.limits import FeedLimits
from tablewright.operations.change_feed.task import run_change_tasks

LIBRARIES = st.sampled_from([tw, lance])
STEPS_MAX = 7
FEED = ["_change_type", "_commit_version", "_commit_timestamp", "_rowid"]
FIELDS = count()

Fields = Mapping[str, int]
"""A number for each column by its name: the same number, the same field."""


@dataclass
class Table:
    """A table, and of every version its model and its fields."""

    uri: str
    models: dict[int, Model]
    fields: dict[int, Fields] = field(default_factory=dict)

    @property
    def version(self) -> int:
        return max(self.models)

    @property
    def model(self) -> Model:
        return self.models[self.version]

    def note(self, model: Model, fields: Fields) -> None:
        """What the newest version looks like; a call may have made several, or none."""
        for version in range(self.version + 1, lance.dataset(self.uri).version + 1):
            self.models[version], self.fields[version] = model, fields

    def shown(self, versions: tuple[int, ...], end: int) -> list[str]:
        """The columns of a version that some others have too."""
        return [
            name
            for name in self.models[end].columns
            if all(not version or self._source(name, version, end) for version in versions)
        ]

    def rows(self, version: int, end: int) -> dict[int, dict[str, Any]]:
        """The rows of a version by id, in the columns of another; and when each was last updated."""
        if not version:
            return {}
        columns = [*self.models[version].columns, "_rowid", "_row_last_updated_at_version"]
        found = lance.dataset(self.uri, version=version).to_table(columns=columns).to_pylist()
        sources = {name: self._source(name, version, end) for name in self.models[end].columns}
        return {
            row["_rowid"]: {name: row.get(source) for name, source in sources.items()}
            | {"updated": row["_row_last_updated_at_version"]}
            for row in found
        }

    def _source(self, name: str, version: int, end: int) -> str | None:
        """The column of a version that a column of another one was then, by the number of its field."""
        number = self.fields[end][name]
        return next((old for old, found in self.fields[version].items() if found == number), None)


def _fields_after(fields: Fields, change: Change) -> Fields:
    match change:
        case AddColumns() | AddNulls() | MergeColumns():
            return {**fields, change.name: next(FIELDS)}
        case DropColumns():
            return {name: number for name, number in fields.items() if name not in change.names}
        case Rename():
            return {change.new if name == change.old else name: number for name, number in fields.items()}
        case _:
            return fields


def _compact(table: Table, data: st.DataObject) -> None:
    lance.dataset(table.uri).optimize.compact_files(target_rows_per_fragment=data.draw(st.sampled_from([8, 100])))
    table.note(table.model, table.fields[table.version])


def _index(table: Table, data: st.DataObject) -> None:
    lance.dataset(table.uri).create_scalar_index("id", "BTREE", replace=True)
    table.note(replace(table.model, indexed=frozenset({"id"})), table.fields[table.version])


def _restore(table: Table, data: st.DataObject) -> None:
    version = data.draw(st.integers(1, table.version))
    data.draw(LIBRARIES).dataset(table.uri, version=version).restore()
    restored = replace(table.models[version], next_row_id=table.model.next_row_id)
    table.note(restored, table.fields[version])


def _overwrite(table: Table, data: st.DataObject) -> None:
    names = data.draw(st.permutations(list(COLUMNS)[1:]))[: data.draw(st.integers(1, 4))]
    empty = Model({"id": COLUMNS["id"], **{name: COLUMNS[name] for name in names}})
    rows = new_rows(empty, 0, data.draw(st.integers(0, 9)))
    data.draw(LIBRARIES).write_dataset(table_of(empty, list(rows)), table.uri, mode="overwrite", max_rows_per_file=5)
    after = Append(rows, replace(empty, next_row_id=table.model.next_row_id)).after(empty, 1)
    known = table.fields[table.version]  # past an overwrite columns are known by name
    table.note(after, {name: known.get(name, next(FIELDS)) for name in empty.columns})


def _upsert(table: Table, data: st.DataObject) -> None:
    model = table.model
    keys = sorted(model.rows)
    known = data.draw(st.sets(st.sampled_from(keys), max_size=5)) if keys else set()
    start = max(keys, default=-1) + 1 + 100 * model.next_row_id
    rows = [new_rows(model, key + 1, 1)[0] | {"id": key} for key in sorted(known)]
    rows += new_rows(model, start, data.draw(st.integers(0, 4)))
    if not rows:
        return
    library = data.draw(LIBRARIES)
    builder = library.dataset(table.uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    builder.execute(table_of(model, rows))
    merged = {row["id"]: Row(row, 0, 0, 0) for row in rows}
    after = replace(model, rows={**model.rows, **merged}, next_row_id=model.next_row_id + len(rows))
    table.note(after, table.fields[table.version])


def _change(table: Table, data: st.DataObject) -> None:
    library = data.draw(LIBRARIES)
    change = data.draw(changes(table.model, library, f"n{table.version}"))
    event(f"{library.__name__} {type(change).__name__}")
    change.run(library, library.dataset(table.uri))
    table.note(change.after(table.model, 0), _fields_after(table.fields[table.version], change))


STEPS = st.sampled_from([_change, _change, _change, _upsert, _compact, _index, _restore, _overwrite])


def _by_type(rows: list[dict[str, Any]]) -> dict[str, dict[int, dict[str, Any]]]:
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for row in rows:
        facts = [row.pop(name) for name in FEED]
        same = found.setdefault(facts[0], {})
        assert facts[3] not in same, "a row comes twice in one version"
        same[facts[3]] = row
    return found


def _check_pair(table: Table, rows: list[dict[str, Any]], before: int, after: int, end: int) -> None:
    """The rows of a feed from one version to another are the difference of the two snapshots."""
    old, new = table.rows(before, end), table.rows(after, end)
    both = old.keys() & new.keys()
    updated = {id for id in both if old[id]["updated"] != new[id]["updated"]}
    for each in (*old.values(), *new.values()):
        each.pop("updated")
    shown = table.shown((before, after), end)
    same = ((old[id][name], new[id][name]) for id in both - updated for name in shown)
    assert all(one == other for one, other in same), "the snapshots themselves disagree"
    wanted = {
        "delete": {id: old[id] for id in old.keys() - new.keys()},
        "update_preimage": {id: old[id] for id in updated},
        "update_postimage": {id: new[id] for id in updated},
        "insert": {id: new[id] for id in new.keys() - old.keys()},
    }
    assert _by_type(rows) == {kind: rows for kind, rows in wanted.items() if rows}


@pytest.mark.timeout(900)
def _read(feed: Changes, limits: FeedLimits) -> pa.Table:
    """The rows of a feed that is cut by other limits."""
    tasks = replace(feed._plan, limits=limits).tasks()
    return pa.Table.from_batches(run_change_tasks(tasks, feed._snapshot.world), feed.schema)


@settings(max_examples=max(10, settings.default.max_examples // 2))
@given(data=st.data(), size=st.integers(0, 24), per_file=st.integers(4, 12))
def test_the_feed_is_the_difference_of_the_snapshots(data: st.DataObject, size: int, per_file: int) -> None:
    with tempfile.TemporaryDirectory(prefix="tablewright-feed-") as folder:
        uri = str(Path(folder) / "t.lance")
        model = created(data.draw(LIBRARIES), uri, size, per_file=per_file, stable=True)
        table = Table(uri, {1: model}, {1: {name: next(FIELDS) for name in model.columns}})
        for _ in range(data.draw(st.integers(1, STEPS_MAX))):
            step = data.draw(STEPS)
            event(step.__name__)
            step(table, data)
        end = table.version
        dataset = tw.dataset(uri)
        feed = _read(dataset.changes(0), FeedLimits(few_fragments=data.draw(st.sampled_from([0, 16]))))
        assert [name for name in feed.schema.names if name not in FEED] == list(table.model.columns)
        told: dict[int, list[dict[str, Any]]] = {}
        for row in feed.to_pylist():
            told.setdefault(row["_commit_version"], []).append(row)
        assert list(told) == sorted(told)
        for version in range(1, end + 1):
            _check_pair(table, told.get(version, []), version - 1, version, end)
        for _ in range(2):
            begin = data.draw(st.integers(0, end))
            until = data.draw(st.integers(max(begin, 1), end))
            net = dataset.changes(begin, until, net=True).to_table().to_pylist()
            _check_pair(table, net, begin, until, until)

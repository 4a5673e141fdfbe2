"""Random histories of one table, each step by one library or the other, against a plain model.

After every step the model, Tablewright and pylance agree: rows in order, row ids, versions of rows, count, tags; at the
end every version there ever was reads as the model remembers it.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.caches import BUDGETS, cached
from tests.depth import deep

import tablewright as tw

LIBRARIES = st.sampled_from([tw, lance])
SYSTEM = ["_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"]


@dataclass(frozen=True)
class Row:
    """One live row: its values, its stable id, where it is, and the versions that made and changed it."""

    id: int
    text: str | None
    row_id: int
    fragment: int
    offset: int
    created: int
    updated: int


@dataclass(frozen=True)
class Version:
    """One version of the model: its rows in order, and the two marks that only grow."""

    rows: tuple[Row, ...] = ()
    next_row_id: int = 0
    next_fragment: int = 0


def _values(start: int, count: int) -> list[tuple[int, str | None]]:
    return [(i, None if i % 4 == 1 else f"text {i}") for i in range(start, start + count)]


def _table(values: list[tuple[int, str | None]]) -> pa.Table:
    ids, texts = zip(*values, strict=True) if values else ((), ())
    return pa.table({"id": pa.array(ids, pa.int64()), "text": pa.array(texts, pa.string())})


def _appended(base: Version, values: list[tuple[int, str | None]], per_file: int, version: int) -> Version:
    rows = list(base.rows)
    for position, (id, text) in enumerate(values):
        fragment, offset = base.next_fragment + position // per_file, position % per_file
        rows.append(Row(id, text, base.next_row_id + position, fragment, offset, version, version))
    files = -(-len(values) // per_file)
    return Version(tuple(rows), base.next_row_id + len(values), base.next_fragment + files)


class Histories(RuleBasedStateMachine):
    """One table; every rule is a step that either library can take."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="tablewright-histories-"))
        self.uri = str(self.folder / "t.lance")
        self.model: list[Version] = []
        self.tags: dict[str, int] = {}
        self.kinds = ["create"]
        self.stable = False
        self.next_id = 0
        self.cache = ExitStack()

    def teardown(self) -> None:
        with self.cache:
            for number in range(1, len(self.model) + 1):
                self._compare(tw.dataset(self.uri, version=number), number)
        shutil.rmtree(self.folder)

    # -- steps

    @initialize(
        library=LIBRARIES,
        stable=st.booleans(),
        count=st.integers(0, 6),
        per_file=st.integers(1, 4),
        budget=st.sampled_from(list(BUDGETS)),
    )
    def create(self, library: Any, stable: bool, count: int, per_file: int, budget: str) -> None:
        self.cache.enter_context(cached(budget))
        self.stable = stable
        values = self._fresh(count)
        library.write_dataset(_table(values), self.uri, max_rows_per_file=per_file, enable_stable_row_ids=stable)
        self.model.append(_appended(Version(), values, per_file, 1))

    @rule(library=LIBRARIES, count=st.integers(0, 5), per_file=st.integers(1, 4))
    def append(self, library: Any, count: int, per_file: int) -> None:
        values = self._fresh(count)
        library.write_dataset(_table(values), self.uri, mode="append", max_rows_per_file=per_file)
        self._add(_appended(self.latest, values, per_file, self.version + 1))

    @rule(library=LIBRARIES, count=st.integers(1, 3), data=st.data())
    def append_through_a_stale_handle(self, library: Any, count: int, data: st.DataObject) -> None:
        """Only an overwrite or restore in between turns a stale append away."""
        oldest = max((n for n, kind in enumerate(self.kinds, 1) if kind in ("overwrite", "restore")), default=1)
        version = data.draw(st.integers(oldest, self.version))
        values = self._fresh(count)
        library.dataset(self.uri, version=version).insert(_table(values))
        self._add(_appended(self.latest, values, count, self.version + 1))

    @rule(library=LIBRARIES, count=st.integers(0, 4), per_file=st.integers(1, 4))
    def overwrite(self, library: Any, count: int, per_file: int) -> None:
        values = self._fresh(count)
        library.write_dataset(_table(values), self.uri, mode="overwrite", max_rows_per_file=per_file)
        emptied = replace(self.latest, rows=())
        self._add(_appended(emptied, values, per_file, self.version + 1), "overwrite")

    @rule(library=LIBRARIES, data=st.data())
    def restore(self, library: Any, data: st.DataObject) -> None:
        version = data.draw(st.integers(1, self.version))
        library.dataset(self.uri, version=version).restore()
        self._add(replace(self.latest, rows=self.model[version - 1].rows), "restore")

    @precondition(lambda self: self.model and self.latest.rows)
    @rule(data=st.data())
    def delete_by_pylance(self, data: st.DataObject) -> None:
        victims = data.draw(st.sets(st.sampled_from([row.id for row in self.latest.rows]), min_size=1))
        lance.dataset(self.uri).delete(f"id in ({', '.join(map(str, sorted(victims)))})")
        self._delete(victims)

    @precondition(lambda self: self.model and self.latest.rows)
    @rule(data=st.data())
    def delete_by_commit(self, data: st.DataObject) -> None:
        victims = data.draw(st.sets(st.sampled_from([row.id for row in self.latest.rows]), min_size=1))
        predicate = f"id in ({', '.join(map(str, sorted(victims)))})"
        dataset = tw.dataset(self.uri)
        touched = {row.fragment for row in self.latest.rows if row.id in victims}
        left = {id: dataset.get_fragment(id).delete(predicate) for id in sorted(touched)}
        updated = [metadata for metadata in left.values() if metadata is not None]
        gone = [id for id, metadata in left.items() if metadata is None]
        operation = tw.LanceOperation.Delete(updated, gone, predicate)
        tw.LanceDataset.commit(self.uri, operation, read_version=dataset.version)
        self._delete(victims)

    @precondition(lambda self: self.model and self.latest.rows)
    @rule(data=st.data())
    def update_by_pylance(self, data: st.DataObject) -> None:
        victims = data.draw(st.sets(st.sampled_from([row.id for row in self.latest.rows]), min_size=1))
        lance.dataset(self.uri).update({"text": "'new'"}, where=f"id in ({', '.join(map(str, sorted(victims)))})")
        kept = [row for row in self.latest.rows if row.id not in victims]
        moved = [row for row in self.latest.rows if row.id in victims]
        fragment, version = self.latest.next_fragment, self.version + 1
        rows = [
            replace(row, text="new", fragment=fragment, offset=offset, updated=version)
            for offset, row in enumerate(moved)
        ]
        self._add(replace(self.latest, rows=(*kept, *rows), next_fragment=fragment + 1))

    @rule(library=LIBRARIES, name=st.sampled_from(["a", "b", "c"]), data=st.data())
    def tag(self, library: Any, name: str, data: st.DataObject) -> None:
        version = data.draw(st.integers(1, self.version))
        tags = library.dataset(self.uri).tags
        (tags.update if name in self.tags else tags.create)(name, version)
        self.tags[name] = version

    @precondition(lambda self: self.tags)
    @rule(library=LIBRARIES, data=st.data())
    def untag(self, library: Any, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.tags)))
        library.dataset(self.uri).tags.delete(name)
        del self.tags[name]

    @rule(library=LIBRARIES, value=st.sampled_from(["x", "y"]))
    def configure(self, library: Any, value: str) -> None:
        library.dataset(self.uri).update_config({"setting": value})
        self._add(self.latest)

    # -- what holds after each

    @invariant()
    def all_agree(self) -> None:
        if not self.model:
            return
        here, there = tw.dataset(self.uri), lance.dataset(self.uri)
        there.validate()
        here.validate()
        self._compare(here, self.version)
        self._compare(there, self.version)
        for dataset in (here, there):
            assert {name: tag["version"] for name, tag in dataset.tags.list().items()} == self.tags
            assert dataset.count_rows("text is null") == sum(row.text is None for row in self.latest.rows)
        assert [f.metadata.to_json() for f in here.get_fragments()] == [
            f.metadata.to_json() for f in there.get_fragments()
        ]

    def _compare(self, dataset: Any, number: int) -> None:
        rows = self.model[number - 1].rows
        assert dataset.version == number
        found = dataset.to_table(columns=["id", "text", *SYSTEM]).to_pydict()
        addresses = [row.fragment << 32 | row.offset for row in rows]
        assert found["id"] == [row.id for row in rows]
        assert found["text"] == [row.text for row in rows]
        assert found["_rowaddr"] == addresses
        assert found["_rowid"] == ([row.row_id for row in rows] if self.stable else addresses)
        if self.stable:
            assert found["_row_created_at_version"] == [row.created for row in rows]
            assert found["_row_last_updated_at_version"] == [row.updated for row in rows]

    # -- the model's own bookkeeping

    @property
    def latest(self) -> Version:
        return self.model[-1]

    @property
    def version(self) -> int:
        return len(self.model)

    def _add(self, version: Version, kind: str = "") -> None:
        self.model.append(version)
        self.kinds.append(kind)

    def _delete(self, victims: set[int]) -> None:
        self._add(replace(self.latest, rows=tuple(row for row in self.latest.rows if row.id not in victims)))

    def _fresh(self, count: int) -> list[tuple[int, str | None]]:
        self.next_id += count
        return _values(self.next_id - count, count)


TestHistories = pytest.mark.slow(Histories.TestCase)
TestHistories.settings = settings(
    max_examples=max(1, settings.default.max_examples * deep(2, 5) // 5), stateful_step_count=12
)

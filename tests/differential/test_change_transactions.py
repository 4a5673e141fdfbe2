"""The transactions that we write tell the truth: they say what the manifest did, also after a rebase.

pylance decides from transactions alone whether it may pass another writer's commit. So each transaction of ours is
compared with the difference of the two manifests around it; and pylance, with a handle from before, goes past it: no
deleted row comes back, no change is lost. What has to come out is computed by a plain dictionary of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyroaring import BitMap
from tests.depth import deep

from .referee import UNDER_TEST, assert_same_dataset, lance, ours
from .twins import assert_indices_answer, linked, outcome, update

pytestmark = pytest.mark.skipif(UNDER_TEST != "tablewright", reason="it is about our transactions")

T = TypeVar("T")
Model = dict[int, dict[str, Any]]

WIDTH = 64
SIZES = (8, 200, 8, 200)  # small fragments have columns rewritten, large ones have rows moved, when we may choose
NEW = range(1000, 1003)


def _rows(ids: range) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "x": pa.array([float(i) for i in ids]),
            "s": pa.array([f"s{i % 50}" for i in ids]),
            "st": pa.array([{"a": i, "b": f"{i}"} for i in ids], pa.struct([("a", pa.int64()), ("b", pa.string())])),
            "v": pa.array([[float(i)] * WIDTH for i in ids], pa.list_(pa.float32(), WIDTH)),
        }
    )


def _model() -> Model:
    return {i: {"x": float(i), "s": f"s{i % 50}", "a": i} for i in range(sum(SIZES)) if i not in (4, 300)}


@pytest.fixture(scope="module", params=["addresses", "stable"])
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp(request.param) / "base.lance")
    start = 0
    for size in SIZES:
        options = {"mode": "append" if start else "create", "enable_stable_row_ids": request.param == "stable"}
        dataset = lance.write_dataset(_rows(range(start, start + size)), uri, **options)
        start += size
    dataset.delete("id in (4, 300)")
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("s", "BITMAP")
    dataset.create_scalar_index("x", "BTREE")
    return uri


@dataclass(frozen=True)
class Action:
    """A change: how a dataset does it (ours or pylance's), and what becomes of the rows."""

    run: Callable[[Any], Any]
    rows: Callable[[Model], Any]


def _set(model: Model, ids: list[int], **changes: Callable[[dict[str, Any]], Any]) -> None:
    for id in ids:
        if id in model:
            old = dict(model[id])
            model[id].update({name: change(old) for name, change in changes.items()})


def _plus(amount: float) -> dict[str, Callable[[dict[str, Any]], Any]]:
    return {"x": lambda row: row["x"] + amount}


def _drop(model: Model, ids: Any) -> None:
    for id in ids:
        model.pop(id, None)


ACTIONS: dict[str, Action] = {
    "delete": Action(lambda ds: ds.delete("id in (1, 9, 10, 220)"), lambda m: _drop(m, (1, 9, 10, 220))),
    "delete a fragment": Action(lambda ds: ds.delete("id < 8 or id = 11"), lambda m: _drop(m, (*range(8), 11))),
    "delete nothing": Action(lambda ds: ds.delete("id = 5000"), lambda m: None),
    "update rows": Action(
        lambda ds: update(ds, {"x": "x + 1000"}, "id in (2, 12, 13, 221)", "rewrite_rows"),
        lambda m: _set(m, [2, 12, 13, 221], **_plus(1000)),
    ),
    "update rows of a fragment": Action(
        lambda ds: update(ds, {"x": "x + 2000"}, "id < 8 or id = 14", "rewrite_rows"),
        lambda m: _set(m, [*range(8), 14], **_plus(2000)),
    ),
    "update columns": Action(
        lambda ds: update(ds, {"s": "concat(s, '!')"}, "id in (2, 3, 12, 15, 222)", "rewrite_columns"),
        lambda m: _set(m, [2, 3, 12, 15, 222], s=lambda row: row["s"] + "!"),
    ),
    "update other columns": Action(
        lambda ds: update(ds, {"x": "x + 3000"}, "id in (3, 5, 15, 16)", "rewrite_columns"),
        lambda m: _set(m, [3, 5, 15, 16], **_plus(3000)),
    ),
    "update a member": Action(
        lambda ds: ds.update({"st.a": "st.a + 7"}, where="id in (6, 17)", write_mode="rewrite_columns"),
        lambda m: _set(m, [6, 17], a=lambda row: row["a"] + 7),
    ),
    "update both ways": Action(
        lambda ds: update(ds, {"x": "x + 4000"}, "id in (2, 6, 18, 210)", "auto"),
        lambda m: _set(m, [2, 6, 18, 210], **_plus(4000)),
    ),
    "update nothing": Action(lambda ds: update(ds, {"x": "0"}, "id = 5000", "auto"), lambda m: None),
    "append": Action(
        lambda ds: ds.insert(_rows(NEW)),
        lambda m: m.update({i: {"x": float(i), "s": f"s{i % 50}", "a": i} for i in NEW}),
    ),
    "add columns": Action(lambda ds: ds.add_columns({"y": "id * 2"}), lambda m: None),
}
CHANGES = [name for name in ACTIONS if name != "append"]
BY_PYLANCE = {  # what pylance can do just so
    "delete": ACTIONS["delete"],
    "delete a fragment": ACTIONS["delete a fragment"],
    "update rows": Action(
        lambda ds: ds.update({"x": "x + 1000"}, where="id in (2, 12, 13, 221)"), ACTIONS["update rows"].rows
    ),
    "append": ACTIONS["append"],
    "add columns": ACTIONS["add columns"],
    "config": Action(lambda ds: ds.update_config({"k": "v"}), lambda m: None),
    "index": Action(lambda ds: ds.create_scalar_index("st.a", "BTREE"), lambda m: None),
    "compaction": Action(lambda ds: ds.optimize.compact_files(target_rows_per_fragment=20), lambda m: None),
    "rename": Action(lambda ds: ds.alter_columns({"path": "v", "name": "w"}), lambda m: None),
}


PROBES: dict[str, Callable[[int, dict[str, Any]], bool]] = {
    "id in (1, 2, 9, 12, 220)": lambda id, row: id in (1, 2, 9, 12, 220),
    "x > 999": lambda id, row: row["x"] > 999,
    "x = 2": lambda id, row: row["x"] == 2,
    "x = 12": lambda id, row: row["x"] == 12,
    "s = 's2'": lambda id, row: row["s"] == "s2",
    "s = 's12!'": lambda id, row: row["s"] == "s12!",
    "x = 1002": lambda id, row: row["x"] == 1002,
}


def _assert_rows(uri: str, model: Model) -> None:
    """pylance and we read what the model holds; the table is valid; indices answer as the model does."""
    read = assert_same_dataset(uri)
    rows = read.select(["id", "x", "s", "st"]).to_pylist()
    found = {row["id"]: {"x": row["x"], "s": row["s"], "a": row["st"]["a"]} for row in rows}
    assert found == model
    assert len(rows) == len(model)
    ids, vectors = read["id"], read["w" if "w" in read.column_names else "v"]
    assert pc.list_element(vectors, 0).cast(pa.int64()).equals(ids)
    if "y" in read.column_names:
        made = dict(zip(ids.to_pylist(), read["y"].to_pylist(), strict=True))
        assert all(made[id] == 2 * id for id in model if id not in NEW)
    assert_indices_answer(
        uri, {sql: sorted(id for id, row in model.items() if matches(id, row)) for sql, matches in PROBES.items()}
    )


# ------------------------------------------------------------------------------------------------ truth


def _columns(metadata: dict[str, Any]) -> dict[int, tuple[str, int]]:
    """Where each field of a fragment stands: file and column."""
    return {
        field: (file["path"], column)
        for file in metadata["files"]
        for field, column in zip(file["fields"], file["column_indices"], strict=True)
        if field >= 0
    }


def _placed(metadata: Any) -> dict[str, Any]:
    """What a fragment's metadata say about files and deletions."""
    facts = metadata.to_json()
    return {name: facts[name] for name in ("id", "files", "physical_rows", "deletion_file")}


def _values(dataset: Any) -> dict[int, Any]:
    names = [name for name in ("id", "x", "s", "st") if name in dataset.schema.names]
    rows = dataset.to_table(columns=[*names, "_rowaddr"]).to_pylist()
    return {row.pop("_rowaddr"): row for row in rows}


def assert_truthful(uri: str, version: int) -> Any:
    """The transaction of a version says what its manifest did to the one before; returns the operation."""
    before, after = lance.dataset(uri, version=version - 1), lance.dataset(uri, version=version)
    transaction = after.read_transaction(version)
    assert transaction.read_version < version
    mine = ours.dataset(uri).read_transaction(version)
    assert (mine.uuid, type(mine.operation).__name__) == (transaction.uuid, type(transaction.operation).__name__)
    operation = transaction.operation
    old = {fragment.fragment_id: fragment.metadata.to_json() for fragment in before.get_fragments()}
    new = {fragment.fragment_id: fragment.metadata.to_json() for fragment in after.get_fragments()}
    removed, added = old.keys() - new.keys(), new.keys() - old.keys()
    hidden = {id for id in old.keys() & new.keys() if old[id]["deletion_file"] != new[id]["deletion_file"]}
    patched = {id for id in old.keys() & new.keys() if old[id]["files"] != new[id]["files"]}
    placed = {fragment.fragment_id: _placed(fragment.metadata) for fragment in after.get_fragments()}
    kind = type(operation).__name__
    if kind == "Merge":
        assert {fragment.id: _placed(fragment) for fragment in operation.fragments} == placed
        assert operation.schema.to_pyarrow().names == after.schema.names
        assert not removed and not added and not hidden
        return operation
    updated = {fragment.id: _placed(fragment) for fragment in operation.updated_fragments}
    assert updated == {id: placed[id] for id in hidden | patched}
    if kind == "Delete":
        assert set(operation.deleted_fragment_ids) == removed
        assert not added and not patched
        return operation
    assert kind == "Update"
    assert set(operation.removed_fragment_ids) == removed
    files = [[file["path"] for file in fragment.to_json()["files"]] for fragment in operation.new_fragments]
    assert files == [[file["path"] for file in new[id]["files"]] for id in sorted(added)]
    moved = {field for id in patched for field in _moved(old[id], new[id])}
    assert moved == _with_stored(after, operation.fields_modified)
    assert operation.update_mode == ("rewrite_columns" if patched else "rewrite_rows")
    _assert_offsets(before, after, operation, patched)
    return operation


def _moved(old: dict[str, Any], new: dict[str, Any]) -> set[int]:
    was, now = _columns(old), _columns(new)
    assert was.keys() == now.keys(), "no field appears or goes"
    return {field for field in was if was[field] != now[field]}


def _with_stored(dataset: Any, fields: list[int]) -> set[int]:
    """Of these fields, those that have a column of their own: structs and lists have none."""
    stored = {field for fragment in dataset.get_fragments() for file in fragment.data_files() for field in file.fields}
    return set(fields) & stored


def _assert_offsets(before: Any, after: Any, operation: Any, patched: set[int]) -> None:
    """The offsets of rows changed in place are exactly the rows that differ, or were updated in this version."""
    claimed = {id: set(BitMap.deserialize(data)) for id, data in (operation.updated_fragment_offsets or {}).items()}
    assert claimed.keys() == patched
    was, now = _values(before), _values(after)
    for id in patched:
        differ = {address & 0xFFFFFFFF for address in now if address >> 32 == id and now[address] != was.get(address)}
        live = {address & 0xFFFFFFFF for address in now if address >> 32 == id}
        assert claimed[id] & live == differ
    if after.has_stable_row_ids:
        rows = after.to_table(columns=["_rowaddr"], filter=f"_row_last_updated_at_version = {after.version}")
        touched = {(address >> 32, address & 0xFFFFFFFF) for address in rows["_rowaddr"].to_pylist()}
        in_place = {(id, offset) for id, offset in touched if id in patched}
        expected = {(id, offset) for id in patched for offset in claimed[id] if (id << 32) + offset in now}
        assert in_place == expected


@pytest.mark.parametrize("name", CHANGES)
def test_one_change(base: str, tmp_path: Path, name: str) -> None:
    uri, model = linked(base, tmp_path / "t.lance"), _model()
    start = lance.dataset(uri).version
    ACTIONS[name].run(ours.dataset(uri))
    ACTIONS[name].rows(model)
    assert lance.dataset(uri).version == start + 1
    operation = assert_truthful(uri, start + 1)
    if name == "update both ways":
        assert operation.new_fragments and operation.fields_modified, "this table was made to need both ways"
    if name.startswith("update") and operation.new_fragments:
        assert set(operation.fields_for_preserving_frag_bitmap) == {1}
    if name == "update a member":
        assert set(operation.fields_modified) == {3, 4, 5}
    _assert_rows(uri, model)


def _turns(base: str, cases: Iterable[T], turn: int) -> list[T]:
    """Every other case: pairs of changes take turns on the two kinds of table, so each change meets both kinds."""
    return list(cases)[("/stable" in base) ^ turn % 2 :: 2]


@pytest.mark.parametrize("second", CHANGES)
@pytest.mark.parametrize("writer", ["ours", "pylance"])
def test_a_change_past_another(base: str, tmp_path: Path, writer: str, second: str) -> None:
    """Our handle is older than somebody's commit. We come out as if we had come second, and say what we did."""
    firsts = ACTIONS if writer == "ours" else BY_PYLANCE
    for name, first in _turns(base, firsts.items(), CHANGES.index(second)):
        uri, model = linked(base, tmp_path / f"{name}.lance"), _model()
        stale = ours.dataset(uri)
        first.run((ours if writer == "ours" else lance).dataset(uri))
        first.rows(model)
        start = lance.dataset(uri).version
        _, refusal = outcome(ACTIONS[second].run, stale)
        if refusal is not None:
            assert isinstance(refusal, ours.errors.CommitConflict | ours.errors.InvalidRequest), repr(refusal)
            assert second == "add columns" and name in ("add columns", "compaction"), f"{name}: {refusal!r}"
            assert lance.dataset(uri).version == start
        else:
            ACTIONS[second].rows(model)
            assert_truthful(uri, lance.dataset(uri).version)
        _assert_rows(uri, model)


LATE: dict[str, Action] = {
    "delete of others": Action(lambda ds: ds.delete("id in (0, 7, 20, 223)"), lambda m: _drop(m, (0, 7, 20, 223))),
    "delete of the same": Action(
        lambda ds: ds.delete("id in (1, 2, 3, 9, 12, 15)"), lambda m: _drop(m, (1, 2, 3, 9, 12, 15))
    ),
    "delete by value": Action(
        lambda ds: ds.delete("x in (2, 3, 12, 15)"), lambda m: _drop(m, [i for i in m if m[i]["x"] in (2, 3, 12, 15)])
    ),
    "delete by a value that was not there": Action(
        lambda ds: ds.delete("x > 900 and id < 900"), lambda m: _drop(m, [i for i in m if m[i]["x"] > 900 and i < 900])
    ),
    "delete of a fragment": Action(lambda ds: ds.delete("id < 8"), lambda m: _drop(m, range(8))),
    "update of others": Action(
        lambda ds: ds.update({"x": "x + 0.5"}, where="id in (0, 7, 20)"), lambda m: _set(m, [0, 7, 20], **_plus(0.5))
    ),
    "update of the same": Action(
        lambda ds: ds.update({"x": "x + 0.5"}, where="id in (1, 2, 3, 12, 15, 18)"),
        lambda m: _set(m, [1, 2, 3, 12, 15, 18], **_plus(0.5)),
    ),
    "update of another column": Action(
        lambda ds: ds.update({"s": "'late'"}, where="id in (2, 5, 16)"),
        lambda m: _set(m, [2, 5, 16], s=lambda row: "late"),
    ),
    "append": ACTIONS["append"],
    "upsert": Action(
        lambda ds: ds.merge_insert("id").when_matched_update_all().execute(_rows(range(2, 4))),
        lambda m: m.update({id: {"x": float(id), "s": f"s{id}", "a": id} for id in (2, 3) if id in m}),
    ),
    "index": Action(lambda ds: ds.create_scalar_index("x", "BTREE", name="late"), lambda m: None),
    "index of texts": Action(lambda ds: ds.create_scalar_index("s", "BITMAP", name="late"), lambda m: None),
    "compaction": Action(lambda ds: ds.optimize.compact_files(target_rows_per_fragment=20), lambda m: None),
    "new column": Action(lambda ds: ds.add_columns({"late": "x + 1"}), lambda m: None),
    "rename": Action(lambda ds: ds.alter_columns({"path": "st.b", "name": "bb"}), lambda m: None),
}


MAY_COME_FIRST = "delete by a value that was not there"
"""pylance finds nothing in its own version and commits that: as if it had come before us, which is right as well."""
REBASED = ["delete of others", "delete of the same", "delete by value", "update of the same", "index", "upsert"]


@pytest.mark.parametrize("name", [name for name in CHANGES if "nothing" not in name])
@pytest.mark.parametrize("rebased", [False, True], ids=["plain", "rebased"])
def test_pylance_goes_past_our_change(base: str, tmp_path: Path, name: str, rebased: bool) -> None:
    """A pylance handle from before our commit: it lands or it refuses, and no change of ours is lost."""
    for late in _turns(base, REBASED if rebased else LATE, CHANGES.index(name) + rebased):
        uri, model = linked(base, tmp_path / f"{late}.lance"), _model()
        stale, mine = lance.dataset(uri), ours.dataset(uri)
        if rebased:  # our own commit is rebased past somebody's delete in the fragments that we touch
            lance.dataset(uri).delete("id in (5, 19, 224)")
            _drop(model, (5, 19, 224))
        ACTIONS[name].run(mine)
        ACTIONS[name].rows(model)
        _, refusal = outcome(LATE[late].run, stale)
        if refusal is not None:
            assert late in ("index", "index of texts", "compaction", "new column", "rename"), f"{late}: {refusal!r}"
            assert "conflict" in str(refusal).lower(), f"{late}: {refusal!r}"
        elif late != MAY_COME_FIRST:
            LATE[late].rows(model)
        try:
            _assert_rows(uri, model)
        except AssertionError as difference:
            raise AssertionError(f"{late}: {difference}") from difference


IN_CHAINS = [
    pytest.param(kind, name, id=f"{kind}-{name}")
    for stable, kind in enumerate(["addresses", "stable"])
    for number, name in enumerate(CHANGES)
    if deep(1, 2) > 1 or (number + stable) % 2 == 0
]
"""Each change on both kinds of table; in CI they take turns."""


@pytest.mark.parametrize(("base", "name"), IN_CHAINS, indirect=["base"])
def test_a_chain_of_stale_writers(base: str, tmp_path: Path, name: str) -> None:
    """Everybody starts from the same version, we and pylance in turns; all land, one after the other."""
    uri, model = linked(base, tmp_path / "t.lance"), _model()
    steps: list[tuple[Any, Action]] = [
        (ours.dataset(uri), ACTIONS["delete"]),
        (lance.dataset(uri), LATE["update of others"]),
        (ours.dataset(uri), ACTIONS[name]),
        (lance.dataset(uri), LATE["delete of others"]),
        (ours.dataset(uri), ACTIONS["update columns"]),
        (lance.dataset(uri), LATE["update of the same"]),
        (ours.dataset(uri), ACTIONS["update both ways"]),
        (lance.dataset(uri), LATE["append"]),
        (ours.dataset(uri), ACTIONS["delete a fragment"]),
    ]
    for dataset, action in steps:
        action.run(dataset)
        action.rows(model)
        _assert_rows(uri, model)
    for version in range(lance.dataset(base).version + 1, lance.dataset(uri).version + 1):
        if type(lance.dataset(uri).read_transaction(version).operation).__name__ in ("Delete", "Update", "Merge"):
            assert_truthful_or_pylances(uri, version)


def assert_truthful_or_pylances(uri: str, version: int) -> None:
    """pylance's own updates carry no offsets, and say what they did otherwise."""
    operation = lance.dataset(uri).read_transaction(version).operation
    if getattr(operation, "update_mode", None) != "rewrite_columns" or operation.updated_fragment_offsets:
        assert_truthful(uri, version)


def test_lies_are_found(base: str, tmp_path: Path) -> None:
    """The judge of this file is judged: a transaction that leaves something out does not pass."""
    for number, (name, lie) in enumerate(
        {
            "delete": {"updated_fragments": []},
            "update rows": {"updated_fragments": []},
            "update columns": {"updated_fragments": [], "updated_fragment_offsets": None},
            "update other columns": {"fields_modified": []},
            "update both ways": {"new_fragments": []},
        }.items()
    ):
        uri = linked(base, tmp_path / f"{number}.lance")
        start = lance.dataset(uri).version
        ACTIONS[name].run(ours.dataset(uri))
        assert_truthful(uri, start + 1)
        with pytest.MonkeyPatch.context() as patched:
            honest = lance.LanceDataset.read_transaction

            def lying(self: Any, version: int, honest: Any = honest, lie: dict[str, Any] = lie) -> Any:
                transaction = honest(self, version)
                for field, value in lie.items():
                    setattr(transaction.operation, field, value)
                return transaction

            patched.setattr(lance.LanceDataset, "read_transaction", lying)
            with pytest.raises(AssertionError):
                assert_truthful(uri, start + 1)

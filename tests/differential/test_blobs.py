"""Blob columns: pylance writes them, we read them; we change the table, pylance reads it; and the other way round.

Two deliberate differences, both about nulls (docs/design/0005): files of version 2.0 describe a null blob as position
1 and size 0, which pylance shows and we show as null; and a null blob has no members, so ``b.kind = 0`` is not true of
it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.differential.referee import assert_same_rows, lance, ours

from tablewright.storage import open_store

GOLDEN = Path(__file__).parents[1] / "golden" / "lance-blob"
NAMES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
HANDLINGS = [None, "blobs_descriptions", "all_descriptions", "all_binary"]


@pytest.fixture(params=NAMES)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A copy of a golden table."""
    shutil.copytree(GOLDEN / request.param / "table", tmp_path / request.param)
    return str(tmp_path / request.param)


def _with_nulls(table: pa.Table) -> pa.Table:
    """What pylance read from files of version 2.0, with nulls where it shows their stored form."""
    rows = [
        {name: None if value == {"position": 1, "size": 0} else value for name, value in row.items()}
        for row in table.to_pylist()
    ]
    return pa.Table.from_pylist(rows, schema=table.schema)


def _same(uri: str, memory: str | None = None, **options: Any) -> pa.Table:
    """Both read the same; returns it."""
    read = ours.dataset(memory or uri).to_table(**options)
    expected = lance.dataset(uri).to_table(**options)
    assert_same_rows(read, _with_nulls(expected) if "v1_2.0" in uri else expected)
    return read


def _blob_paths(schema: pa.Schema) -> list[str]:
    names = [
        field.name for field in schema if "blob" in str(field.type) or b"lance-encoding:blob" in (field.metadata or {})
    ]
    return ["st.x" if name == "st" else name for name in names if name != "l"]


@pytest.mark.parametrize("handling", HANDLINGS)
def test_every_column_and_filter(golden: str, handling: str | None) -> None:
    if handling in ("blobs_descriptions", "all_descriptions") and Path(golden).name not in ("v1_2.1", "v2_2.2"):
        return  # they are the default under other names
    schema = lance.dataset(golden).schema
    assert ours.dataset(golden).schema.equals(schema, check_metadata=True)
    _same(golden, blob_handling=handling)
    for name in schema.names:
        _same(golden, columns=[name], blob_handling=handling)
        _same(golden, columns=[name], filter="id >= 2", blob_handling=handling)
    _same(golden, columns=schema.names[::-1], filter="id in (0, 3)", blob_handling=handling)
    for path in _blob_paths(schema):
        if "v1_2.0" not in golden:  # there pylance takes a null for a value
            _same(golden, filter=f"{path} is not null", blob_handling=handling)
            _same(golden, columns=["id"], filter=f"{path} is null", blob_handling=handling)


def test_nulls_are_counted(golden: str) -> None:
    binary = lance.dataset(golden).to_table(blob_handling="all_binary")
    for path in _blob_paths(lance.dataset(golden).schema):
        column = binary.combine_chunks().flatten()["st.x"] if path == "st.x" else binary[path]
        assert ours.dataset(golden).count_rows(f"{path} is null") == column.null_count


@pytest.mark.parametrize("filter", ["{} is not null", "{}.size > 10", "{}.kind = 1", "{}.size > 10 and id > 3"])
def test_filters_over_descriptions(golden: str, filter: str) -> None:
    for path in _blob_paths(lance.dataset(golden).schema):
        if "v1" in Path(golden).name.split("_")[0]:
            continue
        text = filter.format(path)
        assert ours.dataset(golden).count_rows(text) == lance.dataset(golden).count_rows(text)
        _same(golden, filter=text)
        _same(golden, columns=["id"], filter=text)


def test_members_of_descriptions(golden: str) -> None:
    if Path(golden).name.startswith(("v1", "mixed")):
        return  # pylance has no such columns there, or shows members of null blobs
    for path in _blob_paths(lance.dataset(golden).schema):
        _same(golden, columns=[f"{path}.size"])
        _same(golden, columns=["id", f"{path}.kind"], filter=f"{path}.size > 0")
        if "." not in path:
            _same(golden, columns={"n": f"{path}.size", "whole": path})


def test_take_fragments_and_streams(golden: str) -> None:
    here, there = ours.dataset(golden), lance.dataset(golden)
    rows = [3, 0, 0, 2]
    names = [None, *([name] for name in there.schema.names)]
    for columns in names:
        expected = there.take(rows, columns=columns)
        expected = _with_nulls(expected) if "v1_2.0" in golden else expected
        assert_same_rows(here.take(rows, columns=columns), expected, metadata=False)
    for handling in HANDLINGS:
        expected = there.to_table(blob_handling=handling)
        expected = _with_nulls(expected) if "v1_2.0" in golden else expected
        batches = list(here.to_batches(batch_size=2, blob_handling=handling))
        assert max(batch.num_rows for batch in batches) <= 2
        assert_same_rows(pa.Table.from_batches(batches), expected)
        parts = [fragment.to_table(blob_handling=handling) for fragment in here.get_fragments()]
        assert_same_rows(pa.concat_tables(parts), expected)
        query = here.sql("SELECT * FROM dataset ORDER BY id")
        query = query if handling is None else query.blob_handling(handling)
        answer = pa.Table.from_batches(query.build().to_batch_records())
        order = expected.sort_by("id") if pa.types.is_integer(expected["id"].type) else expected
        assert answer.to_pylist() == order.to_pylist()


def test_unknown_handling(golden: str) -> None:
    with pytest.raises(ValueError, match="Invalid blob_handling: zz") as theirs:
        lance.dataset(golden).to_table(blob_handling="zz")
    with pytest.raises(ValueError, match="Invalid blob_handling: zz") as mine:
        ours.dataset(golden).to_table(blob_handling="zz")
    assert str(mine.value) == str(theirs.value)


# ------------------------------------------------------------------------------------------------- tables made here
def _values(rows: int, seed: int = 0) -> list[bytes | None]:
    chance = np.random.default_rng(seed)
    sizes = chance.choice([0, 3, 40, 90, 700], rows, p=[0.1, 0.3, 0.3, 0.295, 0.005])
    found = [bytes([(i + seed) % 251]) * int(size) for i, size in enumerate(sizes)]
    return [None if i % 7 == 3 else value for i, value in enumerate(found)]


def _blob(name: str, **options: Any) -> pa.Field:
    return lance.blob_field(name, inline_size_threshold=50, dedicated_size_threshold=500, **options)


def _table(rows: int, start: int = 0, values: list[bytes | None] | None = None) -> pa.Table:
    values = _values(rows, start) if values is None else values
    other = _values(rows, start + 1)
    fields = [
        pa.field("id", pa.int64()),
        _blob("b"),
        pa.field("s", pa.string()),
        _blob("c"),
        pa.field("n", pa.list_(pa.int32())),
    ]
    columns = [
        pa.array(range(start, start + rows), pa.int64()),
        lance.blob_array(values),
        pa.array([f"row {i}" for i in range(start, start + rows)]),
        lance.blob_array(other),
        pa.array([[i, i + 1] for i in range(start, start + rows)], pa.list_(pa.int32())),
    ]
    arrays = [
        column
        if not isinstance(column, pa.ExtensionArray)
        else pa.ExtensionArray.from_storage(field.type, column.storage)
        for column, field in zip(columns, fields, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _in_memory(uri: str) -> str:
    """A copy of a table in the memory of this process."""
    root, copy = Path(uri), f"memory://{Path(uri).parent.name}-{Path(uri).name}"
    store = open_store(copy)
    for path in root.rglob("*"):
        if path.is_file():
            store.put(path.relative_to(root).as_posix(), path.read_bytes())
    return copy


@pytest.fixture(params=["many_pages", "all_null", "all_empty", "deletions", "stable_ids"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    uri = str(tmp_path / request.param)
    match request.param:
        case "many_pages":
            lance.write_dataset(_table(20_000), uri, max_rows_per_file=15_000)
        case "all_null":
            lance.write_dataset(_table(50, values=[None] * 50), uri)
        case "all_empty":
            lance.write_dataset(_table(50, values=[b""] * 50), uri)
        case "deletions":
            lance.write_dataset(_table(200), uri, max_rows_per_file=80).delete("id % 3 = 0")
        case "stable_ids":
            ds = lance.write_dataset(_table(100), uri, max_rows_per_file=40, enable_stable_row_ids=True)
            ds.update({"s": "'moved'"}, where="id % 9 = 0")
            lance.write_dataset(_table(30, start=100), uri, mode="append")
    return uri


@pytest.mark.parametrize("place", ["local", "memory"])
def test_tables_of_pylance(made: str, place: str) -> None:
    memory = _in_memory(made) if place == "memory" else None
    for handling in (None, "all_binary"):
        _same(made, memory, blob_handling=handling)
        for name in ("id", "b", "s", "c", "n"):
            _same(made, memory, columns=[name], blob_handling=handling)
        _same(made, memory, columns=["c", "id"], filter="id % 11 = 5", blob_handling=handling)
        _same(made, memory, columns=["id", "b"], filter="b.size > 80", blob_handling=handling) if not handling else None
        _same(made, memory, filter="b is null", blob_handling=handling)
    here, there = ours.dataset(memory or made), lance.dataset(made)
    positions = [there.count_rows() - 1, 0, 17]
    assert_same_rows(here.take(positions), there.take(positions), metadata=False)
    if there.has_stable_row_ids:
        expected = there.to_table(with_row_id=True, blob_handling="all_binary")
        assert_same_rows(here.to_table(with_row_id=True, blob_handling="all_binary"), expected)


def test_external_blobs(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.bin").write_bytes(b"0123456789")
    uri = f"file://{tmp_path}/outside/a.bin"
    values = [lance.Blob(uri=uri), lance.Blob(uri=uri, position=2, size=3), None, b"own"]
    table = pa.table(
        [pa.array([1, 2, 3, 4]), lance.blob_array(values)],
        schema=pa.schema([pa.field("id", pa.int64()), lance.blob_field("b")]),
    )
    path = str(tmp_path / "t")
    lance.write_dataset(table, path, allow_external_blob_outside_bases=True)
    _same(path)
    assert _same(path, blob_handling="all_binary")["b"].to_pylist() == [b"0123456789", b"234", None, b"own"]
    (tmp_path / "outside" / "a.bin").unlink()
    _same(path)
    with pytest.raises(OSError, match=r"Not found: .*a\.bin"):
        ours.dataset(path).to_table(blob_handling="all_binary")


def test_a_dropped_blob_column(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(_table(100), uri)
    lance.dataset(uri).drop_columns(["b"])
    _same(uri)
    for name in ("id", "s", "c", "n"):
        _same(uri, columns=[name])


def test_wanted_columns_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of blobs are not copied where they are not asked for."""
    from tablewright.data import view

    uri = str(tmp_path / "t")
    large = [bytes([i]) * 60_000 for i in range(64)]
    schema = pa.schema([pa.field("id", pa.int64()), lance.blob_field("b"), pa.field("s", pa.string())])
    lance.write_dataset(
        pa.table([pa.array(range(64)), lance.blob_array(large), pa.array(["x"] * 64)], schema=schema), uri
    )
    fetched: list[int] = []
    chunks = view._chunks
    monkeypatch.setattr(view, "_chunks", lambda ranges: (fetched.append(e - b) or (b, e) for b, e in chunks(ranges)))
    _same(uri, columns=["s", "id"])
    _same(uri, columns=["b"])
    assert 0 < sum(fetched) < 300_000

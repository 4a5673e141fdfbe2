from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.operations.merge_insert.limits import SourceLimits
from tablewright.operations.merge_insert.source.kept import keep, to_file
from tablewright.operations.merge_insert.source.shared import FileSource, share
from tablewright.storage import open_store
from tablewright.world import World

SCHEMA = pa.schema(
    {
        "n": pa.int64(),
        "s": pa.string(),
        "d": pa.dictionary(pa.int32(), pa.string()),
        "v": pa.list_(pa.float32(), 2),
        "t": pa.struct({"a": pa.int8()}),
    }
)


def _batch(first: int, rows: int) -> pa.RecordBatch:
    numbers = range(first, first + rows)
    return pa.record_batch(
        [
            pa.array(numbers, pa.int64()),
            pa.array([f"text {n}" for n in numbers]),
            pa.array([f"{n % 3} in {first}" for n in numbers], pa.string()).dictionary_encode(),
            pa.array([[n, -n] for n in numbers], SCHEMA.field("v").type),
            pa.array([None if n % 4 == 0 else {"a": n % 100} for n in numbers], SCHEMA.field("t").type),
        ],
        schema=SCHEMA,
    )


@pytest.mark.parametrize("limit", [1 << 30, 0])
@given(sizes=st.lists(st.integers(0, 9), max_size=4), data=st.data())
def test_rows_come_in_the_order_asked_for(limit: int, sizes: list[int], data: st.DataObject) -> None:
    batches = [_batch(sum(sizes[:i]), size) for i, size in enumerate(sizes)]
    whole = pa.Table.from_batches(batches, SCHEMA)
    limits = SourceLimits(memory_bytes=limit, part_bytes=data.draw(st.sampled_from([1, 1 << 20])))
    kept = keep(SCHEMA, iter(batches), limits)
    assert kept.is_on_disk == (limit == 0 and whole.num_rows > 0)
    assert kept.num_rows == whole.num_rows
    assert (
        pa.Table.from_batches(kept.batches(["s", "n"]), None if whole.num_rows else whole.select(["s", "n"]).schema)[
            "s"
        ].to_pylist()
        == whole["s"].to_pylist()
    )
    rows = st.lists(st.integers(0, max(0, whole.num_rows - 1)), max_size=12 if whole.num_rows else 0)
    wanted = np.array(data.draw(rows), np.int64)
    assert kept.take(wanted).to_pylist() == whole.take(pa.array(wanted)).to_pylist()
    assert kept.take(wanted, ["t", "n"]).to_pylist() == whole.select(["t", "n"]).take(pa.array(wanted)).to_pylist()
    chosen = np.array(sorted(set(data.draw(rows))), np.int64)
    left, few = kept.only(chosen), whole.take(pa.array(chosen))
    assert left.num_rows == few.num_rows
    again = np.array(
        data.draw(st.lists(st.integers(0, max(0, len(chosen) - 1)), max_size=9 if len(chosen) else 0)), np.int64
    )
    assert left.take(again).to_pylist() == few.take(pa.array(again)).to_pylist()
    kept.close()


def test_the_file_goes_with_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kept = keep(SCHEMA, [_batch(0, 5)], SourceLimits(memory_bytes=0))
    assert len(list(tmp_path.iterdir())) == 1
    kept.close()
    assert not list(tmp_path.iterdir())
    keep(SCHEMA, [_batch(0, 5)], SourceLimits(memory_bytes=0))
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_a_stream_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def batches():  # type: ignore[no-untyped-def]
        yield _batch(0, 5)
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        keep(SCHEMA, batches(), SourceLimits(memory_bytes=0, part_bytes=1))
    assert not list(tmp_path.iterdir())


def test_how_large_some_columns_are() -> None:
    schema = pa.schema({"n": pa.int64(), "s": pa.string(), "v": pa.list_(pa.float32(), 2)})
    rows = pa.record_batch([range(100), ["wide " * 20] * 100, [[1.0, 2.0]] * 100], schema=schema)
    for limit in (1 << 30, 0):
        kept = keep(schema, [rows], SourceLimits(memory_bytes=limit))
        assert kept.nbytes_of(["n"]) == 800 and 10_000 <= kept.nbytes_of(["s"]) <= 10_500
        few = kept.only(np.arange(0, 100, 2))  # not measured: what the other columns are known to have is taken off
        assert few.nbytes_of(["n", "v"]) == 800 and 5_000 <= few.nbytes_of(["s"]) <= 5_300
        kept.close()


def test_very_wide_rows_come_one_by_one() -> None:
    """Some together would be gigabytes, which no text or binary array can hold."""
    schema = pa.schema({"n": pa.int64(), "b": pa.binary()})
    kept = keep(schema, [pa.record_batch([[n], [bytes(5 << 20)]], schema=schema) for n in range(3)])
    assert kept.rows_per_batch == 1 and [batch.num_rows for batch in kept.batches()] == [1, 1, 1]
    assert kept.rows_per_batch_of(["n"]) > 1000


def test_large_batches_are_not_put_together() -> None:
    sizes = [3, 3, 500, 2, 2, 400, 400, 1]
    batches = [_batch(sum(sizes[:index]), size) for index, size in enumerate(sizes)]
    kept = keep(SCHEMA, batches, SourceLimits(part_bytes=1000))
    assert [part.num_rows for part in kept._parts] == [6, 500, 4, 400, 400, 1]
    assert kept.take(np.arange(sum(sizes)), ["n"])["n"].to_pylist() == list(range(sum(sizes)))


def test_where_it_is(tmp_path: Path) -> None:
    kept = keep(SCHEMA, [_batch(0, 5)])
    assert kept.place == kept.only(np.array([1])).place == "in memory"
    kept = keep(SCHEMA, [_batch(0, 5)], SourceLimits(memory_bytes=0))
    assert kept.place == kept.only(np.array([1])).place == "in a temporary file"
    kept.close()
    world = World(store=open_store(str(tmp_path)))
    assert share(world, keep(SCHEMA, [_batch(0, 5)]), "2.2").open(world).place == "in data files beside the table's"


def test_dictionaries_with_nulls_in_lists_are_united() -> None:
    kind = pa.large_list(pa.dictionary(pa.int32(), pa.string()))
    schema = pa.schema({"l": kind})

    def batch(text: str) -> pa.RecordBatch:
        words = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array([text, None]))
        return pa.record_batch([pa.LargeListArray.from_arrays(pa.array([0, 2], pa.int64()), words)], schema=schema)

    kept = keep(schema, [batch("a"), batch("b")])
    assert kept.take(np.array([1, 0]))["l"].to_pylist() == [["b", None], ["a", None]]


@pytest.mark.parametrize("limit", [1 << 30, 0])
def test_a_file_for_other_processes_of_this_machine(
    limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kept = keep(SCHEMA, [_batch(0, 5), _batch(5, 4)], SourceLimits(memory_bytes=limit, part_bytes=1))
    for source in (kept, kept.only(np.array([1, 6, 7]))):
        filed = to_file(source)
        assert (filed is source) == (limit == 0 and source is kept), "what is in a file already is not written again"
        assert filed.path is not None
        there = FileSource(path=filed.path, schema=SCHEMA, num_rows=source.num_rows, nbytes=source.nbytes)
        opened = there.open(World(open_store(tmp_path)))
        assert (opened.num_rows, there.paths) == (source.num_rows, (filed.path,))
        positions = np.array([2, 0, 1])
        assert opened.take(positions).to_pylist() == source.take(positions).to_pylist()
        if filed is not source:
            filed.close()
    kept.close()
    assert not list(tmp_path.iterdir())

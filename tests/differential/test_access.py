"""Rows by position, by id, by fragment; batches; and the libraries that read a dataset as pyarrow's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .referee import SYSTEM_COLUMNS, assert_same_rows, everything, lance, numbers, ours


@pytest.fixture(scope="module", params=[pytest.param(False, marks=pytest.mark.slow), True], ids=["addresses", "stable"])
def uri(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("access") / "t.lance")
    table = numbers(0, 100).append_column("st", [[{"a": i, "b": str(i)} for i in range(100)]])
    dataset = lance.write_dataset(table, place, max_rows_per_file=40, enable_stable_row_ids=request.param)
    dataset.delete("id in (0, 39, 40, 77)")
    dataset.update({"s": "'moved'"}, where="id % 30 = 12")
    return place


SOME_COLUMNS = st.sampled_from(
    [None, ["id"], ["s", "id"], ["st"], ["st.a", "x"], ["id", *SYSTEM_COLUMNS], {"y": "id * 2", "s": "s"}]
)


@given(indices=st.lists(st.integers(0, 95), max_size=12), columns=SOME_COLUMNS)
def test_take_by_position(uri: str, indices: list[int], columns: Any) -> None:
    expected = lance.dataset(uri).take(indices, columns=columns)
    assert_same_rows(ours.dataset(uri).take(indices, columns=columns), expected)
    assert_same_rows(ours.dataset(uri).take(pa.array(indices, pa.int64()), columns=columns), expected)


@given(positions=st.lists(st.integers(0, 95), max_size=12), columns=SOME_COLUMNS)
def test_take_by_row_id(uri: str, positions: list[int], columns: Any) -> None:
    live = everything(lance.dataset(uri))["_rowid"].to_pylist()
    wanted = [live[position] for position in positions]
    expected = lance.dataset(uri)._take_rows(wanted, columns=columns)
    assert_same_rows(ours.dataset(uri)._take_rows(wanted, columns=columns), expected)


def test_take_of_deleted_and_missing_rows(uri: str) -> None:
    here, there = ours.dataset(uri), lance.dataset(uri)
    assert_same_rows(here._take_rows([39, 1], columns=["id"]), there._take_rows([39, 1], columns=["id"]))
    for wrong in ([96], [5, 10**9]):
        with pytest.raises((ValueError, OSError, IndexError)):
            here.take(wrong)


@given(
    count=st.integers(0, 120), batch_size=st.integers(1, 60), filter=st.sampled_from([None, "id % 3 = 0", "x is null"])
)
def test_head_and_batches(uri: str, count: int, batch_size: int, filter: str | None) -> None:
    here, there = ours.dataset(uri), lance.dataset(uri)
    assert_same_rows(here.head(count, columns=["id", "s"]), there.head(count, columns=["id", "s"]))
    query = {"columns": ["id", "st"], "filter": filter, "batch_size": batch_size}
    batches = list(here.to_batches(**query))
    if filter is None:  # with one, it is a target
        assert max(batch.num_rows for batch in batches) <= batch_size
    expected = there.to_table(**query)
    assert_same_rows(pa.Table.from_batches(batches, expected.schema), expected)
    strict = [batch.num_rows for batch in here.to_batches(**query, strict_batch_size=True)]
    assert strict == [batch.num_rows for batch in there.to_batches(**query, strict_batch_size=True)]


def test_sample_is_some_rows_each_once(uri: str) -> None:
    here = ours.dataset(uri)
    for count in (0, 1, 50, 96):
        ids = here.sample(count, columns=["id"])["id"].to_pylist()
        assert len(set(ids)) == count
        assert set(ids) <= set(here.to_table(columns=["id"])["id"].to_pylist())
    assert here.sample(10, columns=["id", "s"]).column_names == ["id", "s"]
    ordered = here.sample(20, columns=["id"], randomize_order=False)
    positions = {id: at for at, id in enumerate(here.to_table(columns=["id"])["id"].to_pylist())}
    taken = [positions[id] for id in ordered["id"].to_pylist()]
    assert taken == sorted(taken)


def test_deleted_rows_on_request(uri: str) -> None:
    here, there = ours.dataset(uri), lance.dataset(uri)
    query = {"columns": ["id"], "include_deleted_rows": True, "with_row_id": True}
    assert_same_rows(here.to_table(**query), there.to_table(**query))
    with pytest.raises(ValueError, match="with_row_id is false"):
        here.to_table(columns=["id"], include_deleted_rows=True)


def test_scanner_tells_schema_and_counts(uri: str) -> None:
    here, there = ours.dataset(uri), lance.dataset(uri)
    for query in (
        {},
        {"columns": ["s", "id"]},
        {"columns": {"y": "id + 1"}, "with_row_id": True},
        {"filter": "id > 50"},
    ):
        left, right = here.scanner(**query), there.scanner(**query)
        assert left.projected_schema.equals(right.projected_schema)
        assert left.dataset_schema.equals(right.dataset_schema)
        assert left.count_rows() == right.count_rows()
        assert left.to_reader().schema.equals(right.to_reader().schema)
        assert_same_rows(left.to_reader().read_all(), right.to_reader().read_all())
        assert "id" in left.explain_plan()
    assert len(here) == here.count_rows() == 96
    assert_same_rows(
        pa.Table.from_pandas(here.to_pandas(), preserve_index=False),
        pa.Table.from_pandas(there.to_pandas(), preserve_index=False),
    )


def test_fragments_read_alone(uri: str) -> None:
    here, there = ours.dataset(uri), lance.dataset(uri)
    assert [fragment.fragment_id for fragment in here.get_fragments()] == [f.fragment_id for f in there.get_fragments()]
    for right in there.get_fragments():
        left = here.get_fragment(right.fragment_id)
        assert left.metadata.to_json() == right.metadata.to_json()
        assert left.schema.equals(right.schema)
        assert left.count_rows("id % 2 = 0") == right.count_rows("id % 2 = 0")
        for query in ({"columns": ["id", "st"]}, {"filter": "x > 3", "with_row_id": True}, {"limit": 3, "offset": 2}):
            assert_same_rows(left.to_table(**query), right.to_table(**query))
            assert_same_rows(left.scanner(**query).to_table(), right.scanner(**query).to_table())
        assert_same_rows(left.head(5), right.head(5))
        assert_same_rows(left.take([0, 2], columns=["id"]), right.take([0, 2], columns=["id"]))
        assert_same_rows(
            pa.Table.from_batches(left.to_batches(columns=["s"])),
            pa.Table.from_batches(right.to_batches(columns=["s"])),
        )
    assert here.get_fragment(999) is None


def test_polars_reads_the_dataset(uri: str) -> None:
    import polars as pl

    frame = pl.scan_pyarrow_dataset(ours.dataset(uri))
    found = frame.filter((pl.col("id") > 20) & (pl.col("x") < 20)).select("id", "s").collect()
    expected = lance.dataset(uri).to_table(columns=["id", "s"], filter="id > 20 and x < 20")
    assert sorted(found["id"].to_list()) == sorted(expected["id"].to_pylist())
    assert frame.select(pl.len()).collect().item() == 96
    assert frame.head(3).collect().height == 3


def test_duckdb_reads_the_dataset(uri: str) -> None:
    import duckdb

    ds = ours.dataset(uri)
    with duckdb.connect() as connection:
        connection.register("ds", ds)
        found = connection.sql(
            "select id, s from ds where id between 10 and 60 and s is not null order by id"
        ).to_arrow_table()
        expected = lance.dataset(uri).to_table(
            columns=["id", "s"], filter="id between 10 and 60 and s is not null", order_by=["id"]
        )
        assert found["id"].to_pylist() == expected["id"].to_pylist()
        assert found["s"].to_pylist() == expected["s"].to_pylist()
        assert connection.sql("select count(*), sum(id) from ds").fetchall() == [
            (96, sum(ds.to_table()["id"].to_pylist()))
        ]
    assert isinstance(ds, pa.dataset.Dataset)


def test_sql_over_the_dataset(uri: str) -> None:
    for query in (
        "select id + 1 as y, s from dataset where id > 90 order by id",
        "select count(*) as n, max(x) as m from dataset",
    ):
        expected = pa.Table.from_batches(lance.dataset(uri).sql(query).build().to_batch_records())
        found = pa.Table.from_batches(ours.dataset(uri).sql(query).build().to_batch_records())
        assert found.to_pylist() == expected.to_pylist()
        stream = (
            ours.dataset(uri).sql(query.replace("from dataset", "from t")).table_name("t").build().to_stream_reader()
        )
        assert stream.read_all().to_pylist() == expected.to_pylist()


def test_versions_of_rows_in_filters(tmp_path: Path) -> None:
    place = str(tmp_path / "t.lance")
    lance.write_dataset(numbers(0, 4), place, enable_stable_row_ids=True)
    ours.write_dataset(numbers(4, 6), place, mode="append")
    lance.dataset(place).update({"s": "'new'"}, where="id in (1, 5)")
    here = ours.dataset(place)
    for filter, ids in {
        "_row_created_at_version = 2": {4, 5},
        "_row_last_updated_at_version = 3": {1, 5},
        "_row_created_at_version = 1 and _row_last_updated_at_version > 1": {1},
    }.items():
        assert set(here.to_table(filter=filter)["id"].to_pylist()) == ids
        assert set(lance.dataset(place).to_table(filter=filter)["id"].to_pylist()) == ids
    assert here.count_rows(pc.field("id") > 3) == 2

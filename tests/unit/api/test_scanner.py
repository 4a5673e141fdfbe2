"""The scanner's own words; its answers are judged in tests/differential."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest, UnsupportedFeature


@pytest.fixture
def ds() -> tw.LanceDataset:
    return tw.write_dataset({"id": [1, 2, 3], "s": ["a", "b", None]}, f"memory://{uuid.uuid4()}")


def test_plans_are_printed_before_and_after(ds: tw.LanceDataset) -> None:
    scanner = ds.scanner(columns=["s"], filter="id > 1", limit=1, order_by=["id"])
    plan = scanner.explain_plan()
    assert all(word in plan for word in ("LanceRead", "Filter: id > 1", "Limit: limit=1", "Sort"))
    assert "engine=local" in scanner.explain_plan(verbose=True)
    assert "of work, and a Spark" in scanner.explain_plan(verbose=True)
    assert "metrics=[rows=1" in scanner.analyze_plan()


def test_schemas_of_table_and_result(ds: tw.LanceDataset) -> None:
    scanner = ds.scanner(columns={"double": "id * 2"})
    assert (scanner.dataset_schema.names, scanner.projected_schema) == (["id", "s"], pa.schema({"double": pa.int64()}))


def test_every_way_out_gives_the_same(ds: tw.LanceDataset) -> None:
    scanner = ds.scanner(columns=["id"], filter=pc.field("id") > 1)
    expected = {"id": [2, 3]}
    assert scanner.to_table().to_pydict() == expected
    assert scanner.to_reader().read_all().to_pydict() == expected
    assert pa.table(scanner).to_pydict() == expected
    assert scanner.to_pandas().to_dict("list") == expected
    assert scanner.take([1]).to_pydict() == {"id": [3]}
    assert scanner.head(1).to_pydict() == {"id": [2]}
    assert scanner.count_rows() == 2


def test_hints_are_ignored_and_unknown_words_refused(ds: tw.LanceDataset) -> None:
    assert ds.scanner(batch_readahead=4, use_scalar_index=True, prefilter=True).count_rows() == 3
    with pytest.raises(InvalidRequest, match="Unknown scan option 'filtr'"):
        ds.scanner(filtr="id > 1")
    with pytest.raises(UnsupportedFeature, match="nearest"):
        ds.scanner(nearest={"column": "v", "q": [1.0]})


def test_default_options_hold_until_overridden(ds: tw.LanceDataset) -> None:
    again = tw.dataset(ds.uri, default_scan_options={"limit": 1, "with_row_id": True})
    assert again.to_table().column_names == ["id", "s", "_rowid"]
    assert (again.to_table().num_rows, again.to_table(limit=2).num_rows) == (1, 2)


def test_what_spark_can_not_see_or_do_is_refused_before_it_starts(ds: tw.LanceDataset) -> None:
    for options, word in (({}, "memory of this process"), ({"limit": 1}, "limit"), ({"order_by": ["id"]}, "order_by")):
        with pytest.raises(InvalidRequest, match=word):
            ds.to_spark(**options)
    with pytest.raises(InvalidRequest, match="SQL text"):
        ds.to_spark(filter=pc.field("id") > 1)


def test_to_spark_takes_the_arguments_of_to_table(ds: tw.LanceDataset) -> None:
    for given in ((["id"],), ({"x": "id"},), (None, ["id"]), (None, "id > 1"), (None,), (("id",), "id > 1")):
        with pytest.raises(InvalidRequest, match="memory of this process"):
            ds.to_spark(*given)
    with pytest.raises(InvalidRequest, match="takes columns and filter, then options by name"):
        ds.to_spark(["id"], "id > 1", 5)
    with pytest.raises(InvalidRequest, match="takes columns and filter"):
        ds.to_spark(["id"], columns=["id"])
    with pytest.raises(InvalidRequest, match="spark must be a SparkSession, got 'local' of type str"):
        ds.to_spark(spark="local")

"""SQL over a dataset: queries only, and errors of ours."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest


@pytest.fixture
def ds() -> tw.LanceDataset:
    return tw.write_dataset({"id": [3, 1, 2], "s": ["c", "a", None]}, f"memory://{uuid.uuid4()}", max_rows_per_file=2)


class TestSql:
    @pytest.mark.parametrize(
        "query", ["drop table dataset", "create table x as select 1", "copy dataset to '/tmp/never.csv' stored as csv"]
    )
    def test_only_queries_run(self, ds: tw.LanceDataset, query: str) -> None:
        with pytest.raises(InvalidRequest):
            ds.sql(query).build().to_batch_records()

    def test_errors_while_it_runs_are_ours(self, ds: tw.LanceDataset) -> None:
        query = ds.sql("select id / (id - 1) from dataset").build()
        with pytest.raises(InvalidRequest, match="Columns of dataset: id, s"):
            query.to_batch_records()
        with pytest.raises((InvalidRequest, pa.ArrowException)):
            query.to_stream_reader().read_all()

    def test_streams(self, ds: tw.LanceDataset) -> None:
        reader = ds.sql("select id from t where s is not null order by id").table_name("t").build().to_stream_reader()
        assert reader.read_all().to_pydict() == {"id": [1, 3]}

"""Every type in files of a few rows, written by pylance: read joined, their rows are those that pylance reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.caches import cached
from tests.depth import deep
from tests.differential.referee import assert_same_rows
from tests.differential.test_types import CASES

import tablewright as tw
from tablewright.data import joined, small

VERSIONS = ("2.2", "2.1", "2.3")[: deep(1, 3)]
NOT_JOINED = {"dict_string", "dict_int8", "dict_large", "dict_of_int"}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", CASES)
def test_rows_are_those_that_pylance_reads(
    tmp_path: Path, name: str, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = pa.concat_arrays([CASES[name]] * 12).slice(0, 30)
    rows = pa.table({"id": range(len(values)), "v": values})
    path = tmp_path / "t"
    try:
        for start, count in ((0, 1), (1, 2), (3, 4), (7, 1), (8, 22)):
            part = pa.concat_tables([rows.slice(start, count), rows.slice(0, 0)]).combine_chunks()
            options = {"max_rows_per_file": 3, "data_storage_version": version}
            lance.write_dataset(part, path, mode="append" if start else "create", **options)
        expected = lance.dataset(path).to_table()
    except BaseException:  # a panic of pylance is no Exception, but it is a refusal
        return
    found: list[int] = []

    def read_joined(context: Any, whole: Any, shape: Any) -> list[pa.RecordBatch] | None:
        batches = joined.read_joined(context, whole, shape)
        found.append(len(batches or ()))
        return batches

    monkeypatch.setattr(small, "read_joined", read_joined)
    assert_same_rows(tw.dataset(path).to_table(), expected)
    assert sum(found) == (0 if name in NOT_JOINED else len(lance.dataset(path).get_fragments()))
    lance.dataset(path).delete("id in (0, 2, 5, 20)")
    with cached("off"):  # a column that is not the first one is joined, too
        found.clear()
        assert_same_rows(tw.dataset(path).to_table(columns=["v"]), lance.dataset(path).to_table(columns=["v"]))
    assert sum(found) == (0 if name in NOT_JOINED else len(lance.dataset(path).get_fragments()))

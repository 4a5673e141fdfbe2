"""Dictionaries with narrow indices: what the codec would write unreadably is cut into files that both clients read.

pylance 14 writes such files itself, and can't read them: 100 values with ``int8`` indices in two batches are enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest

NARROW = pa.dictionary(pa.int8(), pa.string())
VERSIONS = pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])


def column(texts: Sequence[str]) -> pa.DictionaryArray:
    return pa.array(texts).dictionary_encode().cast(NARROW)


def batches(values: int, count: int, *, distinct: bool) -> list[pa.RecordBatch]:
    return [
        pa.record_batch(
            {
                "id": pa.array(range(number * values, (number + 1) * values)),
                "kind": column([f"v{(number * values if distinct else 0) + value}" for value in range(values)]),
            }
        )
        for number in range(count)
    ]


def assert_reads(uri: Path, given: list[pa.RecordBatch]) -> None:
    wanted = pa.Table.from_batches([each.set_column(1, "kind", each["kind"].cast(pa.string())) for each in given])
    for library in (tw, lance):
        found = library.dataset(str(uri)).to_table()
        assert found.schema.field("kind").type == NARROW
        assert found.set_column(1, "kind", found["kind"].cast(pa.string())).equals(wanted), library.__name__


def reader(given: list[pa.RecordBatch]) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(given[0].schema, given)


@VERSIONS
@pytest.mark.parametrize(("values", "distinct", "files"), [(100, False, 1), (100, True, 4), (32, True, 1)])
def test_batches_of_a_stream(tmp_path: Path, version: str, values: int, distinct: bool, files: int) -> None:
    given = batches(values, 4, distinct=distinct)
    ds = tw.write_dataset(reader(given), tmp_path / "t", data_storage_version=version)
    assert len(ds.get_fragments()) == files
    assert_reads(tmp_path / "t", given)
    sizes = [batch.num_rows for batch in ds.to_batches(batch_size=150)]
    assert sum(sizes) == 4 * values and max(sizes) <= 150


@VERSIONS
@pytest.mark.parametrize("distinct", [False, True])
def test_compaction(tmp_path: Path, version: str, distinct: bool) -> None:
    given = batches(100, 4, distinct=distinct)
    for number, batch in enumerate(given):
        lance.write_dataset(
            pa.Table.from_batches([batch]),
            str(tmp_path / "t"),
            mode="append" if number else "create",
            data_storage_version=version,
        )
    ds = tw.dataset(tmp_path / "t")
    ds.optimize.compact_files()
    assert len(ds.get_fragments()) == (4 if distinct else 1)
    assert_reads(tmp_path / "t", given)
    ds.validate()


@VERSIONS
def test_one_file_that_can_not_hold_them_is_refused(tmp_path: Path, version: str) -> None:
    """A new column of a fragment is one file."""
    ds = tw.write_dataset({"id": range(400)}, tmp_path / "t", data_storage_version=version)
    given = [batch.select(["kind"]) for batch in batches(100, 4, distinct=True)]
    with pytest.raises(InvalidRequest, match="int32 indices"):
        ds.add_columns(reader(given), reader_schema=given[0].schema)
    assert tw.dataset(tmp_path / "t").version == 1 and len(list((tmp_path / "t" / "data").iterdir())) == 1
    ds.add_columns(reader([batch.select(["kind"]) for batch in batches(100, 4, distinct=False)]))
    assert ds.to_table()["kind"].cast(pa.string()).to_pylist() == [f"v{number % 100}" for number in range(400)]

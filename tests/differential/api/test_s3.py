"""A whole table on S3 (a moto server on loopback), through the public face, with pylance beside us."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import lance
import pytest
from tests.unit.api.test_s3 import rows

import tablewright as tw


@pytest.fixture
def address(s3_bucket: str) -> str:
    return f"s3://{s3_bucket}/nested/table.lance"


def test_both_write_and_read_one_table(address: str, s3_options: dict[str, str]) -> None:
    ours = tw.write_dataset(rows(0, 10), address, storage_options=s3_options, max_rows_per_file=4)
    lance.write_dataset(rows(10, 20), address, mode="append", storage_options=s3_options)
    theirs = lance.dataset(address, storage_options=s3_options)
    theirs.delete("id % 5 = 1")
    ours.checkout_latest()
    ours.insert(rows(20, 25))
    theirs = lance.dataset(address, storage_options=s3_options)
    theirs.validate()
    ours.validate()
    assert (ours.version, theirs.version) == (4, 4)
    assert ours.to_table(with_row_id=True).equals(theirs.to_table(with_row_id=True))
    assert ours.count_rows("id > 20") == 4
    assert [version["metadata"] for version in ours.versions()] == [
        version["metadata"] for version in theirs.versions()
    ]


def test_refs_take_and_pickling(address: str, s3_options: dict[str, str]) -> None:
    ours = tw.write_dataset(rows(0, 10), address, storage_options=s3_options)
    ours.tags.create("first")
    ours.insert(rows(10, 12))
    assert lance.dataset(address, version="first", storage_options=s3_options).count_rows() == 10
    again = pickle.loads(pickle.dumps(ours))
    assert again.take([11, 0], columns=["id"]).to_pydict() == {"id": [11, 0]}


def test_writers_race_for_the_same_versions(address: str, s3_options: dict[str, str]) -> None:
    tw.write_dataset(rows(0, 1), address, storage_options=s3_options)

    def append(writer: int) -> None:
        for number in range(4):
            begin = 100 * (writer + 1) + number
            tw.write_dataset(rows(begin, begin + 1), address, mode="append", storage_options=s3_options)

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(append, range(3)))
    table = lance.dataset(address, storage_options=s3_options)
    expected = [0, *(100 * (writer + 1) + number for writer in range(3) for number in range(4))]
    assert sorted(table.to_table(columns=["id"])["id"].to_pylist()) == expected
    assert table.version == 13

"""Plausible but wrong arguments: a typed error in words, before anything is read or written."""

from __future__ import annotations

import pickle
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest, VersionNotFound


@pytest.fixture
def ds() -> tw.LanceDataset:
    return tw.write_dataset({"a": [3, 1, 2], "__order_0": ["x", "y", "z"]}, f"memory://{uuid.uuid4()}")


NO_NUMBERS = ["3", [1], 2.5, True]
SCANS: list[tuple[str, Any]] = [
    *((name, value) for name in ("limit", "offset", "batch_size") for value in NO_NUMBERS),
    ("order_by", 3),
    ("order_by", [3]),
    ("fragments", 3),
    ("fragments", "0"),
    ("fragments", [[1]]),
    ("fragments", ["0"]),
    ("late_materialization", 3),
    ("late_materialization", "a"),
    ("late_materialization", [1]),
    ("with_row_id", "x"),
    ("with_row_address", 1),
    ("strict_batch_size", "yes"),
    ("columns", 3),
    ("columns", "a"),
    ("columns", [1]),
    ("columns", {"z": 1}),
    ("columns", {1: "a"}),
]


@pytest.mark.parametrize(("name", "value"), SCANS)
def test_scans(ds: tw.LanceDataset, name: str, value: Any) -> None:
    with pytest.raises(InvalidRequest):
        ds.scanner(**{name: value}).to_table()


@pytest.mark.parametrize("fragments", [[7], [np.uint64(2**64 - 1)], [2**70]])
def test_unknown_fragments(ds: tw.LanceDataset, fragments: Any) -> None:
    with pytest.raises(InvalidRequest, match="has no fragments"):
        ds.scanner(fragments=fragments).to_table()


def test_numpy_numbers_and_large_ones_scan(ds: tw.LanceDataset) -> None:
    scanner = ds.scanner(limit=np.int64(2), offset=np.uint8(1), batch_size=np.int32(1), fragments=np.array([0]))
    assert scanner.to_table()["a"].to_pylist() == [1, 2]
    most = 2**63 - 1
    assert ds.scanner(limit=most, offset=1, order_by="a").to_table()["a"].to_pylist() == [2, 3]
    assert ds.scanner(limit=most, offset=most, order_by="a").to_table().num_rows == 0
    assert ds.scanner(limit=most, offset=most, filter="a > 0").to_table().num_rows == 0
    with pytest.raises(InvalidRequest, match="Limit must be at most"):
        ds.scanner(limit=2**63)


@pytest.mark.parametrize("columns", [None, ["a"], ["__order_0"], {"__order_0": "a", "___order_0": "a"}])
def test_columns_may_be_called_like_our_hidden_ones(ds: tw.LanceDataset, columns: Any) -> None:
    ordered = ds.to_table(columns=columns, order_by=["a"])
    assert ordered.equals(ds.to_table(columns=columns).take([1, 2, 0]))
    assert ds.to_table(order_by=["__order_0", "a"])["a"].to_pylist() == [3, 1, 2]


TAKES: list[Any] = [
    None,
    3,
    "0",
    np.array(0),
    np.array([2**64 - 1, 0], np.uint64),
    [2**64 - 1],
    [2**70],
    [-1],
    [0.5],
    [True],
    [None],
    [[0], [1, 2]],
    pa.array([1, None]),
    pa.array(["a"]),
    pa.chunked_array([[1], [None]]),
    [3],
]


@pytest.mark.parametrize("indices", TAKES)
def test_takes(ds: tw.LanceDataset, indices: Any) -> None:
    with pytest.raises(InvalidRequest):
        ds.take(indices)
    with pytest.raises(InvalidRequest):
        ds.scanner(columns=["a"]).take(indices)


@pytest.mark.parametrize("columns", [[1], "a", 3, ["nope"]])
def test_columns_of_takes(ds: tw.LanceDataset, columns: Any) -> None:
    with pytest.raises(InvalidRequest):
        ds.take([0], columns=columns)


@pytest.mark.parametrize("rows", ["3", None, 2.5, True, -1, 4])
def test_samples(ds: tw.LanceDataset, rows: Any) -> None:
    assert ds.sample(np.int64(2)).num_rows == 2
    with pytest.raises(InvalidRequest):
        ds.sample(rows)


def test_heads(ds: tw.LanceDataset) -> None:
    assert ds.scanner(limit=2).head(np.int64(1)).num_rows == 1
    for rows in ("1", None, -1):
        with pytest.raises(InvalidRequest):
            ds.scanner(limit=2).head(rows)  # type: ignore[arg-type]


@pytest.mark.parametrize("filter", [None, "a > 1", pc.field("a") > 1])
def test_scanners_travel(tmp_path: Path, filter: Any) -> None:
    ds = tw.write_dataset({"a": [3, 1, 2]}, tmp_path / "t")
    scanner = ds.scanner(filter=filter, order_by=["a"], limit=2)
    wire = pickle.dumps(scanner)
    tw.write_dataset({"a": [9]}, tmp_path / "t", mode="overwrite")
    assert pickle.loads(wire).to_table().equals(scanner.to_table())


# ------------------------------------------------------------------------------------------------------- versions
def test_versions(ds: tw.LanceDataset) -> None:
    assert tw.dataset(ds.uri, version=np.int64(1)).version == 1
    assert ds.checkout_version(np.int64(1)).version == 1
    assert ds.checkout_version((None, np.int64(1))).version == 1
    for version in (2.5, [1], True, (None, 2.5)):
        with pytest.raises(InvalidRequest):
            ds.checkout_version(version)
    for version in (np.int64(9), 2**70, -1):
        with pytest.raises(VersionNotFound):
            ds.checkout_version(version)

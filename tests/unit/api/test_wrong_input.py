"""Plausible but wrong arguments: a typed error in words, before anything is read or written."""

from __future__ import annotations

import json
import pickle
import shutil
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablewright as tw
from tablewright.api.locate import instant_ns, open_world
from tablewright.api.metadata import DataFile, DeletionFile, FragmentMetadata, RowDatasetVersionMeta, RowIdMeta
from tablewright.errors import InvalidRequest, TableNotFound, VersionNotFound, WrongType


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


def test_times() -> None:
    early, late = timezone(timedelta(hours=5)), timezone(timedelta(hours=-5))
    for moment in (datetime.min.replace(tzinfo=early), datetime.max.replace(tzinfo=late)):
        with pytest.raises(InvalidRequest, match="beyond what a clock can tell"):
            instant_ns(moment)
    for moment in (pd.NaT, 3, None):
        with pytest.raises(WrongType, match="Unrecognized version timestamp"):
            instant_ns(moment)


@pytest.mark.parametrize("uri", [None, 3, b"x", ["x"]])
def test_addresses(uri: Any) -> None:
    with pytest.raises(WrongType, match="uri must be a path or an address"):
        open_world(uri)


@pytest.mark.parametrize("name", [3, b"x", None, ""])
def test_names_of_tags_and_branches(ds: tw.LanceDataset, name: Any) -> None:
    for call in (lambda: ds.tags.create(name, 1), lambda: ds.create_branch(name)):
        with pytest.raises(InvalidRequest):
            call()


def test_a_branch_of_a_table_that_is_gone(tmp_path: Path) -> None:
    ds = tw.write_dataset({"a": [1]}, tmp_path / "t")
    shutil.rmtree(tmp_path / "t")
    with pytest.raises(TableNotFound):
        ds.create_branch("b")
    assert not (tmp_path / "t").exists()


# ------------------------------------------------------------------------------------------------ fragment metadata
def _fragment(**changes: Any) -> FragmentMetadata:
    known = {"id": 0, "files": [DataFile("x.lance", [0], [0], 2, 2)], "physical_rows": 3}
    return FragmentMetadata(**{**known, **changes})


@pytest.mark.parametrize("key", ["row_id_meta", "created_at_version_meta", "last_updated_at_version_meta"])
@pytest.mark.parametrize(
    "value",
    [[], "x", [1], 3, {}, {"other": [1]}, *({"inline": bad} for bad in (5, 99_999_999_999, [256], "ab"))],
    ids=str,
)
def test_row_lineage_in_json(key: str, value: Any) -> None:
    document = _fragment().to_json()
    with pytest.raises(InvalidRequest):
        FragmentMetadata.from_json(json.dumps({**document, key: value}))


@pytest.mark.parametrize("text", ["[]", "3", "null", "{}", "{", '"x"', "[" * 100_000])
def test_json_of_no_fragment(text: str) -> None:
    with pytest.raises(InvalidRequest):
        FragmentMetadata.from_json(text)
    with pytest.raises(InvalidRequest):
        RowDatasetVersionMeta.from_json(text)


CHANGES: list[dict[str, Any]] = [
    *({"id": value} for value in ("0", None, 1.5, -1, 2**32)),
    *({"physical_rows": value} for value in ("3", None, 1.5, -1, True)),
    *({"files": value} for value in (None, 3, [{}], ["x"], [None])),
    *({"deletion_file": value} for value in ("x", "", 3, DeletionFile(1, 1, "array", None))),  # type: ignore[arg-type]
    {"deletion_file": DeletionFile(1, 1, [], 1)},  # type: ignore[arg-type]
    {"row_id_meta": b"x"},
    {"row_id_meta": RowIdMeta(5)},  # type: ignore[arg-type]
]
FILES: list[Callable[[], Any]] = [
    lambda: DataFile(3, [0]),  # type: ignore[arg-type]
    lambda: DataFile(None, [0]),  # type: ignore[arg-type]
    lambda: DataFile("", [0]),
    lambda: DataFile("x", None),  # type: ignore[arg-type]
    lambda: DataFile("x", ["0"]),  # type: ignore[list-item]
    lambda: DataFile("x", [2**31]),
    lambda: DataFile("x", [0], ["0"]),  # type: ignore[list-item]
    lambda: DataFile("x", [0], [0], "2", 2),  # type: ignore[arg-type]
    lambda: DataFile("x", [0], [0], 2, 2, -1),
    lambda: DataFile("x", [0], [0], 2, 2, 1, "1"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("changes", [*CHANGES, *({"files": [make()]} for make in FILES)])
def test_metadata_of_wrong_types(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        _fragment(**changes).to_fragment()


@pytest.mark.parametrize("ids", [None, 3, [None], [[1]], [-1], "12", {}])
def test_row_ids_of_wrong_types(ids: Any) -> None:
    with pytest.raises(InvalidRequest):
        RowIdMeta.of_ids(ids)


def test_numpy_numbers_in_metadata() -> None:
    made = _fragment(id=np.uint32(4), physical_rows=np.int64(3), files=[DataFile("x", np.array([0]))])  # type: ignore[arg-type]
    assert made.to_fragment() == _fragment(id=4, files=[DataFile("x", [0])]).to_fragment()

"""Metadata of fragments as scripts pass it around: JSON, and values of wrong types."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tablewright.api.metadata import DataFile, DeletionFile, FragmentMetadata, RowDatasetVersionMeta, RowIdMeta
from tablewright.errors import InvalidRequest


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

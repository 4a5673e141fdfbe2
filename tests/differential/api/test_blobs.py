"""Tables with blob columns: every call gives what pylance stored, or is refused by name. Nothing in between."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.unit.api.test_blobs import _encoded, _refused

import tablewright as tw

GOLDEN = Path(__file__).parents[2] / "golden" / "lance-blob"
NAMES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
SECOND_KIND = [name for name in NAMES if not name.startswith("v1")]


@pytest.fixture(params=SECOND_KIND)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, list[dict[str, Any]]]:
    """A copy of a golden table, and its rows."""
    uri = tmp_path / "table"
    shutil.copytree(GOLDEN / request.param / "table", uri)
    return str(uri), json.loads((GOLDEN / request.param / "expected.json").read_text())["rows"]


def _is_plain(rows: list[dict[str, Any]], name: str) -> bool:
    return name == "s" or any(isinstance(row[name], int) for row in rows)


@pytest.mark.parametrize(
    "change",
    [
        lambda ds: ds.delete("s = 's00'"),
        lambda ds: ds.delete("s like 's0%'"),
        lambda ds: ds.update({"s": "'new'"}, where="id = 0"),
        lambda ds: ds.update({"s": "'new'"}),
        lambda ds: ds.merge_insert("id").when_matched_update_all().execute(pa.table({"id": [0, 3], "s": ["x", "y"]})),
        lambda ds: ds.add_columns({"twice": "id * 2"}),
        lambda ds: ds.alter_columns({"path": "id", "data_type": pa.int32()}),
        lambda ds: ds.drop_columns(["s"]),
    ],
    ids=["delete", "delete_like", "update_some", "update_all", "merge", "add_columns", "cast", "drop"],
)
def test_a_change_is_right_or_refused(
    golden: tuple[str, list[dict[str, Any]]], change: Callable[[Any], Any], request: pytest.FixtureRequest
) -> None:
    uri, rows = golden
    if _refused(lambda: tw.dataset(uri)) or "s" not in tw.dataset(uri).schema.names:
        return
    before = tw.dataset(uri).version
    if _refused(lambda: change(tw.dataset(uri))):
        assert tw.dataset(uri).version == before
        return
    read = lance.dataset(uri).to_table(blob_handling="all_binary").to_pylist()
    wanted = [dict(row) for row in rows]
    name = request.node.callspec.id.split("-")[-1]
    if name.startswith("delete"):
        wanted = [row for row in wanted if not row["s"].startswith("s00" if name == "delete" else "s0")]
    kept = {row["id"]: row for row in wanted}
    blobs = [name for name in rows[0] if not _is_plain(rows, name)]
    assert sorted(row["id"] for row in read) == sorted(kept)
    for row in read:
        for name in blobs:
            assert _encoded(row[name]) == kept[row["id"]][name], name


def test_a_dropped_blob_column_still_shapes_its_files(tmp_path: Path) -> None:
    uri = tmp_path / "table"
    shutil.copytree(GOLDEN / "v2_2.2" / "table", uri)
    lance.dataset(str(uri)).drop_columns(["b"])
    ds = tw.dataset(str(uri))
    wanted = lance.dataset(str(uri)).to_table()

    def read() -> None:
        assert ds.to_table() == wanted

    def last() -> None:
        assert ds.to_table(columns=["c0"]) == wanted.select(["c0"])

    assert all(call() is None for call in (read, last) if not _refused(call))

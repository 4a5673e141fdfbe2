"""Tables with blob columns: every call gives what pylance stored, or is refused by name. Nothing in between."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import UnsupportedFeature
from tablewright.operations.scan import run_scan_task
from tablewright.storage import open_store
from tablewright.world import World

GOLDEN = Path(__file__).parents[2] / "golden" / "lance-blob"
NAMES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
SECOND_KIND = [name for name in NAMES if not name.startswith("v1")]


@pytest.fixture(params=SECOND_KIND)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, list[dict[str, Any]]]:
    """A copy of a golden table, and its rows."""
    uri = tmp_path / "table"
    shutil.copytree(GOLDEN / request.param / "table", uri)
    return str(uri), json.loads((GOLDEN / request.param / "expected.json").read_text())["rows"]


def _refused(call: Callable[[], Any]) -> bool:
    try:
        call()
    except UnsupportedFeature as error:
        return "blob" in str(error)
    return False


def _is_plain(rows: list[dict[str, Any]], name: str) -> bool:
    return name == "s" or any(isinstance(row[name], int) for row in rows)


def test_each_column_reads_right_or_is_refused(golden: tuple[str, list[dict[str, Any]]]) -> None:
    uri, rows = golden
    if _refused(lambda: tw.dataset(uri)):
        return
    ds = tw.dataset(uri)
    for name in (name for name in ds.schema.names if _is_plain(rows, name)):
        wanted = [row[name] for row in rows]

        def read(name: str = name, wanted: list[Any] = wanted) -> None:
            assert ds.to_table(columns=[name])[name].to_pylist() == wanted

        def take(name: str = name, wanted: list[Any] = wanted) -> None:
            assert ds.take([0, 2], columns=[name])[name].to_pylist() == [wanted[0], wanted[2]]

        def task(name: str = name, wanted: list[Any] = wanted) -> None:
            plan = ds.scanner(columns=[name])._plan
            world = World(store=open_store(uri))
            read = [batch for task in plan.tasks for batch in run_scan_task(task, world)]
            assert pa.Table.from_batches(read)[name].to_pylist() == wanted

        def count(name: str = name, wanted: list[Any] = wanted) -> None:
            value = next(value for value in wanted if value is not None)
            text = f"'{value}'" if isinstance(value, str) else str(value)
            assert ds.count_rows(f"{name} = {text}") == wanted.count(value)

        for call in (read, take, task, count):
            _refused(call)


def _encoded(value: Any) -> Any:
    """Bytes as the golden files write them."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, list):
        return [_encoded(each) for each in value]
    if isinstance(value, dict):
        return {name: _encoded(each) for name, each in value.items()}
    return value


def test_on_an_object_store(s3_bucket: str, s3_options: dict[str, str]) -> None:
    """The view is filled by ranges of the remote file; blobs are read and copied there."""
    uri = f"s3://{s3_bucket}/table"
    store = open_store(uri, s3_options)
    root = GOLDEN / "v2_2.2" / "table"
    for path in root.rglob("*"):
        if path.is_file():
            store.put(path.relative_to(root).as_posix(), path.read_bytes())
    rows = json.loads((GOLDEN / "v2_2.2" / "expected.json").read_text())["rows"]
    ds = tw.dataset(uri, storage_options=s3_options)
    read = ds.to_table(blob_handling="all_binary")
    assert [_encoded(row) for row in read.to_pylist()] == rows
    assert ds.to_table(columns=["c0"])["c0"].to_pylist() == [row["c0"] for row in rows]
    assert ds.count_rows("b is null") == 2
    ds.update({"s": "'moved'"}, where="b.size > 20", write_mode="rewrite_rows")
    after = {row["id"]: _encoded(row["b"]) for row in ds.to_table(blob_handling="all_binary").to_pylist()}
    assert after == {row["id"]: row["b"] for row in rows}

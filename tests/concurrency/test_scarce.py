"""No permission, no file descriptors, no room for temporary files: an error of ours at once, and nothing left behind.

Every case runs in a process of its own, without privileges, because root may write anywhere.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import tablewright as tw

ROWS = pa.table({"id": range(100), "s": ["x"] * 100})

PRELUDE = """
import json, os, resource, sys, time
import pyarrow as pa
import tablewright as tw
from tablewright.engine.spark.daemon import preload

preload()  # modules can't be imported any more with few descriptors, or as another user
path = sys.argv[1]
ROWS = pa.table({"id": range(50, 150), "s": ["y"] * 100})

def tell(**acts):
    for name, act in acts.items():
        began = time.monotonic()
        try:
            result = act()
            print(json.dumps([name, "ok", str(result)]))
        except BaseException as error:
            print(json.dumps([name, type(error).__name__, str(error)]))
        assert time.monotonic() - began < 8, name

def leave_descriptors(count):
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    taken = []
    try:
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    for _ in range(count):
        os.close(taken.pop())
    return taken

if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
"""
VERBS = """
verbs = dict(
    insert=lambda: ds.insert(ROWS),
    delete=lambda: ds.delete("id = 5"),
    update=lambda: ds.update({"s": "'z'"}, where="id = 5"),
    merge=lambda: ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(ROWS),
    add_columns=lambda: ds.add_columns({"b": "id * 2"}),
    drop_columns=lambda: ds.drop_columns(["s"]),
    config=lambda: ds.update_config({"a": "b"}),
    restore=lambda: ds.checkout_version(1).restore(),
    tag=lambda: ds.tags.create("t", 1),
    branch=lambda: ds.create_branch("b"),
    drop=lambda: tw.LanceDataset.drop(path),
    create=lambda: tw.write_dataset(ROWS, path + "/inner"),
)
"""


def told(table: Path, script: str, **environment: str) -> dict[str, tuple[str, str]]:
    """What the process said of each act: the class of its error or "ok", and its text."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + script, str(table)],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env={**os.environ, "RUST_BACKTRACE": "0", **environment},
    )
    assert done.returncode == 0, done.stderr
    return {name: (kind, text) for name, kind, text in map(json.loads, done.stdout.splitlines())}


@pytest.fixture
def table() -> Iterator[Path]:
    """In a directory that another user may enter, which pytest's own are not."""
    top = Path(tempfile.mkdtemp())
    top.chmod(0o755)
    ds = tw.write_dataset(ROWS, top / "t", max_rows_per_file=30)
    ds.delete("id = 3")
    yield top / "t"
    shutil.rmtree(top)


def files_of(root: Path) -> set[str]:
    return {os.path.join(directory, name) for directory, _, names in os.walk(root) for name in names}


def set_mode(table: Path, directories: int, files: int) -> None:
    for path in [table, *table.rglob("*")]:
        path.chmod(directories if path.is_dir() else files)


def test_a_table_that_may_only_be_read(table: Path) -> None:
    set_mode(table, 0o555, 0o444)
    before = files_of(table)
    said = told(
        table,
        VERBS
        + """
ds = tw.dataset(path)
tell(
    scan=lambda: ds.to_table().num_rows,
    count=lambda: ds.count_rows(filter="id < 50"),
    take=lambda: ds.take([1]).num_rows,
    versions=lambda: len(ds.versions()),
    old=lambda: ds.checkout_version(1).count_rows(),
)
tell(**verbs)
""",
    )
    set_mode(table, 0o755, 0o644)
    reads = {name: said.pop(name)[1] for name in ("scan", "count", "take", "versions", "old")}
    assert reads == {"scan": "99", "count": "49", "take": "1", "versions": "2", "old": "100"}
    assert {kind for kind, _ in said.values()} == {"AccessDenied"}, said
    assert files_of(table) == before
    assert tw.dataset(table).to_table().num_rows == 99


def test_a_table_that_may_not_be_read(table: Path) -> None:
    set_mode(table, 0o700, 0o600)
    said = told(table, 'tell(open=lambda: tw.dataset(path), write=lambda: tw.write_dataset(ROWS, path, mode="append"))')
    assert {kind for kind, _ in said.values()} == {"AccessDenied"}, said


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_too_few_file_descriptors(table: Path, warm: bool) -> None:
    """Libraries in Rust panic where they can't start; that is our StorageError. Afterwards all works."""
    set_mode(table, 0o777, 0o666)
    script = """
for count in range(5):
    ds = tw.dataset(path)
    if WARM:
        ds.to_table(filter="id > 5")
    taken = leave_descriptors(count)
    tell(**{f"{name} {count}": act for name, act in dict(
        open=lambda: tw.dataset(path).version,
        scan=lambda: ds.to_table().num_rows,
        filter=lambda: ds.to_table(filter="id > 5 and s like 'x%'").num_rows,
        insert=lambda: ds.insert(ROWS),
        delete=lambda: ds.delete("id = 5"),
    ).items()})
    for descriptor in taken:
        os.close(descriptor)
tell(after=lambda: tw.dataset(path).to_table().num_rows > 0)
""".replace("WARM", str(warm))
    said = told(table, script)
    assert said["after"] == ("ok", "True")
    assert [line for line in said.items() if line[1][0] not in ("ok", "StorageError")] == []
    assert said["open 0"][0] == "StorageError" and "ulimit -n" in said["open 0"][1]


def test_no_place_for_temporary_files(table: Path) -> None:
    set_mode(table, 0o777, 0o666)
    before = files_of(table)
    said = told(
        table,
        """
import tempfile
from tablewright.operations.merge_insert.limits import MergeLimits, SourceLimits
ds, held = tw.dataset(path), tw.write_dataset(ROWS, "memory://t")
tempfile.tempdir = path + "/no/such/place"
limits = MergeLimits(source=SourceLimits(memory_bytes=0))
upsert = lambda ds: ds.merge_insert("id")._with(limits=limits).when_matched_update_all().when_not_matched_insert_all()
tell(
    merge=lambda: upsert(ds).execute(pa.RecordBatchReader.from_batches(ROWS.schema, ROWS.to_batches())),
    insert=lambda: held.insert(pa.RecordBatchReader.from_batches(ROWS.schema, ROWS.to_batches())),
    read=lambda: tw.dataset("memory://t").to_table(),
)
""",
    )
    assert {kind for kind, _ in said.values()} == {"StorageError"}, said
    assert all("TMPDIR" in text for _, text in said.values())
    assert files_of(table) == before

"""A disk that has no room for the manifest, while the data files still fit: certain failure, at once, nothing left.

The limit of this process on file sizes plays the full disk: writes fail with an error of the operating system after
the file was created, as ENOSPC does. Data files and transactions stay below the limit, manifests are made larger.
"""

from __future__ import annotations

import errno
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import AccessDenied, StorageError

LIMIT = 20_000
ROWS = pa.table({"id": [1, 2, 3], "x": [1.0, 2.0, 3.0]})
MANY = pa.table({"id": range(10_000), "x": [float(i * 7 % 13) for i in range(10_000)]})
Verb = Callable[[tw.LanceDataset], object]

VERBS: dict[str, Verb] = {
    "insert": lambda ds: ds.insert(ROWS),
    "overwrite": lambda ds: tw.write_dataset(ROWS, ds, mode="overwrite"),
    "delete": lambda ds: ds.delete("id = 2"),
    "update": lambda ds: ds.update({"x": "x + 1"}, where="id = 2"),
    "merge": lambda ds: ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(ROWS),
    "add_columns": lambda ds: ds.add_columns({"y": "x * 2"}),
    "drop_columns": lambda ds: ds.drop_columns(["x"]),
    "alter_columns": lambda ds: ds.alter_columns({"path": "x", "data_type": pa.float32()}),
    "config": lambda ds: ds.update_config({"a": "b"}),
    "restore": lambda ds: ds.checkout_version(2).restore(),
    "create_branch": lambda ds: ds.create_branch("b"),
    "commit": lambda ds: tw.LanceDataset.commit(ds.uri, tw.LanceOperation.Append([]), read_version=ds.version),
}


@contextmanager
def files_limited_to(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def files_of(root: Path) -> set[str]:
    return {os.path.join(directory, name) for directory, _, names in os.walk(root) for name in names}


@pytest.fixture
def table(tmp_path: Path) -> tw.LanceDataset:
    ds = tw.write_dataset(ROWS, tmp_path / "t")
    ds.update_config({"long": "x" * 2 * LIMIT})  # it is in every manifest from now on
    ds.delete("id = 3")
    return ds


@pytest.mark.parametrize("verb", VERBS)
def test_a_manifest_that_does_not_fit(table: tw.LanceDataset, tmp_path: Path, verb: str) -> None:
    before, version, rows = files_of(tmp_path), table.version, table.to_table()
    began = time.monotonic()
    with files_limited_to(LIMIT), pytest.raises(StorageError, match="larger than this process") as caught:
        VERBS[verb](table)
    assert time.monotonic() - began < 5  # settling an unknown outcome would take longer
    assert caught.value.nothing_written
    assert files_of(tmp_path) == before
    again = tw.dataset(tmp_path / "t")
    assert (again.version, again.to_table()) == (version, rows)
    VERBS[verb](again)


def test_a_data_file_that_does_not_fit(table: tw.LanceDataset, tmp_path: Path) -> None:
    before = files_of(tmp_path)
    with (
        files_limited_to(1000),
        pytest.raises(StorageError, match=r"Could not write.*larger than this process") as caught,
    ):
        table.insert(MANY)
    assert caught.value.nothing_written  # no version names the file
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("is_small", [True, False])
def test_data_files_that_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_small: bool) -> None:
    """The first file of a table needs its directory; small ones are made in memory, large ones by the codec."""

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("tablewright.storage.local_files.make_directories", refused)
    with pytest.raises(AccessDenied) as caught:
        tw.write_dataset(ROWS if is_small else ROWS.to_reader(), tmp_path / "new")
    assert caught.value.nothing_written
    assert files_of(tmp_path / "new") == set()


def test_small_data_files_that_are_refused(
    table: tw.LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    before = files_of(tmp_path)
    monkeypatch.setattr("tablewright.storage.local_files.os.write", refused)
    with pytest.raises(AccessDenied) as caught:
        table.insert(ROWS)
    assert caught.value.nothing_written
    assert files_of(tmp_path) == before


def test_the_data_files_of_a_merge_with_new_columns(table: tw.LanceDataset, tmp_path: Path) -> None:
    """The data files are written first: where they do not fit, no column is added."""
    merge = table.merge_insert("id", schema_evolution=True).when_not_matched_insert_all()
    with files_limited_to(1000), pytest.raises(StorageError) as caught:
        merge.execute(MANY.append_column("y", MANY["x"]))
    assert caught.value.nothing_written
    assert tw.dataset(tmp_path / "t").schema.names == ["id", "x"]


def test_a_new_table_that_does_not_fit(tmp_path: Path) -> None:
    schema = ROWS.schema.with_metadata({"long": "x" * 2 * LIMIT})
    with files_limited_to(LIMIT), pytest.raises(StorageError):
        tw.write_dataset(ROWS.cast(schema), tmp_path / "t")
    assert files_of(tmp_path) == set()

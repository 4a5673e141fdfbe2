"""Damaged files of indices: CorruptTable from everything that asks them, and no answer that a check can tell is wrong.

Without the index everything still works, and it can be dropped or built again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pytest
from tests.differential.test_create_index import COLUMNS, FILTERS, STABLE, rows

import tablewright as tw
from tablewright.snapshot.snapshot import open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

KIND = pytest.mark.parametrize("kind", list(COLUMNS))
FIRST, BESIDE = rows(0, 300), rows(0, 150)


def built(uri: Path, kind: str, content: Any = FIRST, *, stable: bool = False) -> list[Path]:
    """A table with one index, and the files of that."""
    tw.write_dataset(content, str(uri), max_rows_per_file=100, enable_stable_row_ids=stable)
    tw.dataset(str(uri)).create_scalar_index(COLUMNS[kind], kind)
    return sorted((uri / "_indices").glob("*/*"))


def answers(uri: Path, kind: str, *, by_index: bool) -> list[Any]:
    dataset, found = tw.dataset(str(uri)), []
    for sql in FILTERS[kind]:
        found.append(
            dataset.scanner(columns=["id"], filter=sql, use_scalar_index=by_index).to_table()["id"].to_pylist()
        )
        found.append(dataset.scanner(filter=sql, use_scalar_index=by_index).count_rows())
    return found


def damages(file: Path, siblings: list[Path]) -> Iterator[bytes | None]:
    """Cut, emptied, zeroed, missing, another file of the index, a data file."""
    data = file.read_bytes()
    yield from (data[: len(data) // 2], b"", b"\0" * len(data), data[:-1], data + b"\0", None)
    yield from (other.read_bytes() for other in siblings if other != file)
    yield next((file.parents[2] / "data").iterdir()).read_bytes()


@KIND
@STABLE
def test_T36_damaged_files_are_named_and_nothing_changes(tmp_path: Path, kind: str, stable: bool) -> None:
    """Each in a table of its own: what was read once is in the cache."""
    master = tmp_path / "master"
    files = built(master, kind, stable=stable)
    right = answers(master, kind, by_index=False)
    cases = [(file, data) for file in files for data in damages(file, files)]
    for number, (file, data) in enumerate(cases):
        uri = Path(shutil.copytree(master, tmp_path / str(number)))
        place = uri / file.relative_to(master)
        place.unlink() if data is None else place.write_bytes(data)
        version = tw.dataset(str(uri)).version
        sql = FILTERS[kind][0]
        for ask in (
            lambda ds, sql=sql: ds.scanner(filter=sql, use_scalar_index=True).to_table(),
            lambda ds, sql=sql: ds.scanner(filter=sql, use_scalar_index=True).count_rows(),
            lambda ds, sql=sql: ds.delete(sql, use_scalar_index=True),
            lambda ds, sql=sql: ds.update({"id": "0"}, where=sql, use_scalar_index=True),
        ):
            with pytest.raises(tw.errors.CorruptTable, match="_indices"):
                ask(tw.dataset(str(uri)))
        assert tw.dataset(str(uri)).version == version
        assert answers(uri, kind, by_index=False) == right
        shutil.rmtree(uri)


VERBS: dict[str, Callable[[Any, str], Any]] = {
    "drop": lambda ds, kind: ds.drop_index(f"{COLUMNS[kind]}_idx"),
    "replace": lambda ds, kind: ds.create_scalar_index(COLUMNS[kind], kind),
    "compact": lambda ds, kind: ds.optimize.compact_files(),
}


@KIND
@pytest.mark.parametrize("verb", VERBS)
def test_a_damaged_index_is_got_rid_of(tmp_path: Path, kind: str, verb: str) -> None:
    """Dropped, built again, or, as it can't be translated past a compaction, no longer covering anything."""
    for file in built(tmp_path, kind):
        file.unlink()
    right = answers(tmp_path, kind, by_index=False)
    VERBS[verb](tw.dataset(str(tmp_path)), kind)
    assert answers(tmp_path, kind, by_index=True) == answers(tmp_path, kind, by_index=False) == right


@KIND
def test_a_damaged_index_is_trained_again_if_its_settings_are_known(tmp_path: Path, kind: str) -> None:
    """Those of zones and of Bloom filters are in the file itself."""
    for file in built(tmp_path, kind):
        file.unlink()
    if kind in ("ZONEMAP", "BLOOMFILTER"):
        with pytest.raises(tw.errors.CorruptTable, match="_indices"):
            tw.dataset(str(tmp_path)).optimize.optimize_indices(retrain=True)
        return
    tw.dataset(str(tmp_path)).optimize.optimize_indices(retrain=True)
    assert answers(tmp_path, kind, by_index=True) == answers(tmp_path, kind, by_index=False)


@KIND
def test_new_rows_are_not_merged_into_a_damaged_index(tmp_path: Path, kind: str) -> None:
    for file in built(tmp_path, kind):
        file.unlink()
    tw.dataset(str(tmp_path)).insert(rows(400, 410))
    version = tw.dataset(str(tmp_path)).version
    with pytest.raises(tw.errors.CorruptTable, match="_indices"):
        tw.dataset(str(tmp_path)).optimize.optimize_indices()
    assert tw.dataset(str(tmp_path)).version == version


@KIND
def test_T36_the_file_of_another_index_of_that_kind(tmp_path: Path, kind: str) -> None:
    """It can be read, and would answer; its size is not the one in the manifest."""
    files = built(tmp_path / "t", kind)
    for file, other in zip(files, built(tmp_path / "o", kind, BESIDE), strict=True):
        assert file.stat().st_size != other.stat().st_size or file.name == "page_lookup.lance"
        shutil.copy(other, file)
    with pytest.raises(tw.errors.CorruptTable, match="the manifest says"):
        answers(tmp_path / "t", kind, by_index=True)
    answers(tmp_path / "t", kind, by_index=False)


def test_T36_sizes_are_recorded_by_both(tmp_path: Path) -> None:
    for number, library in enumerate((tw, lance)):
        uri = tmp_path / str(number)
        library.write_dataset(FIRST, str(uri))
        library.dataset(str(uri)).create_scalar_index("n", "BTREE")
        (index,) = open_snapshot(World(open_store(str(uri)))).manifest.indices
        files = {file.path: file.size_bytes for file in index.files}
        assert files == {file.name: file.stat().st_size for file in (uri / "_indices").glob("*/*")}

"""Cleanup in both directions: we clean tables of pylance, pylance cleans ours; afterwards both read what is kept."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import TaggedVersions
from tablewright.format.cleanup_journal import encode_journal

NOW = timedelta(microseconds=1)


def rows(start: int, count: int, text: str = "x") -> pa.Table:
    ids = list(range(start, start + count))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(i) for i in ids for _ in range(4)], pa.float32()), 4)
    return pa.table({"id": ids, "s": [f"{text}{i}" for i in ids], "v": vectors})


def history(write: Any, path: Path, stable: bool) -> None:
    """Versions with appends, deletes, updates, an overwrite; a tag, a branch and (pylance) an index and compaction."""
    ds = write(rows(0, 60), path, max_rows_per_file=20, enable_stable_row_ids=stable)
    ds = write(rows(60, 10), path, mode="append")
    ds.delete("id in (1, 25)")
    ds.update({"s": "'u'"}, where="id < 5")
    ds.tags.create("four", 4)
    pylance = lance.dataset(path)
    pylance.create_scalar_index("id", "BTREE")
    pylance.optimize.compact_files(materialize_deletions_threshold=0.0)
    type_of = lance.dataset if write is lance.write_dataset else tw.dataset
    ds = type_of(path)
    ds.create_branch("b", ds.version)
    ds = type_of(path)
    ds.checkout_version(("b", None)).insert(rows(200, 3))
    ds.delete("id = 7")
    ds = write(rows(300, 30), path, mode="overwrite")
    ds.delete("id = 301")
    ds.delete("id = 302")


def everything(path: Path) -> dict[Any, list[int]]:
    """The ids in every version of every line, as pylance and we read them, both valid."""
    found: dict[Any, list[int]] = {}
    theirs, ours = lance.dataset(path), tw.dataset(path)
    for line in (None, *theirs.branches.list()):
        t = theirs if line is None else theirs.checkout_version((line, None))
        o = ours if line is None else ours.checkout_version((line, None))
        numbers = [each["version"] for each in t.versions()]
        assert numbers == [each["version"] for each in o.versions()]
        for number in numbers:
            at, mine = t.checkout_version((line, number)), o.checkout_version((line, number))
            at.validate()
            mine.validate()
            ids = sorted(at.to_table(columns=["id"])["id"].to_pylist())
            assert sorted(mine.to_table(columns=["id"])["id"].to_pylist()) == ids
            found[line, number] = ids
    return found


def files(path: Path) -> set[str]:
    hidden = ("latest_version_hint.json",)
    found = (os.path.relpath(os.path.join(top, name), path) for top, _, names in os.walk(path) for name in names)
    return {name for name in found if not name.endswith(hidden)}


CALLS: dict[str, dict[str, Any]] = {
    "all": {"older_than": NOW, "error_if_tagged_old_versions": False},
    "retain 3": {"retain_versions": 3, "error_if_tagged_old_versions": False},
    "versions": {"versions": [2, 3, 5]},
    "nothing": {},
    "unverified": {"older_than": NOW, "error_if_tagged_old_versions": False, "delete_unverified": True},
}


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("writer", ["pylance", "ours"])
@pytest.mark.parametrize("call", list(CALLS))
def test_we_leave_what_pylance_leaves(tmp_path: Path, call: str, writer: str, stable: bool) -> None:
    write = lance.write_dataset if writer == "pylance" else tw.write_dataset
    history(write, tmp_path / "theirs", stable)
    before = everything(tmp_path / "theirs")
    shutil.copytree(tmp_path / "theirs", tmp_path / "ours")
    theirs = lance.dataset(tmp_path / "theirs").cleanup_old_versions(**CALLS[call])
    explained = tw.dataset(tmp_path / "ours").explain_cleanup_old_versions(**CALLS[call])
    ours = tw.dataset(tmp_path / "ours").cleanup_old_versions(**CALLS[call])
    assert explained.stats == ours
    after = everything(tmp_path / "theirs")
    assert {key: ids for key, ids in before.items() if key in after} == after
    assert _main(everything(tmp_path / "ours")) == _main(after)
    extra = files(tmp_path / "ours") - files(tmp_path / "theirs")
    assert files(tmp_path / "ours") - extra == files(tmp_path / "theirs")
    assert extra <= {_transaction_of_the_branch_point(tmp_path / "ours")}
    counts = ["old_versions", "data_files_removed", "deletion_files_removed", "index_files_removed"]
    for name in (*counts, *(() if extra else ("bytes_removed", "transaction_files_removed"))):
        assert getattr(ours, name) == getattr(theirs, name), name


def _transaction_of_the_branch_point(path: Path) -> str:
    """pylance removes it though the version stays; ours stays with its version, as other writers look for it."""
    ds = tw.dataset(path)
    point = ds.checkout_version(ds.branches.list()["b"]["parent_version"])
    return f"_transactions/{point._snapshot.manifest.transaction_file}"


def _main(found: dict[Any, list[int]]) -> dict[Any, list[int]]:
    return {key: ids for key, ids in found.items() if key[0] is None}


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_pylance_cleans_ours_and_we_go_on(tmp_path: Path, stable: bool) -> None:
    history(tw.write_dataset, tmp_path / "t", stable)
    lance.dataset(tmp_path / "t").cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
    everything(tmp_path / "t")
    ds = tw.dataset(tmp_path / "t")
    ds.delete("id = 305")
    ds.insert(rows(400, 4))
    ds.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    everything(tmp_path / "t")
    pylance = lance.dataset(tmp_path / "t")
    pylance.delete("id = 306")
    pylance.insert(rows(500, 2))
    everything(tmp_path / "t")


def test_the_same_words_about_tags(tmp_path: Path) -> None:
    ds = lance.write_dataset(rows(0, 3), tmp_path / "t")
    ds = lance.write_dataset(rows(0, 3), tmp_path / "t", mode="overwrite")
    ds.tags.create("x", 1)
    with pytest.raises(OSError, match="tagged") as theirs:
        ds.cleanup_old_versions(NOW)
    with pytest.raises(OSError, match="tagged") as ours:
        tw.dataset(tmp_path / "t").cleanup_old_versions(NOW)
    assert isinstance(ours.value, TaggedVersions)
    assert str(theirs.value).startswith(str(ours.value))


def test_indices_go_and_stay_with_their_versions(tmp_path: Path) -> None:
    path = tmp_path / "t"
    ds = lance.write_dataset(rows(0, 300), path)
    ds.create_scalar_index("id", "BTREE")
    ds.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=2)
    ds.tags.create("indexed", ds.version)
    ds.create_scalar_index("id", "BTREE", replace=True)
    ds = lance.write_dataset(rows(1000, 50), path, mode="overwrite")
    ds.create_scalar_index("id", "BTREE")
    ours = tw.dataset(path)
    ours.cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
    assert len(os.listdir(path / "_indices")) == 3
    tagged = lance.dataset(path, version="indexed")
    assert tagged.to_table(filter="id = 77").num_rows == 1
    nearest = tagged.to_table(nearest={"column": "v", "q": [9.0] * 4, "k": 3})
    assert nearest.num_rows == 3
    ours.tags.delete("indexed")
    stats = ours.cleanup_old_versions(NOW)
    assert stats.index_files_removed > 0
    assert len(os.listdir(path / "_indices")) == 1
    assert lance.dataset(path).to_table(filter="id = 1007").num_rows == 1
    lance.dataset(path).validate()


def test_blob_files_of_pylance(tmp_path: Path) -> None:
    path = tmp_path / "t"

    def blobs(size: int, count: int) -> pa.Table:
        return pa.table({"id": list(range(count)), "b": lance.blob_array([os.urandom(size) for _ in range(count)])})

    for number, size in enumerate((200_000, 5_000_000, 300_000)):
        mode = "overwrite" if number else "create"
        lance.write_dataset(blobs(size, 2), path, mode=mode, data_storage_version="2.2")
    sidecars = sorted(file for file in files(path) if file.endswith(".blob"))
    assert len(sidecars) >= 3
    shutil.copytree(path, tmp_path / "theirs")
    theirs = lance.dataset(tmp_path / "theirs").cleanup_old_versions(NOW)
    stats = tw.dataset(path).cleanup_old_versions(NOW)
    assert stats.blob_files_removed > 0
    assert stats.data_files_removed == theirs.data_files_removed
    assert files(path) == files(tmp_path / "theirs")
    assert len(os.listdir(path / "data")) == 2  # a data file and the directory of its blobs
    read = lance.dataset(path).take_blobs("b", indices=[0, 1])
    assert [blob.size() for blob in read] == [300_000, 300_000]


def test_a_shallow_clone_loses_nothing_of_its_source(tmp_path: Path) -> None:
    """Files that lie at a base path are never deleted through the clone."""
    source = lance.write_dataset(rows(0, 20), tmp_path / "source")
    clone = source.shallow_clone(tmp_path / "clone", 1)
    clone.delete("id = 3")
    lance.write_dataset(rows(50, 5), tmp_path / "clone", mode="overwrite")
    before = files(tmp_path / "source")
    stats = tw.dataset(tmp_path / "clone").cleanup_old_versions(NOW, delete_unverified=True)
    assert (stats.old_versions, stats.data_files_removed, stats.deletion_files_removed) == (2, 0, 1)
    assert files(tmp_path / "source") == before
    assert lance.dataset(tmp_path / "source").to_table().num_rows == 20
    lance.dataset(tmp_path / "clone").validate()


def test_stray_files_wait_as_in_pylance(tmp_path: Path) -> None:
    path = tmp_path / "t"
    lance.write_dataset(rows(0, 3), path)
    old = ["data/old.lance", "_deletions/0-1-5.bin", "_transactions/1-old.txn", "data/old/1.blob"]
    old += ["_indices/12345678-1234-1234-1234-1234567890ab/index.idx"]
    for name in (*old, "data/new.lance", "data/readme.txt", "_refs/x.txt", "_versions/5.manifest.bak"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("x")
    for name in (*old, "data/readme.txt"):
        os.utime(path / name, (0, 0))
    shutil.copytree(path, tmp_path / "theirs")
    lance.dataset(tmp_path / "theirs").cleanup_old_versions(NOW)
    tw.dataset(path).cleanup_old_versions(NOW)
    assert files(path) == files(tmp_path / "theirs")
    assert (path / "data" / "new.lance").exists()


def test_pylance_ignores_the_journal_of_an_interrupted_cleanup(tmp_path: Path) -> None:
    path = tmp_path / "t"
    tw.write_dataset(rows(0, 3), path)
    tw.write_dataset(rows(0, 3), path, mode="overwrite")
    (path / "_cleanup").mkdir()
    journal = path / "_cleanup" / "12345678-1234-1234-1234-1234567890ab.json"
    journal.write_bytes(encode_journal([1], ["data/gone.lance"]))
    os.utime(journal, (0, 0))
    pylance = lance.dataset(path)
    pylance.cleanup_old_versions(NOW, delete_unverified=True)
    pylance.insert(rows(10, 2))
    assert journal.exists()
    tw.dataset(path).cleanup_old_versions(NOW)
    assert not (path / "_cleanup").exists()
    everything(path)


def test_tables_with_v1_names(tmp_path: Path) -> None:
    path = tmp_path / "t"
    lance.write_dataset(rows(0, 3), path, enable_v2_manifest_paths=False)
    for _ in range(3):
        lance.write_dataset(rows(0, 3), path, mode="overwrite")
    shutil.copytree(path, tmp_path / "theirs")
    lance.dataset(tmp_path / "theirs").cleanup_old_versions(retain_versions=2)
    assert tw.dataset(path).cleanup_old_versions(retain_versions=2).old_versions == 2
    assert files(path) == files(tmp_path / "theirs")
    assert "_versions/4.manifest" in files(path)
    everything(path)

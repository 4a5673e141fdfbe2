"""Scattered changes on stable row ids: manifests stay about as small as pylance's, and both read the same versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.differential.referee import lance

import tablewright as tw
from tablewright.format.envelope import encode_manifest_file
from tablewright.format.fragment import Fragment
from tablewright.format.row_ids import (
    RowIdSequence,
    VersionSequence,
    decode_row_ids,
    decode_versions,
    encode_row_ids,
    encode_versions,
)

ROWS = 20_000
VERSIONS = ["id", "f", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
SCATTERED = np.sort(np.random.default_rng(2).choice(ROWS, ROWS // 5, replace=False))


def _merge(ds: Any) -> None:
    source = pa.table({"id": SCATTERED, "f": np.ones(len(SCATTERED))})
    ds.merge_insert("id").when_matched_update_all().execute(source)


def _update(ds: Any) -> None:
    ds.update({"f": "1.0"}, where="id % 2 = 1")


def _made(path: Path, module: Any) -> Any:
    vectors = pa.FixedSizeListArray.from_arrays(np.zeros(ROWS * 32, np.float32), 32)
    rows = pa.table({"id": range(ROWS), "f": np.zeros(ROWS), "v": vectors})
    return module.write_dataset(rows, str(path), enable_stable_row_ids=True, max_rows_per_file=ROWS // 2)


def _newest_manifest(path: Path) -> int:
    return min((path / "_versions").glob("*.manifest")).stat().st_size


@pytest.mark.parametrize("change", [_merge, _update], ids=["merge", "update"])
def test_scattered_rows_move(tmp_path: Path, change: Callable[[Any], None]) -> None:
    for name, module in (("ours", tw), ("theirs", lance)):
        change(_made(tmp_path / name, module))
    ours, theirs = _newest_manifest(tmp_path / "ours"), _newest_manifest(tmp_path / "theirs")
    assert ours < theirs + 2000
    shown = [
        module.dataset(str(tmp_path / name)).to_table(columns=VERSIONS).sort_by("id")
        for name in ("ours", "theirs")
        for module in (tw, lance)
    ]
    assert all(each.equals(shown[0]) for each in shown)
    lance.dataset(str(tmp_path / "ours")).validate()


@pytest.mark.parametrize("change", [_merge, _update], ids=["merge", "update"])
def test_what_pylance_compacted_is_stored_in_half_the_bytes(tmp_path: Path, change: Callable[[Any], None]) -> None:
    """pylance gives the runs of versions bitmaps for spans, of which only the number of values counts."""
    place = str(tmp_path / "t")
    change(_made(tmp_path / "t", tw))
    before = tw.dataset(place).to_table(columns=VERSIONS).sort_by("id")
    lance.dataset(place).optimize.compact_files()
    ds = tw.dataset(place)
    manifest = ds._snapshot.manifest
    fragments = {each.id: _shorter(each) for each in manifest.fragments}
    manifest = replace(manifest, fragments=manifest.fragments.replaced(fragments))
    theirs, ours = (sum(map(_size, each)) for each in (ds._snapshot.fragments, manifest.fragments))
    assert ours < 2 * ROWS / 8 + 200 and ours < 0.6 * theirs
    data = encode_manifest_file(manifest, ds._snapshot.file.transaction_bytes or b"")
    (tmp_path / "t" / ds._snapshot.entry.path).write_bytes(data)
    for module in (tw, lance):
        assert module.dataset(place).to_table(columns=VERSIONS).sort_by("id").equals(before)
    lance.dataset(place).validate()
    lance.dataset(place).delete("id = 7")
    assert tw.dataset(place).to_table(columns=VERSIONS).num_rows == ROWS - 1


@pytest.mark.parametrize("where", [None, "id >= 3000 and id < 17_000"], ids=["all", "range"])
@pytest.mark.parametrize("verb", ["update", "merge"])
def test_deleted_rows_do_not_cut_runs_of_versions(tmp_path: Path, where: str | None, verb: str) -> None:
    """A tenth of the rows is deleted, every tenth one: each would be a run, and the rows between two as well."""
    place = str(tmp_path / "t")
    _made(tmp_path / "t", tw).delete("id % 10 = 4")
    low, high = (0, ROWS) if where is None else (3000, 17_000)
    changed = [id for id in range(low, high) if id % 10 != 4]
    ds = tw.dataset(place)
    if verb == "update":
        ds.update({"f": "1.0"}, where=where and where.replace("_", ""), write_mode="rewrite_columns")
    else:
        source = pa.table({"id": changed, "f": np.ones(len(changed))})
        ds.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns").execute(source)
    for module in (tw, lance):
        shown = module.dataset(place).to_table(columns=VERSIONS)
        updated = dict(zip(shown["id"].to_pylist(), shown["_row_last_updated_at_version"].to_pylist(), strict=True))
        assert updated == {id: 3 if low <= id < high else 1 for id in range(ROWS) if id % 10 != 4}
        assert shown["_row_created_at_version"].unique().to_pylist() == [1]
        module.dataset(place).validate()
    versions = [each.last_updated_at for each in tw.dataset(place)._snapshot.fragments]
    assert max(len(decode_versions(data or b"", "").runs) for data in versions) <= 2


@pytest.mark.parametrize("compactor", [tw, lance], ids=["ours", "theirs"])
def test_columns_in_place_beside_deleted_rows_pass_a_compaction(tmp_path: Path, compactor: Any) -> None:
    place = str(tmp_path / "t")
    _made(tmp_path / "t", tw).delete("id % 10 = 4")
    stale = tw.dataset(place)
    compactor.dataset(place).optimize.compact_files(materialize_deletions_threshold=0.0)
    done = stale.update({"f": "1.0"}, where="id >= 3000 and id < 17000", write_mode="rewrite_columns")
    assert done["num_rows_updated"] == 14_000 * 9 // 10
    version = stale.version
    for module in (tw, lance):
        shown = module.dataset(place).to_table(columns=VERSIONS)
        updated = dict(zip(shown["id"].to_pylist(), shown["_row_last_updated_at_version"].to_pylist(), strict=True))
        assert updated == {id: version if 3000 <= id < 17_000 else 1 for id in range(ROWS) if id % 10 != 4}
        module.dataset(place).validate()


def _shorter(fragment: Fragment) -> Fragment:
    ids, created, updated = (
        decode(data or b"", "", fragment.physical_rows)
        for decode, data in (
            (decode_row_ids, fragment.row_ids),
            (decode_versions, fragment.created_at),
            (decode_versions, fragment.last_updated_at),
        )
    )
    return replace(
        fragment,
        row_ids=encode_row_ids(RowIdSequence.join([ids])),
        created_at=encode_versions(VersionSequence.join([created])),
        last_updated_at=encode_versions(VersionSequence.join([updated])),
    )


def _size(fragment: Fragment) -> int:
    return sum(len(data or b"") for data in (fragment.row_ids, fragment.created_at, fragment.last_updated_at))

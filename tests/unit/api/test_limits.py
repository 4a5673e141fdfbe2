"""Tables that have used up their numbers: every change says so, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import UnsupportedFeature
from tablewright.format.envelope import encode_manifest_file
from tablewright.format.fragment import FragmentList
from tablewright.format.limits import FIELD_ID_MAX, FRAGMENT_ID_MAX, NEXT_ROW_ID_MAX, VERSION_MAX
from tablewright.format.manifest import Manifest
from tablewright.format.naming import manifest_path

ROWS = pa.table({"id": [1, 2, 3], "s": ["a", "b", "c"]})


def staged(place: Path, change: Callable[[Manifest], Manifest]) -> tw.LanceDataset:
    """A table with row ids whose newest version is changed by hand."""
    ds = tw.write_dataset(ROWS, place, enable_stable_row_ids=True)
    before = ds._snapshot
    after = change(before.manifest)
    (place / before.entry.path).unlink()
    (place / "_versions" / "latest_version_hint.json").unlink(missing_ok=True)
    (place / manifest_path(after.version)).write_bytes(encode_manifest_file(after, b""))
    return tw.dataset(place)


def files_of(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}


def merge(ds: tw.LanceDataset, ids: list[int]) -> Any:
    rows = pa.table({"id": ids, "s": ["new"] * len(ids)})
    return ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)


GROWING: dict[str, Callable[[tw.LanceDataset], Any]] = {
    "insert": lambda ds: ds.insert(ROWS),
    "append": lambda ds: tw.write_dataset(ROWS, ds.uri, mode="append"),
    "overwrite": lambda ds: tw.write_dataset(ROWS, ds.uri, mode="overwrite"),
    "merge": lambda ds: merge(ds, [1, 9]),
}
OTHERS: dict[str, Callable[[tw.LanceDataset], Any]] = {
    "delete": lambda ds: ds.delete("id = 1"),
    "add": lambda ds: ds.add_columns({"n": "id * 2"}),
    "drop": lambda ds: ds.drop_columns(["s"]),
    "config": lambda ds: ds.update_config({"a": "b"}),
    "restore": lambda ds: ds.restore(),
}


@pytest.mark.parametrize("verb", GROWING)
@pytest.mark.parametrize("mark", ["fragments", "row ids"])
def test_used_up_ids(tmp_path: Path, mark: str, verb: str) -> None:
    place = tmp_path / "t.lance"
    if mark == "fragments":
        ds = staged(place, lambda manifest: replace(manifest, max_fragment_id=FRAGMENT_ID_MAX))
    else:
        ds = staged(place, lambda manifest: replace(manifest, next_row_id=NEXT_ROW_ID_MAX))
    before = files_of(place)
    with pytest.raises(UnsupportedFeature, match=r"this table has used all of them\. Copy its rows"):
        GROWING[verb](ds)
    assert files_of(place) == before
    assert tw.dataset(place).to_table().equals(ROWS)
    assert tw.dataset(place).delete("id = 1")["num_deleted_rows"] == 1


def test_an_update_that_moves_rows_needs_a_fragment(tmp_path: Path) -> None:
    place = tmp_path / "t.lance"
    ds = staged(place, lambda manifest: replace(manifest, max_fragment_id=FRAGMENT_ID_MAX))
    before = files_of(place)
    with pytest.raises(UnsupportedFeature, match="fragment id 4294967296"):
        merge(ds, [1])
    assert files_of(place) == before


def test_the_last_ids_can_be_used(tmp_path: Path) -> None:
    place = tmp_path / "t.lance"
    last = {"max_fragment_id": FRAGMENT_ID_MAX - 1, "next_row_id": NEXT_ROW_ID_MAX - 3}
    ds = staged(place, lambda manifest: replace(manifest, **last))
    ds.insert(ROWS)
    assert ds.count_rows() == 6
    assert ds.get_fragments()[-1].fragment_id == FRAGMENT_ID_MAX
    assert max(ds.to_table(columns=["_rowid"])["_rowid"].to_pylist()) == NEXT_ROW_ID_MAX - 1
    with pytest.raises(UnsupportedFeature, match="used all"):
        ds.insert(ROWS)


@pytest.mark.parametrize("verb", [*GROWING, *OTHERS])
def test_the_last_version(tmp_path: Path, verb: str) -> None:
    """The number after it would be that of a detached version, which no reader sees."""
    place = tmp_path / "t.lance"
    ds = staged(place, lambda manifest: replace(manifest, version=VERSION_MAX))
    before = files_of(place)
    with pytest.raises(UnsupportedFeature, match=f"needs the version {2**63}"):
        {**GROWING, **OTHERS}[verb](ds)
    assert files_of(place) == before
    assert tw.dataset(place).version == VERSION_MAX
    assert tw.dataset(place).to_table().equals(ROWS)


def test_the_version_before_the_last_can_be_left(tmp_path: Path) -> None:
    ds = staged(tmp_path / "t.lance", lambda manifest: replace(manifest, version=VERSION_MAX - 1))
    ds.insert(ROWS)
    again = tw.dataset(tmp_path / "t.lance")
    assert (again.version, again.count_rows()) == (VERSION_MAX, 6)


@pytest.mark.parametrize(
    "change",
    [
        lambda ds: ds.add_columns({"n": "id * 2"}),
        lambda ds: ds.add_columns(pa.schema({"n": pa.int64()})),
        lambda ds: ds.alter_columns({"path": "id", "data_type": pa.int32()}),
    ],
    ids=["values", "empty", "cast"],
)
def test_used_up_field_ids(tmp_path: Path, change: Callable[[tw.LanceDataset], Any]) -> None:
    def at_the_end(manifest: Manifest) -> Manifest:
        fields = tuple(replace(field, id=FIELD_ID_MAX) if field.id == 1 else field for field in manifest.schema.fields)
        files = [
            replace(
                fragment,
                files=tuple(
                    replace(file, fields=tuple(FIELD_ID_MAX if each == 1 else each for each in file.fields))
                    for file in fragment.files
                ),
            )
            for fragment in manifest.fragments
        ]
        return replace(manifest, schema=replace(manifest.schema, fields=fields), fragments=FragmentList.of(files))

    place = tmp_path / "t.lance"
    ds = staged(place, at_the_end)
    assert ds.to_table().equals(ROWS)
    before = files_of(place)
    with pytest.raises(UnsupportedFeature, match=f"field id {2**31}"):
        change(ds)
    assert files_of(place) == before

"""validate() finds what is wrong with the files of a version, all of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import AccessDenied, CorruptTable


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    place = tmp_path / "t.lance"
    rows = pa.table({"id": range(100), "s": ["x"] * 100})
    ds = tw.write_dataset(rows, place, max_rows_per_file=40, enable_stable_row_ids=request.param)
    ds.delete("id % 10 = 3")
    ds.update({"s": "'y'"}, where="id < 20", write_mode="rewrite_rows")
    return place


def problems(table: Path) -> str:
    with pytest.raises(CorruptTable) as caught:
        tw.dataset(table).validate()
    return "; ".join(caught.value.problems)


def test_a_sound_table_passes(table: Path) -> None:
    tw.dataset(table).validate()
    for fragment in tw.dataset(table).get_fragments():
        fragment.validate()


def test_a_missing_data_file_is_named(table: Path) -> None:
    path = table / "data" / tw.dataset(table).get_fragments()[-1].data_files()[0].path
    path.unlink()
    assert path.name in problems(table)


def test_a_shorter_data_file_is_named(table: Path) -> None:
    files = [table / "data" / each.data_files()[0].path for each in tw.dataset(table).get_fragments()]
    files[0].write_bytes(files[-1].read_bytes())
    assert "bytes, the manifest says" in problems(table)
    assert "rows, the manifest says 40" in problems(table)


def test_a_damaged_deletion_file_is_found_even_if_it_was_read_before(table: Path) -> None:
    ds = tw.dataset(table)
    ds.to_table()
    victim = next(f for f in ds.get_fragments() if f.num_deletions)
    (table / str(victim.deletion_file())).write_bytes(b"nothing of ours")
    assert f"fragment {victim.fragment_id}" in problems(table)
    with pytest.raises(CorruptTable):
        victim.validate()


def test_all_problems_come_at_once(table: Path) -> None:
    for fragment in tw.dataset(table).get_fragments():
        (table / "data" / fragment.data_files()[0].path).unlink()
    found = problems(table)
    assert all(f"fragment {fragment.fragment_id}:" in found for fragment in tw.dataset(table).get_fragments())


def test_a_store_that_fails_says_nothing_about_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    ds = tw.write_dataset({"id": [1]}, "memory://validate-denied")

    def denied(*arguments: object) -> None:
        raise AccessDenied("No permission")

    monkeypatch.setattr("tablewright.operations.validate.DataFileReader", denied)
    with pytest.raises(AccessDenied):
        ds.validate()

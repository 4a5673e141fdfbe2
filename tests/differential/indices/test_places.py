"""Indices at unusual places: odd column names, empty tables, branches, clones, memory, S3, and columns that changed.

Everywhere an answer by index is that of a flat scan, by ours and by pylance.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import tablewright as tw

MAKER = pytest.mark.parametrize("maker", [tw, lance], ids=["ours", "pylance"])
STABLE = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
KINDS = ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER")


def table(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    numbers = pa.array([None if i % 5 == 4 else i % 7 for i in ids], pa.int64())
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "n": numbers, "s": pa.array([f"w{i % 3}" for i in ids], pa.string())}
    )


def found(dataset: Any, sql: str, *, by_index: bool) -> list[Any]:
    scanner = dataset.scanner(columns=["id"], filter=sql, use_scalar_index=by_index)
    return sorted(scanner.to_table()["id"].to_pylist())


def assert_right(mine: Any, *conditions: str, theirs: Any = None, asked: bool = True) -> None:
    """Ours by index, ours by scan and pylance agree; ``asked``: our plan asks an index."""
    for sql in conditions:
        flat = found(mine, sql, by_index=False)
        assert found(mine, sql, by_index=True) == flat, sql
        assert mine.scanner(filter=sql, use_scalar_index=True).count_rows() == len(flat), sql
        plan = mine.scanner(filter=sql, use_scalar_index=True).explain_plan()
        assert ("ScalarIndexQuery" in plan) == asked, plan
        if theirs is not None:
            assert found(theirs, sql, by_index=True) == found(theirs, sql, by_index=False) == flat, sql


@MAKER
@pytest.mark.parametrize("name", ["a b", "Upper", "select", "dash-ed", "Ünï", "1st", "per%cent"])
def test_names_of_columns(tmp_path: Path, maker: Any, name: str) -> None:
    uri = str(tmp_path)
    lance.write_dataset(pa.table({"id": range(20), name: [i % 4 for i in range(20)]}), uri, max_rows_per_file=7)
    maker.dataset(uri).create_scalar_index(name, "BTREE")
    assert_right(
        tw.dataset(uri), f"`{name}` = 3", f"`{name}` in (1, 9)", f"`{name}` is null", theirs=lance.dataset(uri)
    )


@MAKER
def test_names_that_differ_by_case(tmp_path: Path, maker: Any) -> None:
    uri = str(tmp_path)
    rows = {"id": range(20), "x": [i % 4 for i in range(20)], "X": [i % 3 for i in range(20)]}
    lance.write_dataset(pa.table(rows), uri, max_rows_per_file=7)
    maker.dataset(uri).create_scalar_index("X", "BTREE")
    (index,) = tw.dataset(uri).list_indices()
    assert index["fields"] == ["X"]
    assert_right(tw.dataset(uri), "`X` = 2")
    assert_right(tw.dataset(uri), "x = 3", asked=False)


@MAKER
@STABLE
@pytest.mark.parametrize("kind", [*KINDS, "NGRAM"])
def test_empty_tables_null_columns_and_deleted_fragments(tmp_path: Path, maker: Any, stable: bool, kind: str) -> None:
    column = "s" if kind == "NGRAM" else "n"
    conditions = ["contains(s, 'w10')", "s is null"] if kind == "NGRAM" else ["n = 3", "n is null", "n in (1, 2)"]
    for number, rows in enumerate([table(0, 0), table(0, 12)]):
        uri = str(tmp_path / str(number))
        nulls = rows.set_column(2 if kind == "NGRAM" else 1, column, pa.nulls(len(rows), rows[column].type))
        for name, content in (("values", rows), ("nulls", nulls)):
            place = f"{uri}-{name}"
            lance.write_dataset(content, place, max_rows_per_file=4, enable_stable_row_ids=stable)
            maker.dataset(place).create_scalar_index(column, kind)
            assert_same(place, conditions)
            tw.dataset(place).delete("id >= 4 and id < 8")
            assert_same(place, conditions)
            tw.dataset(place).insert(table(20, 25))
            assert_same(place, conditions)
            tw.dataset(place).delete("true")
            assert_same(place, conditions)
            tw.dataset(place).insert(table(30, 33))
            tw.dataset(place).optimize.optimize_indices()
            assert_same(place, conditions)
            tw.dataset(place).optimize.compact_files()
            assert_same(place, conditions)


def assert_same(uri: str, conditions: list[str]) -> None:
    """As `assert_right`, where it does not matter whether an index is asked."""
    mine, theirs = tw.dataset(uri), lance.dataset(uri)
    for sql in conditions:
        flat = found(mine, sql, by_index=False)
        assert found(mine, sql, by_index=True) == flat, sql
        assert mine.scanner(filter=sql, use_scalar_index=True).count_rows() == len(flat), sql
        assert found(theirs, sql, by_index=True) == found(theirs, sql, by_index=False) == flat, sql


@MAKER
@STABLE
@pytest.mark.parametrize("kind", KINDS)
def test_a_column_is_renamed_cast_and_dropped(tmp_path: Path, maker: Any, stable: bool, kind: str) -> None:
    uri = str(tmp_path)
    lance.write_dataset(table(0, 40), uri, max_rows_per_file=15, enable_stable_row_ids=stable)
    maker.dataset(uri).create_scalar_index("n", kind)
    tw.dataset(uri).alter_columns({"path": "n", "name": "m"})
    assert_right(tw.dataset(uri), "m = 3", "m is null", theirs=lance.dataset(uri))
    tw.dataset(uri).insert(table(40, 50).rename_columns(["id", "m", "s"]))
    tw.dataset(uri).optimize.optimize_indices()
    assert_right(tw.dataset(uri), "m = 3", "m in (1, 2)", theirs=lance.dataset(uri))
    indexed = tw.dataset(uri).version
    with pytest.raises(tw.errors.InvalidRequest, match="n_idx"):
        tw.dataset(uri).alter_columns({"path": "m", "data_type": pa.int32()})
    assert tw.dataset(uri).version == indexed
    tw.dataset(uri).drop_index("n_idx")
    tw.dataset(uri).alter_columns({"path": "m", "data_type": pa.int32()})
    maker.dataset(uri).create_scalar_index("m", kind)
    assert_same(uri, ["m = 3", "m is null", "m in (1, 2)"])
    tw.dataset(uri).drop_columns(["m"])
    assert tw.dataset(uri).list_indices() == []
    tw.dataset(uri).add_columns({"m": "cast(id % 4 as bigint)"})
    assert_same(uri, ["m = 3", "m is null"])
    tw.dataset(uri, version=indexed).restore()
    assert_right(tw.dataset(uri), "m = 3", "m is null", theirs=lance.dataset(uri))
    tw.dataset(uri, version=1).restore()
    assert tw.dataset(uri).list_indices() == []
    assert_right(tw.dataset(uri), "n = 3", asked=False)


@MAKER
@STABLE
def test_branches_and_tags(tmp_path: Path, maker: Any, stable: bool) -> None:
    uri = str(tmp_path)
    lance.write_dataset(table(0, 40), uri, max_rows_per_file=15, enable_stable_row_ids=stable)
    maker.dataset(uri).create_scalar_index("n", "BTREE")
    tw.dataset(uri).tags.create("indexed", tw.dataset(uri).version)
    side = tw.dataset(uri).create_branch("side", tw.dataset(uri).version)
    assert_right(side, "n = 3", "n is null")
    side.delete("id = 3")
    side.insert(table(40, 60))
    assert_right(side, "n = 3", "n != 2")
    side.create_scalar_index("s", "BITMAP")
    side.optimize.optimize_indices()
    theirs = lance.dataset(uri).checkout_version(("side", None))
    assert_right(side, "n = 3", "s = 'w1'", theirs=theirs)
    side.optimize.compact_files()
    theirs = lance.dataset(uri).checkout_version(("side", None))
    assert_right(side, "n = 3", "s = 'w1'", theirs=theirs)
    tw.dataset(uri).drop_index("n_idx")
    assert_right(tw.dataset(uri), "n = 3", asked=False)
    assert_right(tw.dataset(uri, version="indexed"), "n = 3", theirs=lance.dataset(uri, version="indexed"))


@MAKER
@STABLE
@pytest.mark.parametrize("kind", KINDS)
def test_T35_a_shallow_clone_finds_indices_at_its_source(tmp_path: Path, maker: Any, stable: bool, kind: str) -> None:
    """Its index files are below the source's path; new ones are below its own, and nothing of the source changes."""
    source, uri = str(tmp_path / "source"), str(tmp_path / "clone")
    lance.write_dataset(table(0, 60), source, max_rows_per_file=20, enable_stable_row_ids=stable)
    maker.dataset(source).create_scalar_index("n", kind)
    theirs = lance.dataset(source)
    theirs.shallow_clone(uri, theirs.version)
    before = sorted(path for path in Path(source).rglob("*"))
    assert_right(tw.dataset(uri), "n = 3", "n is null", theirs=lance.dataset(uri))
    tw.dataset(uri).insert(table(60, 70))
    tw.dataset(uri).update({"n": "6"}, where="n = 5")
    assert_right(tw.dataset(uri), "n = 3", "n in (5, 6)", theirs=lance.dataset(uri))
    tw.dataset(uri).optimize.compact_files(target_rows_per_fragment=40)
    assert_same(uri, ["n = 3", "n is null", "n = 6"])
    tw.dataset(uri).optimize.optimize_indices()
    assert_right(tw.dataset(uri), "n = 3", "n = 6", "n is null", theirs=lance.dataset(uri))
    assert sorted(path for path in Path(source).rglob("*")) == before


@STABLE
@pytest.mark.parametrize("kind", KINDS)
def test_in_memory(stable: bool, kind: str) -> None:
    uri = f"memory://index-places-{kind}-{stable}"
    tw.write_dataset(table(0, 60), uri, max_rows_per_file=20, enable_stable_row_ids=stable)
    _lead_a_life(uri, kind, {})


@pytest.mark.parametrize("kind", KINDS)
def test_on_s3(s3_bucket: str, s3_options: dict[str, str], kind: str) -> None:
    uri = f"s3://{s3_bucket}/indices-{kind}"
    tw.write_dataset(table(0, 60), uri, max_rows_per_file=20, storage_options=s3_options)
    _lead_a_life(uri, kind, {"storage_options": s3_options})
    assert_right(
        tw.dataset(uri, storage_options=s3_options), "n = 3", theirs=lance.dataset(uri, storage_options=s3_options)
    )


def _lead_a_life(uri: str, kind: str, options: dict[str, Any]) -> None:
    """An index is built, outlives changes and compactions, is optimised and asked."""
    tw.dataset(uri, **options).create_scalar_index("n", kind)
    assert_right(tw.dataset(uri, **options), "n = 3", "n is null")
    tw.dataset(uri, **options).delete("id % 10 = 3")
    tw.dataset(uri, **options).update({"n": "6"}, where="n = 5")
    assert_right(tw.dataset(uri, **options), "n = 3", "n = 6")
    tw.dataset(uri, **options).optimize.compact_files()
    tw.dataset(uri, **options).optimize.optimize_indices()
    assert_right(tw.dataset(uri, **options), "n = 3", "n = 6", "n is null")

"""Mistakes that maintenance of indices can make, tried with every kind; ``test_index_traps.py`` has the others.

Each test takes a table through the steps where the mistake would show. After each step a filter gives the same rows by
index and by a flat scan, by ours and by pylance.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest
from tests.depth import deep
from tests.differential.test_index_traps import assert_right, found, hits, made, only_index, snapshot_of, table

import tablewright as tw
from tablewright.format.index_kinds import REUSE_NAME
from tablewright.storage import open_store

STABLE = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
LIBRARY = pytest.mark.parametrize("library", [tw, lance], ids=["ours", "pylance"])
COLUMNS = {"BTREE": "n", "BITMAP": "n", "LABEL_LIST": "l", "NGRAM": "text", "ZONEMAP": "n", "BLOOMFILTER": "n"}
KIND = pytest.mark.parametrize("kind", COLUMNS)
PAIRS = [(kind, (tw, lance)[(place + turn) % 2]) for turn in range(2) for place, kind in enumerate(COLUMNS)]


def named(given: Any) -> str:
    """The id of a parameter."""
    return getattr(given, "__name__", given)


KIND_LIBRARY = pytest.mark.parametrize(("kind", "library"), PAIRS[: deep(6, 12)], ids=named)
NEW = {"n": "6", "l": "make_array('l4')", "text": "'the newest word3'"}
FILTERS = {
    "n": ("n = 1", "n = 6", "n != 2", "n is null", "not (n in (1, 6))"),
    "l": ("array_has(l, 'l1')", "array_has(l, 'l4')", "array_has_any(l, ['l1', 'l2'])"),
    "text": ("contains(text, 'word1 ')", "contains(text, 'word3')", "contains(text, 'newest')"),
}


def segments(uri: str) -> list[list[int]]:
    """The fragments of every segment, but for the record of moved ones."""
    entries = lance.dataset(uri).list_indices()
    return [sorted(each["fragment_ids"]) for each in entries if each["name"] != REUSE_NAME]


def assert_asked(uri: str, kind: str) -> None:
    """Pylance's plan asks the index, so what it answers is not a scan's answer."""
    plan = lance.dataset(uri).scanner(filter=FILTERS[COLUMNS[kind]][0]).explain_plan()
    assert "ScalarIndexQuery" in plan, plan


# ------------------------------------------------------------------------------------------------ values that changed
@KIND
@pytest.mark.parametrize(
    ("stable", "mode"),
    [(True, "rewrite_rows"), (False, "rewrite_columns"), (True, "rewrite_columns"), (False, "rewrite_rows")][
        : deep(2, 4)
    ],
)
def test_old_values_are_gone_after_each_step_of_an_indexs_life(
    tmp_path: Path, kind: str, stable: bool, mode: str
) -> None:
    """An update, then a segment beside the older one, then every other way in which entries are carried on."""
    uri, column = made(tmp_path, stable=stable), COLUMNS[kind]
    tw.dataset(uri).create_scalar_index(column, kind)
    steps: Sequence[Callable[[Any], object]] = (
        lambda ds: ds.update({column: NEW[column]}, where="id % 10 = 1", write_mode=mode),
        lambda ds: ds.optimize.optimize_indices(num_indices_to_merge=0),
        lambda ds: ds.insert(table(200, 220)),
        lambda ds: ds.optimize.optimize_indices(num_indices_to_merge=0),
        lambda ds: ds.optimize.compact_files(target_rows_per_fragment=70),
        lambda ds: ds.optimize.optimize_indices(),
        lambda ds: ds.optimize.optimize_indices(retrain=True),
    )
    for step in steps:
        step(tw.dataset(uri))
        assert_right(uri, *FILTERS[column])
    assert_asked(uri, kind)


def replaced(library: Any, uri: str, fragment_id: int, column: str) -> Any:
    """Commit other values of a column of one fragment: a data file in place of the one that has this column alone."""
    fragment = lance.dataset(uri).get_fragment(fragment_id)
    (old,) = [file for file in fragment.metadata.files if len(file.fields) == 1]
    rows = pa.table({column: pa.array([99] * fragment.physical_rows, pa.int64())})
    path = Path(uri, "data", "replaced.lance")
    version = f"{old.file_major_version}.{old.file_minor_version}"
    with lance.file.LanceFileWriter(str(path), rows.schema, version=version) as writer:
        writer.write_batch(rows.to_batches()[0])
    file = library.fragment.DataFile(
        path=path.name,
        fields=list(old.fields),
        column_indices=list(old.column_indices),
        file_major_version=old.file_major_version,
        file_minor_version=old.file_minor_version,
        file_size_bytes=path.stat().st_size,
    )
    operation = library.LanceOperation.DataReplacement([library.LanceOperation.DataReplacementGroup(fragment_id, file)])
    return library.LanceDataset.commit(uri, operation, read_version=lance.dataset(uri).version)


@STABLE
@pytest.mark.parametrize(
    ("kind", "library"), [("BTREE", tw), ("BITMAP", lance), ("ZONEMAP", tw), ("BLOOMFILTER", lance)], ids=named
)
def test_entries_of_a_data_file_that_was_replaced_stay_dead(
    tmp_path: Path, kind: str, library: Any, stable: bool
) -> None:
    """They are still in the index's file when segments are merged and fragments compacted."""
    uri, asked = made(tmp_path, stable=stable), ("m = 3", "m = 99", "m in (1, 2)", "m is null", "m != 99")
    tw.dataset(uri).add_columns({"m": "id % 7"})
    tw.dataset(uri).create_scalar_index("m", kind)
    replaced(library, uri, 1, "m")
    assert_right(uri, *asked)
    tw.dataset(uri).delete("id % 11 = 4")
    tw.dataset(uri).optimize.compact_files(target_rows_per_fragment=70)
    assert_right(uri, *asked)
    tw.dataset(uri).optimize.optimize_indices()
    assert_right(uri, *asked)
    tw.dataset(uri).optimize.compact_files()
    assert_right(uri, *asked)
    assert tw.dataset(uri).count_rows("m = 99") == lance.dataset(uri).count_rows("m = 99") == 37


# --------------------------------------------------------------------------------------------------- deferred remapping
@KIND_LIBRARY
def test_segments_from_before_a_deferred_compaction_are_merged_after_it(
    tmp_path: Path, kind: str, library: Any
) -> None:
    """The files of both have old addresses, the rows that came later have new ones: none is lost, none comes back."""
    uri, column = made(tmp_path), COLUMNS[kind]
    tw.dataset(uri).create_scalar_index(column, kind)
    tw.dataset(uri).insert(table(200, 230))
    tw.dataset(uri).optimize.optimize_indices(num_indices_to_merge=0)
    assert len(segments(uri)) == 2
    tw.dataset(uri).delete("id % 13 = 2")
    library.dataset(uri).optimize.compact_files(target_rows_per_fragment=90, defer_index_remap=True)
    assert_right(uri, *FILTERS[column])
    tw.dataset(uri).insert(table(300, 320))
    tw.dataset(uri).optimize.optimize_indices()
    assert_right(uri, *FILTERS[column])
    assert_asked(uri, kind)
    assert segments(uri) == [sorted(each.fragment_id for each in lance.dataset(uri).get_fragments())]
    assert len(lance.dataset(uri).list_indices()) == 1, "no index needs the record of the compaction any more"
    tw.dataset(uri).optimize.compact_files()
    assert_right(uri, *FILTERS[column])


def test_two_deferred_compactions_and_one_index_optimized_between_them(tmp_path: Path) -> None:
    """Then a compaction that remaps at once: files of three ages go through the record as far as each needs it."""
    uri = made(tmp_path, 240)
    for kind, column in COLUMNS.items():
        tw.dataset(uri).create_scalar_index(column, kind, name=kind)
    steps: Sequence[Callable[[Any], object]] = (
        lambda ds: ds.optimize.compact_files(target_rows_per_fragment=80, defer_index_remap=True),
        lambda ds: ds.delete("id % 9 = 7"),
        lambda ds: ds.optimize.optimize_indices(index_names=["BITMAP"]),
        lambda ds: ds.optimize.compact_files(target_rows_per_fragment=160, defer_index_remap=True),
        lambda ds: ds.delete("id % 8 = 5"),
        lambda ds: ds.optimize.optimize_indices(index_names=["LABEL_LIST", "ZONEMAP"]),
        lambda ds: ds.optimize.compact_files(target_rows_per_fragment=1000),
        lambda ds: ds.optimize.optimize_indices(),
    )
    for step in steps:
        step(tw.dataset(uri))
        assert_right(uri, *(sql for filters in FILTERS.values() for sql in filters))
    assert len(lance.dataset(uri).get_fragments()) == 1
    assert {index["name"] for index in lance.dataset(uri).list_indices()} == set(COLUMNS)


@KIND
@pytest.mark.parametrize("way", ["remap", "defer", "stable"])
def test_a_rewritten_group_of_which_a_segment_covers_a_part(tmp_path: Path, kind: str, way: str) -> None:
    """Built between the plan and the commit: the new fragment has rows without entries, and must not be claimed."""
    uri, column = made(tmp_path, stable=way == "stable"), COLUMNS[kind]
    stale, options = tw.dataset(uri), {"defer_index_remap": way == "defer"}
    plan = tw.optimize.Compaction.plan(stale, options)
    results = [task.execute(stale) for task in plan.tasks]
    tw.dataset(uri).create_scalar_index(column, kind, fragment_ids=[0, 2])
    tw.dataset(uri).create_scalar_index("id", "BTREE")
    tw.optimize.Compaction.commit(stale, results, options)
    assert len(lance.dataset(uri).get_fragments()) == 1
    for step in (
        lambda ds: None,
        lambda ds: ds.delete("id % 13 = 2"),  # stores the bitmaps with the fragments of now
        lambda ds: ds.optimize.optimize_indices(),
    ):
        step(tw.dataset(uri))
        assert_right(uri, *FILTERS[column])
    assert_asked(uri, kind)


@KIND_LIBRARY
def test_an_index_built_on_fragments_that_a_deferred_compaction_took(tmp_path: Path, kind: str, library: Any) -> None:
    """The handle is from before the compaction; its commit names the fragments of now, and finds their rows."""
    uri, column = made(tmp_path), COLUMNS[kind]
    tw.dataset(uri).create_scalar_index("id", "BTREE")  # without an index that covers them, nothing is recorded
    tw.dataset(uri).delete("id % 13 = 2")
    stale = tw.dataset(uri)
    library.dataset(uri).optimize.compact_files(defer_index_remap=True)
    stale.create_scalar_index(column, kind, name="late")
    assert_right(uri, *FILTERS[column], "id = 7")
    assert_asked(uri, kind)
    tw.dataset(uri).delete("id % 12 = 1")
    tw.dataset(uri).optimize.optimize_indices()
    assert_right(uri, *FILTERS[column], "id = 7")


@LIBRARY
def test_an_index_built_again_between_the_plan_and_the_commit_of_a_compaction(tmp_path: Path, library: Any) -> None:
    """The plan names an index that is gone when it is committed: the new one keeps its rows."""
    uri = made(tmp_path)
    tw.dataset(uri).create_scalar_index("n", "BTREE")
    stale = tw.dataset(uri)
    results = [task.execute(stale) for task in tw.optimize.Compaction.plan(stale, {}).tasks]
    library.dataset(uri).create_scalar_index("n", "BTREE")
    tw.optimize.Compaction.commit(stale, results)
    assert len(lance.dataset(uri).get_fragments()) == 1
    assert lance.dataset(uri).stats.index_stats("n_idx")["num_unindexed_rows"] == 0
    assert_right(uri, *FILTERS["n"])
    assert_asked(uri, "BTREE")


# ------------------------------------------------------------------------------------------- indices of pylance's alone
@STABLE
def test_documents_that_are_merged_twice_are_found_once(tmp_path: Path, stable: bool) -> None:
    """Once by their new text, never by an old one: the index has entries of all three."""
    uri = made(tmp_path, stable=stable)
    lance.dataset(uri).create_scalar_index("text", "INVERTED")

    def check() -> None:
        rows = lance.dataset(uri).to_table(columns=["id", "text"]).to_pylist()
        for word in ("word3", "first", "second"):
            expected = sorted(row["id"] for row in rows if word in row["text"].split())
            assert [id for id, _ in hits(uri, word, 500)] == expected, word

    for word in ("first", "second"):
        source = table(30, 50).set_column(5, "text", pa.array([f"{word} word{i % 4}" for i in range(20)]))
        tw.dataset(uri).merge_insert("id").when_matched_update_all().execute(source)
        check()
    tw.dataset(uri).merge_insert("id").when_matched_update_all().execute(table(0, 20).select(["id", "n"]))
    check()
    tw.dataset(uri).optimize.compact_files()
    check()
    lance.dataset(uri).optimize.optimize_indices()
    check()


@pytest.mark.parametrize("way", ["remap", "defer", "stable"])
@pytest.mark.parametrize("kind", ["IVF_SQ", "IVF_RQ"])
def test_rows_fetched_by_other_vector_indices(tmp_path: Path, kind: str, way: str) -> None:
    """Cold and warm, with a column that is read by the addresses that the index tells."""
    rng, uri = np.random.default_rng(7), str(tmp_path)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(600 * 16), pa.float32()), 16)
    rows = pa.table({"id": range(600), "v": vectors, "s": [f"s{i}" for i in range(600)]})
    lance.write_dataset(rows, uri, max_rows_per_file=150, enable_stable_row_ids=way == "stable")
    lance.dataset(uri).create_index("v", kind, num_partitions=2)
    lance.dataset(uri).delete("id % 10 = 3")

    def nearest() -> list[list[tuple[int, str]]]:
        dataset, answers = lance.dataset(uri), []
        for query in np.random.default_rng(8).random((3, 16), np.float32):
            ask = {"column": "v", "q": query, "k": 10, "nprobes": 2, "refine_factor": 50}
            rows = dataset.to_table(nearest=ask, columns=["id", "s", "_distance"]).to_pylist()
            answers.append([(row["id"], row["s"]) for row in rows])
            assert all(name == f"s{id}" for id, name in answers[-1])
        return answers

    before = nearest()
    tw.dataset(uri).optimize.compact_files(defer_index_remap=way == "defer")
    assert len(lance.dataset(uri).get_fragments()) == 1
    assert nearest() == before
    assert nearest() == before
    lance.dataset(uri).optimize.optimize_indices()
    assert nearest() == before


# ------------------------------------------------------------------------------------------------- cleanup and places
@STABLE
@pytest.mark.parametrize("branch", [False, True], ids=["clone", "branch"])
def test_index_files_that_two_tables_share_outlive_a_cleanup(tmp_path: Path, stable: bool, branch: bool) -> None:
    """A clone never removes its source's files, and a table keeps what its branch names."""
    source = made(tmp_path / "source", stable=stable)
    tw.dataset(source).create_scalar_index("n", "BTREE")
    shared = str(only_index(source).uuid)
    if branch:
        side = tw.dataset(source).create_branch("side", tw.dataset(source).version)
        cleaned = source
    else:
        theirs, cleaned = lance.dataset(source), str(tmp_path / "clone")
        theirs.shallow_clone(cleaned, theirs.version)
    tw.dataset(cleaned).create_scalar_index("n", "BTREE")
    tw.dataset(cleaned).delete("id % 7 = 2")
    tw.dataset(cleaned).cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert {file.name for file in (tmp_path / "source/_indices" / shared).iterdir()} >= {"page_data.lance"}
    assert_right(cleaned, *FILTERS["n"])
    if branch:
        for sql in FILTERS["n"]:
            assert found(side, sql, by_index=True) == found(side, sql, by_index=False), sql
            theirs = lance.dataset(source).checkout_version(("side", None))
            assert found(theirs, sql, by_index=True) == found(side, sql, by_index=False), sql
    else:
        assert_right(source, *FILTERS["n"])


def test_a_cleanup_soon_after_removes_the_files_of_replaced_indices(tmp_path: Path) -> None:
    """They were named by versions that go, so they need not wait as files of unknown writers do."""
    uri = made(tmp_path)
    for kind in ("BTREE", "BITMAP", "ZONEMAP"):
        tw.dataset(uri).create_scalar_index("n", kind, name="n_idx")
    tw.dataset(uri).insert(table(200, 230))
    tw.dataset(uri).optimize.optimize_indices()
    tw.dataset(uri).optimize.compact_files()
    tw.dataset(uri).cleanup_old_versions(timedelta(0))
    left = {file.parent.name for file in (tmp_path / "_indices").rglob("*") if file.is_file()}
    assert left == {str(only_index(uri).uuid)}
    assert_right(uri, *FILTERS["n"])


# ---------------------------------------------------------------------------------------------------- errors by type
TYPES = {
    "bool": pa.array([True, None]),
    "int8": pa.array([1, None], pa.int8()),
    "half": pa.array([1.5, None], pa.float32()).cast(pa.float16()),
    "decimal": pa.array([1, None], pa.int64()).cast(pa.decimal128(20, 0)),
    "text": pa.array(["a", None]),
    "bytes": pa.array([b"a", None]),
    "fixed bytes": pa.array([b"ab", None], pa.binary(2)),
    "duration": pa.array([1, None], pa.duration("us")),
    "list": pa.array([["a"], None]),
    "list of structs": pa.array([[{"a": 1}], None]),
    "list of lists": pa.array([[[1]], None]),
    "vector": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
    "struct": pa.array([{"a": 1}, None]),
    "dictionary": pa.array(["a", None]).dictionary_encode(),
}


@KIND
def test_columns_that_a_kind_can_not_index_are_those_of_pylance(tmp_path: Path, kind: str) -> None:
    """A type that can't be indexed is a typed error, before a file is written."""
    lance.write_dataset(pa.table(TYPES), tmp_path / "theirs")
    shutil.copytree(tmp_path / "theirs", tmp_path / "ours")
    refused = 0
    for column in TYPES:
        dataset = tw.dataset(str(tmp_path / "ours"))
        try:
            lance.dataset(tmp_path / "theirs").create_scalar_index(column, kind, name=column)
        except Exception:
            refused += 1
            with pytest.raises(tw.errors.WrongType, match=column):
                dataset.create_scalar_index(column, kind, name=column)
            assert tw.dataset(dataset.uri).version == dataset.version
        else:
            dataset.create_scalar_index(column, kind, name=column)
    assert refused == 0 if kind == "ZONEMAP" else 0 < refused < len(TYPES)
    assert len(list((tmp_path / "ours/_indices").iterdir())) == len(TYPES) - refused


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "half of it": lambda data: data[: len(data) // 2],
    "nothing": lambda data: b"",
    "zeros": lambda data: bytes(len(data)),
    "a byte less": lambda data: data[:-1],
    "a byte more": lambda data: data + b"\0",
    "no file": lambda data: None,
}


@KIND
def test_damage_is_named_where_no_sizes_are_compared(kind: str) -> None:
    """Elsewhere than on a local disk the size of a file would cost a request: the content itself has to tell."""
    uri, column = f"memory://traps-{kind}", COLUMNS[kind]
    store = open_store(uri)
    tw.write_dataset(table(0, 120), uri, max_rows_per_file=40)
    tw.dataset(uri).create_scalar_index(column, kind)
    version, right = tw.dataset(uri).version, found(tw.dataset(uri), FILTERS[column][0], by_index=False)
    for path in [info.path for info in store.list("_indices")]:
        whole = store.get(path)
        for damage, make in DAMAGES.items():
            data = make(whole)
            store.delete(path)
            if data is not None:
                store.put(path, data)
            with pytest.raises(tw.errors.CorruptTable, match="_indices"):
                pytest.fail(f"{damage}: {found(tw.dataset(uri), FILTERS[column][0], by_index=True)}")
            with pytest.raises(tw.errors.CorruptTable, match="_indices"):
                tw.dataset(uri).delete(FILTERS[column][0], use_scalar_index=True)
        store.delete(path)
        store.put(path, whole)
    assert tw.dataset(uri).version == version
    assert found(tw.dataset(uri), FILTERS[column][0], by_index=True) == right != []


@KIND
@STABLE
def test_a_compaction_beside_a_damaged_index_changes_no_answer(tmp_path: Path, kind: str, stable: bool) -> None:
    """Files whose content is damaged can't be remapped: they cover nothing more, or are said to be damaged."""
    uri, column = made(tmp_path, stable=stable), COLUMNS[kind]
    tw.dataset(uri).create_scalar_index(column, kind)
    right = [found(tw.dataset(uri), sql, by_index=False) for sql in FILTERS[column]]
    for file in (tmp_path / "_indices").glob("*/*"):
        file.write_bytes(bytes(file.stat().st_size))
    tw.dataset(uri).optimize.compact_files()
    assert len(snapshot_of(uri).fragments) == 1
    for sql, expected in zip(FILTERS[column], right, strict=True):
        try:
            answer = found(tw.dataset(uri), sql, by_index=True)
        except tw.errors.CorruptTable:
            assert stable, "a compaction of addresses leaves the index without coverage"
        else:
            assert answer == expected, sql
    tw.dataset(uri).create_scalar_index(column, kind)
    assert_right(uri, *FILTERS[column])

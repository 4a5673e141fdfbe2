"""Known traps of index maintenance, T1 to T39: each has a test that names it, here or elsewhere.

They are mistakes that pylance made, or makes in release 14, and mistakes that hand-written index files showed. Tests
carry the number in their name or docstring; `TRAPS` says what each is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.format.index import IndexMetadata
from tablewright.indices.files import read_index_file
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

TRAPS = {
    1: "an update on stable row ids, then a delta segment: the older segment still matches the old value",
    2: "the damage of T1 survives merges and compactions",
    3: "old entries filtered by the upper half of a stable row id are lost",
    4: "row-id sequences without deletion vectors: the same id twice in a merged index",
    5: "rows doubled, by index and by scan, after merges",
    6: "coverage extended although a nested field changed",
    7: "coverage of indices with addresses extended on an update",
    8: "a record of moved fragments on a table with stable row ids",
    9: "that record trimmed while an index still has old addresses",
    10: "the bitmap was translated, the file was not",
    11: "the translation forgotten in one of the ways to read",
    12: "segments from before a deferred compaction merged after it",
    13: "a rewrite group that is partly in a bitmap",
    14: "two deferred compactions with changes between them",
    15: "an index created while a deferred compaction commits",
    16: "stale entries of a rewritten column revived",
    17: "the bitmap of all fragments instead of those that were indexed",
    18: "fragment ids given again",
    19: "a whole fragment deleted, its entries found",
    20: "two compactions rewrite one index",
    21: "fragments of two segments compacted into one",
    22: "a delta segment of an index on a nested field fails",
    23: "full-text segments with different token sets can't be merged",
    24: "old or doubled vectors after update and merge",
    25: "NOT, != and IN over an index return nulls",
    26: "files that do not say which rows are null",
    27: "unknown nulls turned into no nulls when zone maps are merged",
    28: "the order of NaN",
    29: "zones are cut over live rows, and name physical ones",
    30: "full-text hits lost under a small limit",
    31: "tokens of 40 bytes, and gaps of stop words",
    32: "token ids that are not dense",
    33: "contains_tokens with dropped long tokens",
    34: "index files that no cleanup removes",
    35: "a clone whose source is cleaned",
    36: "sizes in the manifest that are not those of files, or missing files",
    37: "a bitmap that names a fragment without entries",
    38: "LANCE_IO_THREADS=1: a build hangs",
    39: "parameters given as keywords are ignored",
}


def test_every_trap_has_a_test() -> None:
    tests = Path(__file__).parents[1]
    own = Path(__file__).read_text(encoding="utf-8").split("\ndef table(")[1]
    texts = [own, *(path.read_text(encoding="utf-8") for path in tests.rglob("test_*.py") if path != Path(__file__))]
    named = {int(number) for text in texts for number in re.findall(r"(?<![A-Za-z0-9])T(\d+)(?!\d)", text)}
    assert TRAPS.keys() <= named, f"without a test: {sorted(TRAPS.keys() - named)}"


def table(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "n": pa.array([None if i % 9 == 4 else i % 7 for i in ids], pa.int64()),
            "l": pa.array([None if i % 8 == 3 else [f"l{i % 5}"] for i in ids], pa.list_(pa.string())),
            "s": pa.array([{"y": i % 6} for i in ids], pa.struct([("y", pa.int64())])),
            "f": pa.array([[None, float("nan"), 0.0, -0.0, 1.5, -2.0, float("inf")][i % 7] for i in ids], pa.float64()),
            "text": pa.array([f"word{i % 11} the text{i % 3} {'x' * (38 + i % 4)}" for i in ids], pa.string()),
        }
    )


def made(path: Path, stop: int = 120, *, stable: bool = False) -> str:
    lance.write_dataset(table(0, stop), path, max_rows_per_file=40, enable_stable_row_ids=stable)
    return str(path)


def found(dataset: Any, sql: str, *, by_index: bool) -> list[int]:
    scanner = dataset.scanner(columns=["id"], filter=sql, use_scalar_index=by_index)
    return sorted(scanner.to_table()["id"].to_pylist())


def assert_right(uri: str, *conditions: str, pylance: bool = True) -> None:
    """By index and by scan, by ours and (unless it is known to be wrong) by pylance."""
    for sql in conditions:
        flat = found(lance.dataset(uri), sql, by_index=False)
        assert found(tw.dataset(uri), sql, by_index=False) == flat, sql
        assert found(tw.dataset(uri), sql, by_index=True) == flat, sql
        assert not pylance or found(lance.dataset(uri), sql, by_index=True) == flat, sql


def snapshot_of(uri: str) -> Snapshot:
    return open_snapshot(World(open_store(uri)))


def only_index(uri: str) -> IndexMetadata:
    (index,) = snapshot_of(uri).manifest.indices
    return index


STABLE = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
MAKER = pytest.mark.parametrize("maker", [tw, lance], ids=["ours", "pylance"])


@pytest.mark.parametrize(("column", "kind"), [("n", "BITMAP"), ("n", "BTREE"), ("l", "LABEL_LIST")])
def test_T1_T2_stale_ids_that_pylance_left_are_not_found_and_are_healed(tmp_path: Path, column: str, kind: str) -> None:
    """Pylance makes the delta; its own answers are wrong then. Ours are right, and a merge by ours mends both."""
    uri = made(tmp_path, stable=True)
    tw.dataset(uri).create_scalar_index(column, kind)
    new = {"n": "6"} if column == "n" else {"l": "make_array('l4')"}
    tw.dataset(uri).update(new, where="id % 10 = 1")
    lance.dataset(uri).optimize.optimize_indices(num_indices_to_merge=0)
    asked = ["n = 1", "n = 6", "n != 2"] if column == "n" else ["array_has(l, 'l1')", "array_has(l, 'l4')"]
    assert_right(uri, *asked, pylance=False)
    tw.dataset(uri).delete("id = 11")
    tw.dataset(uri).optimize.compact_files()
    assert_right(uri, *asked, pylance=False)
    tw.dataset(uri).optimize.optimize_indices(retrain=True)
    assert_right(uri, *asked)


@STABLE
@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
def test_T4_a_row_is_in_a_merged_index_once(tmp_path: Path, stable: bool, kind: str) -> None:
    uri = made(tmp_path, stable=stable)
    tw.dataset(uri).create_scalar_index("n", kind)
    source = table(0, 60).set_column(1, "n", pa.array([50] * 60, pa.int64()))
    for writer in (tw, lance):
        writer.dataset(uri).merge_insert("id").when_matched_update_all().execute(source.slice(0, 30))
        tw.dataset(uri).optimize.optimize_indices()
        assert_right(uri, "n = 50", "n = 3", "n is null", "n != 50")
        assert tw.dataset(uri).scanner(filter="n = 50", use_scalar_index=True).count_rows() == 30


def hits(uri: str, text: str, limit: int) -> list[tuple[int, float]]:
    """What pylance's full-text search finds, with the scores."""
    rows = lance.dataset(uri).to_table(full_text_query=text, columns=["id", "_score"], limit=limit).to_pylist()
    return sorted((row["id"], round(row["_score"], 4)) for row in rows)


def test_T19_a_deleted_fragment_is_not_found(tmp_path: Path) -> None:
    uri = made(tmp_path)
    lance.dataset(uri).create_scalar_index("text", "INVERTED")
    tw.dataset(uri).create_scalar_index("n", "BITMAP")
    tw.dataset(uri).delete("id < 40")
    for change in (lambda: None, lambda: tw.dataset(uri).optimize.compact_files()):
        change()
        assert min(id for id, _ in hits(uri, "word3", 500)) >= 40
        assert_right(uri, "n = 3", "n is null", "n != 3")
    lance.dataset(uri).optimize.optimize_indices()
    assert {id for id, _ in hits(uri, "word3", 500)} == {id for id in range(40, 120) if id % 11 == 3}


@STABLE
@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "ZONEMAP"])
def test_T22_a_delta_segment_of_a_nested_field(tmp_path: Path, stable: bool, kind: str) -> None:
    uri = made(tmp_path, stable=stable)
    tw.dataset(uri).create_scalar_index("s.y", kind)
    for start in (200, 300):
        tw.dataset(uri).insert(table(start, start + 30))
        tw.dataset(uri).optimize.optimize_indices(num_indices_to_merge=0)
        assert_right(uri, "s.y = 3", "s.y in (1, 2)", "s.y is null")
    rewritten = stable and kind != "ZONEMAP"  # see T1: no segment beside others where these hold row ids
    assert len(tw.dataset(uri).list_indices()) == (1 if rewritten else 3)


@STABLE
def test_T23_full_text_segments_of_pylance_are_carried_and_not_merged(tmp_path: Path, stable: bool) -> None:
    uri = made(tmp_path, stable=stable)
    lance.dataset(uri).create_scalar_index("text", "INVERTED")
    tw.dataset(uri).insert(table(200, 240))
    lance.dataset(uri).optimize.optimize_indices(num_indices_to_merge=0)
    before, segments = hits(uri, "word3", 500), len(lance.dataset(uri).list_indices())
    assert segments == 2
    tw.dataset(uri).optimize.optimize_indices()
    tw.dataset(uri).update({"n": "1"}, where="id = 5")
    tw.dataset(uri).optimize.compact_files(target_rows_per_fragment=80)
    assert len(lance.dataset(uri).list_indices()) == segments
    assert [id for id, _ in hits(uri, "word3", 500)] == [id for id, _ in before]


@STABLE
@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_HNSW_SQ"])
def test_T24_vectors_are_found_once_and_where_they_are_now(tmp_path: Path, stable: bool, kind: str) -> None:
    """IVF_HNSW would need a new graph: past our compaction it covers less rather than answer wrongly."""
    rng, uri = np.random.default_rng(3), str(tmp_path)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(600 * 8), pa.float32()), 8)
    rows = pa.table({"id": range(600), "v": vectors})
    lance.write_dataset(rows, uri, max_rows_per_file=200, enable_stable_row_ids=stable)
    lance.dataset(uri).create_index("v", kind, num_partitions=2)
    moved = pa.FixedSizeListArray.from_arrays(pa.array([9.0] * 80, pa.float32()), 8)
    tw.dataset(uri).merge_insert("id").when_matched_update_all().execute(pa.table({"id": range(10), "v": moved}))

    def check() -> None:
        for point, size in ((9.0, 10), (0.5, 20)):
            query = {"column": "v", "q": np.full(8, point, np.float32), "k": size, "nprobes": 2, "refine_factor": 30}
            ids = lance.dataset(uri).to_table(nearest=query, columns=["id"])["id"].to_pylist()
            assert len(ids) == len(set(ids)) == size
            assert (set(ids) == set(range(10))) == (point == 9.0)

    check()
    tw.dataset(uri).optimize.compact_files()
    check()
    lance.dataset(uri).optimize.optimize_indices()
    check()


@MAKER
@STABLE
@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"])
def test_T25_T26_nulls_stay_unknown(tmp_path: Path, maker: Any, stable: bool, kind: str) -> None:
    uri = made(tmp_path, stable=stable)
    maker.dataset(uri).create_scalar_index("n", kind)
    asked = (
        "n != 3", "not (n = 3)", "not (n in (1, 2))", "n not in (1, null)", "n in (1, null)", "not (n > 3)",
        "n = 1 or n != 1", "n = 1 or n is null", "not (n = 1 or n is null)", "not (n is null)",
        "not (n = 1 and id > 9)",
    )  # fmt: skip
    assert_right(uri, *asked)
    tw.dataset(uri).update({"n": "null"}, where="n = 1")
    tw.dataset(uri).optimize.optimize_indices()
    assert_right(uri, *asked)


@MAKER
def test_T26_null_lists_and_null_elements(tmp_path: Path, maker: Any) -> None:
    uri = str(tmp_path)
    lists = [None, [], [None], ["a"], ["a", None], ["b"]]
    lance.write_dataset(pa.table({"id": range(6), "l": pa.array(lists, pa.list_(pa.string()))}), uri)
    maker.dataset(uri).create_scalar_index("l", "LABEL_LIST")
    assert_right(uri, "array_has(l, 'a')", "array_has_any(l, ['a', 'b'])", "array_has_all(l, ['a'])")
    for sql in ("not array_has(l, 'a')", "not array_has_any(l, ['a', 'b'])", "l is null", "not (l is null)"):
        assert found(tw.dataset(uri), sql, by_index=True) == found(tw.dataset(uri), sql, by_index=False), sql


@MAKER
def test_T27_merged_zone_maps_still_know_their_nulls(tmp_path: Path, maker: Any) -> None:
    uri = made(tmp_path)
    maker.dataset(uri).create_scalar_index("n", "ZONEMAP")
    for start in (200, 300):
        tw.dataset(uri).insert(table(start, start + 30))
        maker.dataset(uri).optimize.optimize_indices(num_indices_to_merge=0)
        assert_right(uri, "n is null", "not (n is null)", "not (n > 2)")
    tw.dataset(uri).insert(table(400, 410))
    tw.dataset(uri).optimize.optimize_indices(num_indices_to_merge=3)
    assert len(tw.dataset(uri).list_indices()) == 1
    assert_right(uri, "n is null", "not (n is null)", "not (n > 2)")
    tw.dataset(uri).optimize.compact_files()
    assert_right(uri, "n is null", "not (n is null)", "not (n > 2)")


@MAKER
@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"])
def test_T28_nan_is_greater_than_every_number(tmp_path: Path, maker: Any, kind: str) -> None:
    """A NaN among numbers in each zone; pylance's own zones of nothing but NaN lose rows."""
    uri = made(tmp_path)
    maker.dataset(uri).create_scalar_index("f", kind)
    nan = "cast('NaN' as double)"
    assert_right(
        uri, "f > 1e300", f"f = {nan}", f"f < {nan}", f"f >= {nan}", f"f != {nan}", "not (f > 1.5)", "f <= 1.5"
    )
    assert found(tw.dataset(uri), f"f = {nan}", by_index=True) == [i for i in range(120) if i % 7 == 1]


@STABLE
def test_T29_zones_are_cut_as_pylance_cuts_them(tmp_path: Path, stable: bool) -> None:
    """Over live rows; where they begin and how long they are is physical."""
    zones = []
    for number, maker in enumerate((tw, lance)):
        uri = made(tmp_path / str(number), stable=stable)
        lance.dataset(uri).delete("id % 5 = 1 or id in (0, 2, 3, 79)")
        settings = lance.indices.IndexConfig("zonemap", {"rows_per_zone": 16})
        maker.dataset(uri).create_scalar_index("n", settings)
        store, directory = snapshot_of(uri).index_place(only_index(uri))
        zones.append(read_index_file(store, directory, "zonemap.lance").rows.to_pylist())
        assert_right(uri, "n = 3", "n is null", "n > 4")
    assert zones[0] == zones[1]


@pytest.mark.parametrize("way", ["remap", "defer", "stable"])
def test_T30_T31_T32_T33_full_text_answers_stay(tmp_path: Path, way: str) -> None:
    """We build no full-text index. Ours is to move its rows: scores under small limits (T30), long tokens and phrases
    across stop words (T31), `contains_tokens` (T33) answer as before, and pylance adds to its tokens afterwards (T32).
    """
    uri = made(tmp_path, stable=way == "stable")
    lance.dataset(uri).create_scalar_index("text", "INVERTED", with_position=True)
    texts = ["word3", "word3 text1", "x" * 38, "x" * 39, "x" * 40, "x" * 41]

    def answers() -> list[Any]:
        ranked = [hits(uri, text, 500) for text in texts]
        scores = [[score for _, score in hits(uri, text, 3)] for text in texts]
        phrase = lance.query.PhraseQuery("word3 the text1", "text")
        phrases = lance.dataset(uri).to_table(full_text_query=phrase, columns=["id"], limit=500)["id"].to_pylist()
        tokens = found(lance.dataset(uri), f"contains_tokens(text, '{'x' * 41}')", by_index=True)
        return [ranked, scores, sorted(phrases), tokens]

    before = answers()
    assert before[0][0] and before[2] and len(before[1][0]) == 3
    tw.dataset(uri).optimize.compact_files(defer_index_remap=way == "defer")
    assert answers() == before
    tw.dataset(uri).insert(table(200, 230))
    lance.dataset(uri).optimize.optimize_indices()
    assert {id for id, _ in hits(uri, "word3", 500)} == {id for id in (*range(120), *range(200, 230)) if id % 11 == 3}


def test_T34_cleanup_removes_files_of_indices_that_no_version_has(tmp_path: Path) -> None:
    uri = made(tmp_path)
    tw.dataset(uri).create_scalar_index("n", "BTREE")
    tw.dataset(uri).create_scalar_index("n", "BTREE")
    tw.dataset(uri).optimize.compact_files()
    orphan = tmp_path / "_indices" / "0e2cd6b0-6f3c-4b1d-9a55-5f3c1d6f7a10"
    orphan.mkdir()
    (orphan / "page_data.lance").write_bytes(b"left by a build that failed")
    tw.dataset(uri).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    left = {file.parent.name for file in (tmp_path / "_indices").rglob("*") if file.is_file()}
    assert left == {str(only_index(uri).uuid)}
    assert_right(uri, "n = 3")


@STABLE
def test_T37_the_bitmap_names_no_fragment_without_its_entries(tmp_path: Path, stable: bool) -> None:
    """Rows of such a fragment would be hidden, by every reader."""
    uri = made(tmp_path, stable=stable)
    tw.dataset(uri).delete("id % 6 = 2")
    tw.dataset(uri).create_scalar_index("n", "BTREE", fragment_ids=[0, 2])
    for change in (
        lambda: None,
        lambda: tw.dataset(uri).insert(table(200, 230)),
        lambda: tw.dataset(uri).optimize.compact_files(),
        lambda: tw.dataset(uri).optimize.optimize_indices(),
    ):
        change()
        snapshot, index = snapshot_of(uri), only_index(uri)
        live = {fragment.id: fragment for fragment in snapshot.manifest.fragments}
        rows = sum(live[id].physical_rows for id in index.coverage or () if id in live)
        deleted = sum(len(snapshot.deletion_vector(live[id]) or ()) for id in index.coverage or () if id in live)
        store, directory = snapshot.index_place(index)
        assert read_index_file(store, directory, "page_data.lance").rows.num_rows == rows - deleted
        assert_right(uri, "n = 3", "n is null")


def test_T38_a_build_with_one_thread_of_the_codec_ends(tmp_path: Path) -> None:
    uri = made(tmp_path)
    script = (
        "import sys, tablewright as tw\n"
        "ds = tw.dataset(sys.argv[1])\n"
        "ds.create_scalar_index('n', 'BTREE')\n"
        "ds.create_scalar_index('l', 'LABEL_LIST')\n"
        "ds.optimize.compact_files()\n"
    )
    environment = {**os.environ, "LANCE_IO_THREADS": "1"}
    subprocess.run([sys.executable, "-c", script, uri], env=environment, check=True, timeout=120)
    assert_right(uri, "n = 3", "array_has(l, 'l1')")

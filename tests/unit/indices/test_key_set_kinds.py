"""BITMAP, LABEL_LIST and NGRAM that pylance made: read here, and built again from the same table with equal content."""

from __future__ import annotations

import shutil
import struct
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.index_builds import FUNCTIONS, built, table_of

import tablewright as tw
from tablewright.cache import process_cache
from tablewright.errors import CorruptTable, UnsupportedFeature
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import BITMAP, LABEL_LIST, NGRAM, IndexKind, kind_of
from tablewright.format.row_address_map import encode_row_address_map
from tablewright.indices.building import OldSegment
from tablewright.indices.files import read_index_file, write_index_file
from tablewright.indices.key_sets.layout import BITMAPS, POSTINGS, Layout
from tablewright.indices.query import Between, Contains, HasAll, HasAny, IsIn, IsNull, StartsWith
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.storage.identity import is_settled, local_identity
from tablewright.world import World

GOLDEN = Path(__file__).parents[2] / "golden" / "lance"
KINDS = {"bitmap": BITMAP, "label_list": LABEL_LIST, "ngram": NGRAM}
TABLES = pytest.mark.parametrize("name", [kind + stable for kind in KINDS for stable in ("", "_stable")])


def golden(name: str, place: Path) -> tuple[str, Snapshot, IndexMetadata, str]:
    """A copy of a table, its index, and the indexed column."""
    uri = str(place / "table")
    shutil.copytree(GOLDEN / name / "table", uri)
    snapshot = open_snapshot(World(open_store(uri)))
    (index,) = snapshot.manifest.indices
    columns = snapshot.schema.to_arrow().names
    return uri, snapshot, index, next(each for each in columns if snapshot.schema.resolve(each).id == index.fields[0])


@TABLES
def test_a_build_on_the_same_table_has_the_same_rows_and_buffers(name: str, tmp_path: Path) -> None:
    uri, _, theirs, column = golden(name, tmp_path)
    kind = KINDS[name.removesuffix("_stable")]
    _, entry = built(uri, column, kind)
    assert (kind_of(theirs), entry.details_type_url) == (kind, theirs.details_type_url)
    assert (entry.index_version, entry.files) == (theirs.index_version, theirs.files)
    one, other = (
        read_index_file(open_store(uri), f"_indices/{index.uuid}", kind.files[0], buffers=["lance:label_list_nulls"])
        for index in (theirs, entry)
    )  # whole files are equal too, but for the order of entries in their metadata, which is by chance
    assert one.rows.equals(other.rows, check_metadata=True)
    assert (one.metadata, one.buffers) == (other.metadata, other.buffers)


@TABLES
def test_searches_of_files_that_pylance_made(name: str, tmp_path: Path) -> None:
    uri, snapshot, index, column = golden(name, tmp_path)
    values = snapshot_rows(uri, column, stable="stable" in name)
    kind = KINDS[name.removesuffix("_stable")]
    present = [value for value in values.values() if value]
    if kind is BITMAP:
        query, truth = IsIn(pa.array(present[:1])), {each for each, value in values.items() if value == present[0]}
    elif kind is LABEL_LIST:
        wanted = next(value for value in present if value[0] is not None)[0]
        query = HasAny(pa.array([wanted], pa.int64()))
        truth = {each for each, value in values.items() if value and wanted in value}
    else:
        word = next(word for value in present for word in value.split() if len(word) > 2 and word.isascii())
        query, truth = Contains(word), {each for each, value in values.items() if value and word in value}
    hits = FUNCTIONS[kind].search(snapshot, index, query, with_nulls=True)
    assert truth
    assert truth <= set(hits.ids.tolist()) if kind is NGRAM else sorted(truth) == sorted(hits.ids.tolist())
    assert set(hits.nulls.tolist()) == {each for each, value in values.items() if value is None}


def snapshot_rows(uri: str, column: str, *, stable: bool) -> dict[int, object]:
    rows = tw.dataset(uri).to_table(columns=[column], with_row_id=stable, with_row_address=not stable)
    return dict(zip(rows["_rowid" if stable else "_rowaddr"].to_pylist(), rows[column].to_pylist(), strict=True))


# --------------------------------------------------------------------------------------------------------------- files
def test_an_index_on_nothing_is_a_file_without_keys() -> None:
    uri = "memory://key-sets-empty"
    tw.write_dataset(pa.table({"x": [1], "l": [["a"]], "s": ["text"]}), uri)
    for column, kind in (("x", BITMAP), ("l", LABEL_LIST), ("s", NGRAM)):
        snapshot, entry = built(uri, column, kind, fragments=[])
        query = {BITMAP: Between(), LABEL_LIST: HasAny(pa.array(["a"])), NGRAM: Contains("text")}[kind]
        hits = FUNCTIONS[kind].search(snapshot, entry, query, with_nulls=True)
        assert (hits.ids.tolist(), hits.nulls.tolist()) == ([], [])
        assert FUNCTIONS[kind].estimate(snapshot, entry, query) == 0


def hand_written(
    uri: str, layout: Layout, keys: pa.Array, sets: list[bytes | None], **beside: bytes
) -> tuple[Snapshot, IndexMetadata]:
    """A file of an index with these rows."""
    snapshot, entry = built(uri, "x", BITMAP, fragments=[])
    batch = pa.record_batch([keys, pa.array(sets, pa.binary())], schema=layout.schema(keys.type))
    named = {name.replace("_nulls", "lance:label_list_nulls"): data for name, data in beside.items()}
    write_index_file(
        open_store(uri),
        f"_indices/{entry.uuid}",
        layout.file,
        batch.schema,
        [batch] if len(batch) else [],
        buffers=named,
    )
    return snapshot, entry


@pytest.fixture(scope="module")
def numbers() -> str:
    uri = "memory://key-sets-numbers"
    tw.write_dataset(table_of(pa.array([1, 2, None])), uri)
    return uri


ONE = encode_row_address_map(np.array([1], np.uint64))


@pytest.mark.parametrize(
    ("keys", "sets", "problem"),
    [
        ([1, 2], [ONE, ONE[:-1]], "early"),
        ([1, 2], [ONE, None], "null"),
        ([1, 2], [ONE, b""], "early"),
        ([1, 2], [ONE, struct.pack("<III", 1, 0, 0)], "all rows of fragment 0"),
        ([1, 1], [ONE, ONE], "twice"),
        ([None, None], [ONE, ONE], "2 of its keys are null"),
    ],
)
def test_damaged_files_are_named(numbers: str, keys: list[int], sets: list[bytes | None], problem: str) -> None:
    snapshot, entry = hand_written(numbers, BITMAPS, pa.array(keys, pa.int64()), sets)
    with pytest.raises(CorruptTable, match=problem):
        FUNCTIONS[BITMAP].search(snapshot, entry, Between())


def test_keys_in_any_order_are_found_and_merged(numbers: str) -> None:
    keys = pa.array([5, None, -3, 4], pa.int64())
    sets = [encode_row_address_map(np.array([place], np.uint64)) for place in range(4)]
    snapshot, entry = hand_written(numbers, BITMAPS, keys, list(sets))
    found = FUNCTIONS[BITMAP].search(snapshot, entry, Between(low=pa.scalar(4)), with_nulls=True)
    assert (sorted(found.ids.tolist()), found.nulls.tolist()) == ([0, 3], [1])
    old = OldSegment(entry, lambda ids: (ids + np.uint64(10), np.ones(len(ids), np.bool_)))
    snapshot, merged = built(numbers, "x", BITMAP, old=(old,))
    for value, ids in ((5, [10]), (-3, [12]), (1, [0])):
        assert FUNCTIONS[BITMAP].search(snapshot, merged, IsIn(pa.array([value]))).ids.tolist() == ids
    assert sorted(FUNCTIONS[BITMAP].search(snapshot, merged, IsNull()).ids.tolist()) == [2, 11]


def test_a_file_of_another_column_or_without_sets_is_refused(numbers: str) -> None:
    snapshot, entry = hand_written(numbers, BITMAPS, pa.array(["a"]), [ONE])
    old = OldSegment(entry, lambda ids: (ids, np.ones(len(ids), np.bool_)))
    with pytest.raises(CorruptTable, match="its keys are string where the column is int64"):
        built(numbers, "x", BITMAP, old=(old,))
    rows = pa.record_batch({"keys": [1]})
    write_index_file(open_store(numbers), f"_indices/{entry.uuid}", BITMAPS.file, rows.schema, [rows])
    with pytest.raises(CorruptTable, match="no column 'bitmaps'"):
        FUNCTIONS[BITMAP].search(snapshot, entry, IsNull())


def test_null_lists_that_a_file_does_not_record_are_not_known(numbers: str) -> None:
    snapshot, entry = hand_written(numbers, BITMAPS, pa.array([1]), [ONE])
    hits = FUNCTIONS[LABEL_LIST].search(snapshot, entry, HasAny(pa.array([1])), with_nulls=True)
    assert (hits.ids.tolist(), hits.nulls) == ([1], None)
    with pytest.raises(UnsupportedFeature, match="Create it again"):
        FUNCTIONS[LABEL_LIST].remap(
            snapshot, entry, lambda ids: (ids, np.ones(len(ids), np.bool_)), World(open_store(numbers)), "_indices/x"
        )
    snapshot, entry = hand_written(numbers, BITMAPS, pa.array([1]), [ONE], _nulls=b"???")
    with pytest.raises(CorruptTable, match="null lists is broken"):
        FUNCTIONS[LABEL_LIST].search(snapshot, entry, HasAny(pa.array([1])), with_nulls=True)


def test_a_damaged_posting_list_is_named(numbers: str) -> None:
    snapshot, entry = hand_written(numbers, POSTINGS, pa.array([15516], pa.uint32()), [bytes(7)])
    with pytest.raises(CorruptTable, match="early"):
        FUNCTIONS[NGRAM].search(snapshot, entry, Contains("abc"))
    with pytest.raises(CorruptTable, match="early"):
        FUNCTIONS[NGRAM].estimate(snapshot, entry, Contains("abc"))


# ------------------------------------------------------------------------------------------------------------- answers
def test_queries_that_a_kind_can_not_answer_raise() -> None:
    uri = "memory://key-sets-answers"
    tw.write_dataset(pa.table({"x": ["abc"], "l": [["a"]]}), uri)
    for column, kind, query in (
        ("x", BITMAP, Contains("abc")),
        ("l", LABEL_LIST, IsNull()),
        ("x", NGRAM, IsNull()),
        ("x", NGRAM, Contains("ab")),
    ):
        snapshot, entry = built(uri, column, kind)
        assert not FUNCTIONS[kind].answers(query, snapshot.schema.to_arrow().field(column).type)
        with pytest.raises(TypeError, match="can't answer"):
            FUNCTIONS[kind].search(snapshot, entry, query)


@pytest.mark.parametrize(
    ("kind", "query", "type_", "expected"),
    [
        (BITMAP, StartsWith("a"), pa.large_string(), True),
        (BITMAP, StartsWith("a"), pa.binary(), False),
        (BITMAP, IsIn(pa.array([1])), pa.list_(pa.int64()), False),
        (LABEL_LIST, HasAll(pa.array([1])), pa.large_list(pa.int64()), True),
        (LABEL_LIST, HasAll(pa.array([], pa.int64())), pa.list_(pa.int64()), False),
        (LABEL_LIST, HasAny(pa.array([1])), pa.int64(), False),
        (NGRAM, StartsWith("abc"), pa.string(), True),
        (NGRAM, Contains("a-bé-c"), pa.string(), False),
        (NGRAM, Contains("abc"), pa.binary(), False),
    ],
)
def test_answers(kind: IndexKind, query: object, type_: pa.DataType, expected: bool) -> None:
    assert FUNCTIONS[kind].answers(query, type_) is expected


def test_nested_columns_and_null_structs() -> None:
    uri = "memory://key-sets-nested"
    inner = pa.struct([("b", pa.string()), ("l", pa.list_(pa.int64()))])
    rows = pa.array([{"b": "one", "l": [1]}, None, {"b": "two", "l": None}, {"b": None, "l": [2]}], inner)
    tw.write_dataset(table_of(rows, "a"), uri)
    snapshot, entry = built(uri, "a.b", BITMAP)
    hits = FUNCTIONS[BITMAP].search(snapshot, entry, IsIn(pa.array(["two"])), with_nulls=True)
    assert (hits.ids.tolist(), hits.nulls.tolist()) == ([2], [1, 3])
    snapshot, entry = built(uri, "a.l", LABEL_LIST)
    hits = FUNCTIONS[LABEL_LIST].search(snapshot, entry, HasAny(pa.array([2])), with_nulls=True)
    assert (hits.ids.tolist(), hits.nulls.tolist()) == ([3], [1, 2])


def test_keys_are_read_once_and_again_if_the_file_is_another(tmp_path: Path) -> None:
    uri, snapshot, index, _ = golden("bitmap", tmp_path)
    path = Path(uri) / "_indices" / str(index.uuid) / BITMAPS.file
    while not ((identity := local_identity(str(path))) and is_settled(identity)):
        time.sleep(0.01)
    red = IsIn(pa.array(["red"]))
    found = FUNCTIONS[BITMAP].search(snapshot, index, red).ids.tolist()
    before = process_cache().stats().kinds["keys of indices"]
    assert FUNCTIONS[BITMAP].search(snapshot, index, red).ids.tolist() == found != []
    after = process_cache().stats().kinds["keys of indices"]
    assert (after.hits - before.hits, after.misses - before.misses) == (1, 0)
    rows = pa.record_batch([pa.array(["red"]), pa.array([ONE])], schema=BITMAPS.schema(pa.string()))
    write_index_file(open_store(uri), f"_indices/{index.uuid}", BITMAPS.file, rows.schema, [rows])
    assert FUNCTIONS[BITMAP].search(snapshot, index, red).ids.tolist() == [1]

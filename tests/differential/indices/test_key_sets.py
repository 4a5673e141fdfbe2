"""Our BITMAP, LABEL_LIST and NGRAM in pylance's hands: its plans name them, and answers equal those of a scan.

Then pylance appends, deletes, updates, optimises the index and compacts; answers stay those of a scan after each step.
"""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.index_builds import FUNCTIONS, create

from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import BITMAP, LABEL_LIST, NGRAM, IndexKind
from tablewright.indices.ngram.tokens import query_tokens
from tablewright.indices.query import Contains, HasAll, HasAny, IsIn, IsNull
from tablewright.snapshot import open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

from ..referee import lance

STABLE = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
WORDS = [
    "Straße",
    "ﬁne weather",
    "İstanbul",
    "cafe\u0301 noir",
    "Café au lait",
    "漢字abc漢字",
    "🙂smile🙂",
    "Ærøskøbing",
]
PLAIN = ["alpha beta", "beta gamma", "gamma delta 42", "AlphaBeta", "a b c", "", "x-1-yz"]


def rows(start: int, stop: int) -> pa.Table:
    """Values of every kind that the three indices can hold, with nulls, NaN, empty lists and null elements."""
    ids = range(start, stop)
    floats = [None, 0.0, -0.0, 1.5, float("nan"), -3.0, float("inf")]
    labels: list[Any] = [None, [], [None], ["a"], ["a", "b"], ["b", None, "b"], ["c", "d"]]
    texts = [None, *WORDS, *PLAIN]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "c": pa.array([None if i % 9 == 4 else f"colour {i % 6}" for i in ids], pa.string()),
            "f": pa.array([floats[i * 5 % 7] for i in ids], pa.float64()),
            "l": pa.array([labels[i * 3 % 7] for i in ids], pa.list_(pa.string())),
            "t": pa.array([texts[i * 7 % len(texts)] for i in ids], pa.string()),
        }
    )


FILTERS: dict[tuple[str, IndexKind], list[str]] = {
    ("c", BITMAP): [
        "c = 'colour 3'",
        "c IN ('colour 1', 'colour 5', 'none')",
        "c > 'colour 2' AND c <= 'colour 4'",
        "c IS NULL",
        "c IS NOT NULL",
        "c != 'colour 3'",
        "NOT (c = 'colour 1' OR c = 'colour 2')",
    ],
    ("f", BITMAP): [
        "f = 0.0",
        "f > 1.0",
        "f <= 0.0",
        "f < 0.0",
        "f IS NULL",
        "f != 1.5",
        "NOT (f > 1.0)",
        "f IN (0.0, 1.5)",
    ],
    ("l", LABEL_LIST): [
        "array_has(l, 'a')",
        "array_has_any(l, ['a', 'c'])",
        "array_has_all(l, ['a', 'b'])",
        "array_has_any(l, ['b', NULL])",
        "array_has_all(l, ['b', NULL])",
        "NOT array_has(l, 'a')",
        "NOT array_has_all(l, ['a', 'b'])",
        "NOT array_has_any(l, ['z'])",
    ],
    ("t", NGRAM): [
        "contains(t, 'beta')",
        "contains(t, 'stra')",
        "contains(t, 'Straße')",
        "contains(t, 'ﬁne')",
        "contains(t, 'stanbul')",
        "contains(t, 'afe\u0301')",
        "contains(t, 'Café')",
        "contains(t, 'abc')",
        "contains(t, 'mile🙂')",
        "contains(t, 'Ærøsk')",
        "t LIKE '%amma%'",
        "t LIKE 'alpha%'",
    ],
}


def check(uri: str, column: str, kind: IndexKind) -> None:
    """pylance's answers with the index equal its scan, and the plan of every filter names the index."""
    ds = lance.dataset(uri)
    for text in FILTERS[column, kind]:
        with_index = ds.scanner(columns=["id"], filter=text, use_scalar_index=True)
        assert f"{column}_idx({kind.label}" in with_index.explain_plan(), text
        flat = ds.to_table(columns=["id"], filter=text, use_scalar_index=False)["id"].to_pylist()
        assert sorted(with_index.to_table()["id"].to_pylist()) == sorted(flat), text


@STABLE
@pytest.mark.parametrize(("column", "kind"), FILTERS, ids=[f"{column}-{kind.name}" for column, kind in FILTERS])
def test_pylance_uses_our_index_and_keeps_it(tmp_path: Path, stable: bool, column: str, kind: IndexKind) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(rows(0, 200), uri, max_rows_per_file=70, enable_stable_row_ids=stable)
    lance.dataset(uri).delete("id % 11 = 5")
    create(uri, column, kind)
    check(uri, column, kind)
    steps = [
        lambda: lance.write_dataset(rows(200, 260), uri, mode="append"),
        lambda: lance.dataset(uri).delete("id % 13 = 1"),
        lambda: lance.dataset(uri).optimize.optimize_indices(),
        lambda: lance.dataset(uri).update({"c": "'colour 3'", "f": "1.5", "t": "'beta abc'"}, where="id % 17 = 3"),
        lambda: lance.dataset(uri).optimize.optimize_indices(),
        lambda: lance.dataset(uri).optimize.compact_files(),
        lambda: lance.write_dataset(rows(260, 300), uri, mode="append"),
        lambda: lance.dataset(uri).optimize.optimize_indices(),
    ]
    for step in steps:
        step()
        check(uri, column, kind)
    create(uri, column, kind)  # ours again, on what pylance has made of the table
    check(uri, column, kind)


@STABLE
@pytest.mark.parametrize("kind", [BITMAP, LABEL_LIST, NGRAM], ids=lambda kind: kind.name)
def test_we_read_pylances_index(tmp_path: Path, stable: bool, kind: IndexKind) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(rows(0, 150), uri, max_rows_per_file=70, enable_stable_row_ids=stable)
    column = {BITMAP: "c", LABEL_LIST: "l", NGRAM: "t"}[kind]
    ds = lance.dataset(uri)
    ds.create_scalar_index(column, kind.name)
    queries = {
        BITMAP: [(IsIn(pa.array(["colour 3"])), "c = 'colour 3'"), (IsNull(), "c IS NULL")],
        LABEL_LIST: [
            (HasAny(pa.array(["a", None])), "array_has_any(l, ['a', NULL])"),
            (HasAll(pa.array(["a", "b"])), "array_has_all(l, ['a', 'b'])"),
        ],
        NGRAM: [(Contains(word), f"contains(t, '{word}')") for word in (*WORDS, *PLAIN) if len(query_tokens(word))],
    }[kind]
    snapshot = open_snapshot(World(open_store(uri)))
    (index,) = snapshot.manifest.indices
    for query, text in queries:
        flat = ds.to_table(filter=text, use_scalar_index=False, with_row_id=True)["_rowid"].to_pylist()
        hits = FUNCTIONS[kind].search(snapshot, index, query)
        assert flat, text
        assert set(flat) <= set(hits.ids.tolist()) if kind is NGRAM else sorted(flat) == sorted(hits.ids.tolist()), text


TYPES: list[pa.Array] = [
    pa.array([True, False, None, True]),
    pa.array([1, -2, None, 1], pa.int8()),
    pa.array([1, 2**64 - 1, None, 1], pa.uint64()),
    pa.array([np.float16(1), np.float16(-2), None, np.float16(1)], pa.float16()),
    pa.array(["b", "a", None, "b"], pa.large_string()),
    pa.array([b"b", b"", None, b"b"], pa.binary()),
    pa.array([b"ab", b"cd", None, b"ab"], pa.binary(2)),
    pa.array([3, -1, None, 3], pa.date32()),
    pa.array([86_400_000, 0, None, 86_400_000], pa.date64()),
    pa.array([1, 2, None, 1], pa.time32("s")),
    pa.array([1, 2, None, 1], pa.time64("ns")),
    pa.array([5, -5, None, 5], pa.timestamp("us", "UTC")),
    pa.array([5, -5, None, 5], pa.duration("ms")),
    pa.array([Decimal("1.50"), Decimal("-2.00"), None, Decimal("1.50")], pa.decimal128(10, 2)),
    pa.array([Decimal("1.50"), Decimal("-2.00"), None, Decimal("1.50")], pa.decimal256(40, 2)),
]


def contents(ds: Any, name: str) -> tuple[list[Any], list[bytes]]:
    """The rows of an index file, as pylance's codec reads them."""
    (path,) = (Path(ds.uri) / "_indices").glob(f"{name}/*")
    found = lance.file.LanceFileReader(str(path)).read_all().to_table()
    return found[0].to_pylist(), found[1].to_pylist()


@pytest.mark.parametrize("listed", [False, True], ids=["BITMAP", "LABEL_LIST"])
@pytest.mark.parametrize("column", TYPES, ids=lambda column: str(column.type))
def test_every_type_has_the_rows_that_pylance_writes(tmp_path: Path, column: pa.Array, listed: bool) -> None:
    kind = LABEL_LIST if listed else BITMAP
    if listed:
        column = pa.ListArray.from_arrays(pa.array([0, 2, 2, 4], pa.int32()), column)
    uri = str(tmp_path / "t")
    ds = lance.write_dataset(pa.table({"x": column}), uri, data_storage_version="2.2")
    ds.create_scalar_index("x", kind.name)
    theirs = contents(ds, ds.list_indices()[0]["uuid"])
    ours: IndexMetadata = create(uri, "x", kind)
    assert contents(ds, str(ours.uuid)) == theirs
    assert FUNCTIONS[kind].supported(column.type)


def test_tokens_of_any_text_are_those_of_pylance(tmp_path: Path) -> None:
    """Every character up to U+1FFFF between letters, and random text of accents, ligatures, marks, CJK and emoji."""
    every = [chr(code) for code in range(0x80, 0x20000) if not 0xD800 <= code < 0xE000]
    chance = random.Random(7)
    pool = [chr(code) for code in (*range(0x41, 0x7B), *range(0xC0, 0x250), *range(0x300, 0x330))]
    pool += ["ß", "ﬁ", "İ", "ẞ", "Σ", "漢", "🙂", "ﬃ", "½", "ᴬ", " ", "1", "\u212a", "\0", "\x1f"]
    texts = [f"zz{each}qq" for each in every]
    texts += ["".join(chance.choices(pool, k=chance.randint(1, 30))) for _ in range(5000)]
    uri = str(tmp_path / "t")
    ds = lance.write_dataset(pa.table({"x": texts}), uri)
    ds.create_scalar_index("x", "NGRAM")
    theirs = contents(ds, ds.list_indices()[0]["uuid"])
    ours = create(uri, "x", NGRAM)
    tokens, postings = contents(ds, str(ours.uuid))
    assert tokens == theirs[0]
    assert postings == theirs[1]


def test_nested_columns(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    inner = pa.struct([("b", pa.string()), ("l", pa.list_(pa.string()))])
    table = rows(0, 90)
    structs = [
        None if i % 7 == 0 else {"b": c, "l": found}
        for i, (c, found) in enumerate(zip(table["c"].to_pylist(), table["l"].to_pylist(), strict=True))
    ]
    lance.write_dataset(table.append_column("a", pa.array(structs, inner)), uri, max_rows_per_file=40)
    for column, kind, text in (
        ("a.b", BITMAP, "a.b != 'colour 3'"),
        ("a.b", BITMAP, "a.b IS NULL"),
        ("a.l", LABEL_LIST, "NOT array_has(a.l, 'a')"),
    ):
        create(uri, column, kind)
        ds = lance.dataset(uri)
        found = ds.scanner(columns=["id"], filter=text)
        if kind is BITMAP:  # pylance does not use a LABEL_LIST below a struct, not even its own
            assert f"{column}_idx({kind.label}" in found.explain_plan()
        flat = ds.to_table(columns=["id"], filter=text, use_scalar_index=False)["id"].to_pylist()
        assert sorted(found.to_table()["id"].to_pylist()) == sorted(flat), text

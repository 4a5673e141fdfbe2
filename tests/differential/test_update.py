"""`update` in each write mode: ours on one copy of a table, pylance's on another.

Rows that are moved make pylance's own table, fragment by fragment. Columns that are rewritten in place leave rows where
they are; everything else about the rows is the same: values, row ids, versions, schema. pylance reads both, and goes
on.
"""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.depth import deep

from .referee import UNDER_TEST, assert_same_dataset, assert_same_rows, lance, lancedb_rows, ours, tree
from .test_types import CASES
from .twins import (
    SHAPES,
    Look,
    assert_indices_answer,
    assert_indices_answer_as_a_scan,
    assert_same_content,
    assert_same_state,
    content,
    coverage,
    go_on,
    linked,
    outcome,
    people,
    shape_of,
    some,
    told,
    twins,
    update,
)

only_ours = pytest.mark.skipif(UNDER_TEST != "tablewright", reason="pylance has no such thing")
STABLE = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
WRITE_MODES = ["rewrite_rows", "rewrite_columns", "auto"]
MODES = pytest.mark.parametrize("mode", WRITE_MODES)
BOTH = pytest.mark.parametrize("mode", WRITE_MODES[:2])

UPDATES: list[tuple[dict[str, str], str | None]] = [
    ({"x": "-1"}, "id = 12"),
    ({"x": "x * 2 + id"}, "id % 3 = 1"),
    ({"x": "null"}, "id < 20"),
    ({"s": "'new'"}, None),
    ({"s": "concat(s, '!')", "x": "id / 2", "must": "must + 1"}, "id in (0, 7, 8, 15, 47)"),
    ({"x": "cast(must as double)", "größe": "must + 1"}, "CamelCase > 3"),
    ({"CamelCase": "`select` + 1"}, "camelcase = 4"),
    ({"with space": "upper(`with space`)"}, "`with space` like 'word 1%'"),
    ({"größe": "`größe` * 2"}, "größe > 20"),
    ({"select": "7"}, "`select` = 2"),
    ({"st": "named_struct('a', id, 'B c', 'new', 'inner', named_struct('z', 0.5))"}, "id % 10 = 3"),
    ({"st": "st"}, "st.a is null"),
    ({"l": "[7, 8, 9]"}, "array_has(l, 2)"),
    ({"l": "null"}, "id between 14 and 17"),
    ({"v": "[1.0, 2.0, 3.0, 4.0]"}, "id % 5 = 0"),
    ({"v": "v"}, "id % 5 = 0"),
    ({"d": "'kind 9'"}, "d = 'kind 1'"),
    ({"d": "s"}, "id < 5"),
    ({"ts": "timestamp '2030-01-02 03:04:05.678901'"}, "flag"),
    ({"day": "'2030-01-02'", "ts": "'2030-01-02 01:02:03'"}, "not flag"),
    ({"dec": "dec * 2"}, "flag is null"),
    ({"flag": "id % 3 = 0"}, "id > 30"),
    ({"bin": "X'00ff'"}, "x is null"),
    ({"x": "0"}, "id = 1000"),
    ({"x": "0"}, "false"),
    ({"x": "0"}, "cast(null as boolean)"),
    ({"x": "1"}, "id >= 12 and id < 24"),  # one whole fragment
    ({"x": "1", "s": "'s'"}, "_rowid in (3, 4294967297)"),
    ({"x": "1;"}, "_rowaddr < 4;"),
    ({"id": "id + 1000"}, "id % 2 = 0"),
    ({"id": "id"}, None),
]

GO_ON = [
    lambda ds: ds.update({"s": "'gone on'"}, where="id % 4 = 2")["num_rows_updated"],
    lambda ds: ds.delete("id % 4 = 3"),
    lambda ds: ds.update({"x": "x + 1", "s": "'once more'"}, where="id % 3 = 0")["num_rows_updated"],
]


@pytest.fixture(scope="module", params=SHAPES)
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(SHAPES[request.param](tmp_path_factory.mktemp(request.param)).uri)


def _same(mine: str, theirs: str | Look, mode: str) -> None:
    if mode == "rewrite_rows":
        assert_same_state(mine, theirs)
    else:
        assert_same_content(mine, theirs)


def test_every_update_is_pylances(base: str, tmp_path: Path) -> None:
    """In each mode on the plainest table; on the other shapes modes take turns in CI."""
    shape = list(SHAPES).index(shape_of(base))
    rows = [fragment.count_rows() for fragment in lance.dataset(base).get_fragments()]
    for number, (updates, where) in enumerate(some(UPDATES, base, 4)):
        there = lance.dataset(linked(base, tmp_path / f"{number}-theirs.lance"))
        result = there.update(updates, where=where)
        truth = told(there.uri)
        for mode in WRITE_MODES if deep(1, 2) > 1 or shape == 0 else [WRITE_MODES[(number + shape) % 3]]:
            mine = linked(base, tmp_path / f"{number}-{mode}.lance")
            here = ours.dataset(mine)
            assert update(here, updates, where, mode) == result, (updates, where, mode)
            assert here.version == there.version
            by_id = "/moved-rows" in base or "/compacted" in base  # we write rows in the order of ids, pylance as found
            _same(mine, truth, "auto" if by_id else mode)
            if mode == "rewrite_columns" and UNDER_TEST == "tablewright":
                assert [fragment.count_rows() for fragment in lance.dataset(mine).get_fragments()] == rows


def test_each_library_goes_on_with_the_others_table(base: str, tmp_path: Path) -> None:
    """Each shape of table in each mode; which of two updates it was takes turns."""
    turn = list(SHAPES).index(shape_of(base)) % 2
    for number, modes in zip((4, 17), [WRITE_MODES[:2], WRITE_MODES[2:]][:: 1 - 2 * turn], strict=True):
        updates, where = UPDATES[number]
        mine = [linked(base, tmp_path / f"{number}-{mode}.lance") for mode in modes]
        theirs = linked(base, tmp_path / f"{number}-theirs.lance")
        for place, mode in zip(mine, modes, strict=True):
            update(ours.dataset(place), updates, where, mode)
        lance.dataset(theirs).update(updates, where=where)
        go_on(mine, theirs, GO_ON)


def test_updating_again_and_again(base: str, tmp_path: Path) -> None:
    """By one mode all the time, on three shapes of table; on the others by one mode after the other."""
    alone = shape_of(base) in ("addresses", "several-files-stable", "moved-rows")
    courses = [[mode] for mode in WRITE_MODES] if alone else [WRITE_MODES]
    there = lance.dataset(linked(base, tmp_path / "theirs.lance"))
    here = [ours.dataset(linked(base, tmp_path / f"{number}.lance")) for number in range(len(courses))]
    for step in range(deep(4, 6)):
        updates, where = ({"x": f"{step}"}, f"id % 4 = {step % 4}") if step % 2 else ({"s": f"'{step}'"}, "id % 3 = 1")
        results = there.update(updates, where=where), there.delete(f"id = {step + 20}")
        truth = told(there.uri)
        for dataset, modes in zip(here, courses, strict=True):
            mode = modes[step % len(modes)]
            assert (update(dataset, updates, where, mode), dataset.delete(f"id = {step + 20}")) == results, mode
            assert_same_content(dataset.uri, truth)
    for dataset in here:
        assert_same_rows(dataset.to_table(), lance.dataset(dataset.uri).to_table())


PYLANCE_GOES_ON: dict[str, Any] = {
    "update of the same column": lambda ds: ds.update({"x": "-7"}, where="id % 2 = 0"),
    "update of another column": lambda ds: ds.update({"s": "'z'"}, where="id % 2 = 0"),
    "delete": lambda ds: ds.delete("x < 0 or id = 11"),
    "delete of all": lambda ds: ds.delete("true"),
    "compaction": lambda ds: ds.optimize.compact_files(target_rows_per_fragment=20),
    "deletions made real": lambda ds: (
        ds.delete("id % 3 = 0"),
        ds.optimize.compact_files(materialize_deletions_threshold=0.0),
    ),
    "index": lambda ds: ds.create_scalar_index("x", "BTREE"),
    "new column": lambda ds: ds.add_columns({"y": "x * 2"}),
    "cast": lambda ds: ds.alter_columns({"path": "must", "data_type": pa.int64()}),
    "drop of the column": lambda ds: ds.drop_columns(["x"]),
    "drop of another": lambda ds: ds.drop_columns(["s"]),
    "rename": lambda ds: ds.alter_columns({"path": "x", "name": "xx"}),
    "merge": lambda ds: ds.merge(pa.table({"id": pa.array([1, 2], pa.int64()), "new": ["a", "b"]}), "id"),
    "append": lambda ds: ds.insert(people(100, 103).select(ds.schema.names)),
    "upsert": lambda ds: (
        ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(people(40, 60))
    ),
    "restore": lambda ds: lance.dataset(ds.uri, version=1).restore(),
}


@pytest.fixture(scope="module", params=["addresses", "stable"])
def updated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One table with the same two updates, by us in each mode and by pylance."""
    folder = tmp_path_factory.mktemp("updated")
    base = str(folder / "base.lance")
    dataset = lance.write_dataset(
        people(0, 48), base, max_rows_per_file=8, enable_stable_row_ids=request.param == "stable"
    )
    dataset.delete("id in (1, 9, 10)")
    places = {mode: linked(base, folder / f"{mode}.lance") for mode in (*WRITE_MODES, "pylance")}
    for mode, place in places.items():
        library = lance if mode == "pylance" else ours
        for updates, where in [
            ({"x": "-id", "st": "st"}, "id < 21"),
            ({"x": "x - 1", "v": "v"}, "id > 12 and id < 40"),
        ]:
            update(library.dataset(place), updates, where, mode)
    return places


@pytest.mark.parametrize("action", PYLANCE_GOES_ON)
def test_pylance_changes_what_we_updated(updated: dict[str, str], tmp_path: Path, action: str) -> None:
    """Tombstoned field ids and moved rows are no obstacle to any change of pylance's."""
    found = {}
    for mode, place in updated.items():
        copy = linked(place, tmp_path / f"{mode}.lance")
        PYLANCE_GOES_ON[action](lance.dataset(copy))
        found[mode] = [str(row) for row in _placeless(copy, "id")]
        if mode != "pylance":
            assert_same_dataset(copy)
            if action == "index":
                assert_indices_answer_as_a_scan(copy, ["x < 0", "x = -5", "x > 3", "x is null"])
    for mode in WRITE_MODES:
        assert found[mode] == found["pylance"], mode


def _placeless(uri: str, key: str) -> list[dict[str, Any]]:
    dataset = lance.dataset(uri)
    dataset.validate()
    return sorted(dataset.to_table().to_pylist(), key=lambda row: row[key])


# ------------------------------------------------------------------------------------------------ types

N = 8
TYPED = pa.table(
    {
        "id": pa.array(range(N), pa.int64()),
        "i8": pa.array(range(N), pa.int8()),
        "u8": pa.array(range(N), pa.uint8()),
        "i16": pa.array(range(N), pa.int16()),
        "i32": pa.array(range(N), pa.int32()),
        "u64": pa.array(range(N), pa.uint64()),
        "f16": pa.array([np.float16(i / 2) for i in range(N)], pa.float16()),
        "f32": pa.array([i / 2 for i in range(N)], pa.float32()),
        "f64": pa.array([None if i == 3 else i / 2 for i in range(N)], pa.float64()),
        "b": pa.array([i % 2 == 0 for i in range(N)]),
        "s": pa.array([f"{i}" for i in range(N)]),
        "word": pa.array([f"w{i}" for i in range(N)]),
        "ls": pa.array([f"{i}" for i in range(N)], pa.large_string()),
        "bin": pa.array([bytes([i]) for i in range(N)]),
        "lbin": pa.array([bytes([i]) for i in range(N)], pa.large_binary()),
        "fsb": pa.array([b"abc" + bytes([i]) for i in range(N)], pa.binary(4)),
        "ts": pa.array([dt.datetime(2024, 1, 1 + i) for i in range(N)], pa.timestamp("us")),
        "tsz": pa.array([dt.datetime(2024, 1, 1 + i) for i in range(N)], pa.timestamp("us", "UTC")),
        "tsns": pa.array([dt.datetime(2024, 1, 1 + i) for i in range(N)], pa.timestamp("ns")),
        "tss": pa.array([dt.datetime(2024, 1, 1 + i) for i in range(N)], pa.timestamp("s")),
        "d32": pa.array([dt.date(2024, 1, 1 + i) for i in range(N)]),
        "d64": pa.array([dt.date(2024, 1, 1 + i) for i in range(N)], pa.date64()),
        "t32": pa.array([dt.time(i, 2) for i in range(N)], pa.time32("s")),
        "t64": pa.array([dt.time(i, 2) for i in range(N)], pa.time64("us")),
        "dur": pa.array([dt.timedelta(i) for i in range(N)], pa.duration("us")),
        "dec": pa.array([decimal.Decimal(i) / 4 for i in range(N)], pa.decimal128(10, 2)),
        "big": pa.array([decimal.Decimal(i) for i in range(N)], pa.decimal256(50, 0)),
        "fsl": pa.array([[i, 1.0] for i in range(N)], pa.list_(pa.float32(), 2)),
        "l": pa.array([list(range(i % 3)) for i in range(N)], pa.list_(pa.int64())),
        "words": pa.array([["x"]] * N, pa.list_(pa.string())),
        "st": pa.array([{"a": i, "b": f"x{i}"} for i in range(N)], pa.struct([("a", pa.int64()), ("b", pa.string())])),
        "dict": pa.array([f"k{i % 3}" for i in range(N)]).dictionary_encode(),
    }
).append_column(pa.field("must", pa.int64(), nullable=False), pa.array(range(N), pa.int64()))

EXPRESSIONS: dict[str, list[str]] = {
    "i8": [
        "5",
        "300",
        "-1",
        "5.7",
        "'5'",
        "'abc'",
        "null",
        "id",
        "id*1000",
        "true",
        "cast(5 as bigint)",
        "5.0",
        "i32",
        "f64",
        "u64",
        "f64*1000",
        "dec",
    ],
    "u8": ["-1", "255", "256", "'5'", "-id", "i8"],
    "i16": ["70000", "i32*30000", "f32"],
    "i32": ["5", "5.7", "'5'", "id", "f64", "f32*2", "id/2", "3000000000", "true", "s", "word", "null"],
    "id": ["5", "5.7", "'5'", "'x'", "i8+1", "s", "word", "u64", "9223372036854775808", "1e3", "d32", "b", "dec*3"],
    "u64": ["5", "-1", "id", "18446744073709551615", "'3'", "-id"],
    "f16": ["1", "1.5", "f64", "null", "100000.0"],
    "f32": ["1", "1.5", "f64", "'1.5'", "id", "0.1", "1e300", "dec", "null"],
    "f64": ["1", "1.5", "f32", "id", "'1.5'", "'x'", "null", "1/0", "1.0/0", "1/(id-2)", "s", "word", "dec"],
    "b": ["true", "1", "0", "'true'", "id=1", "null", "'x'", "id", "f64"],
    "s": [
        "'x'",
        "5",
        "id",
        "f64",
        "null",
        "true",
        "concat(s,'!')",
        "s||'z'",
        "upper(word)",
        "ls",
        "ts",
        "d32",
        "dec",
        "b",
        "cast(id+1 as string)",
        '"x"',
        "'it''s'",
        "''",
    ],
    "ls": ["'x'", "s", "id", "null"],
    "bin": ["'x'", "X'00ff'", "s", "null", "x'ab'", "lbin", "fsb"],
    "lbin": ["X'00ff'", "bin", "null"],
    "fsb": ["X'00ff0011'", "X'00ff'", "'abcd'", "null"],
    "ts": [
        "'2024-02-03'",
        "'2024-02-03T04:05:06'",
        "date'2024-02-03'",
        "null",
        "tsz",
        "tsns",
        "tss",
        "5",
        "'nonsense'",
        "d32",
        "to_timestamp('2024-02-03T01:02:03')",
    ],
    "tsz": ["'2024-02-03'", "ts", "'2024-02-03T00:00:00Z'", "'2024-02-03T00:00:00+02:00'", "null"],
    "tsns": ["'2024-02-03'", "ts", "tss", "null"],
    "tss": ["ts", "tsns", "'2024-02-03T01:02:03.9'", "null"],
    "d32": ["'2024-02-03'", "date'2024-02-03'", "ts", "5", "null", "d64"],
    "d64": ["'2024-02-03'", "date'2024-02-03'", "d32", "null"],
    "t32": ["'01:02:03'", "null", "t64"],
    "t64": ["'01:02:03.25'", "null", "t32"],
    "dur": ["null", "5", "ts-ts"],
    "dec": ["5", "1.5", "1.256", "'1.5'", "123456789012", "dec*2", "null", "f64", "9.999", "id", "-dec"],
    "big": ["5", "id", "dec", "null", "big*2"],
    "fsl": ["[3.0,4.0]", "[3,4]", "[1]", "null", "array[1,2]", "fsl", "[1.0,2.0,3.0]", "make_array(f64,f32)"],
    "l": ["[3,4]", "null", "['a']", "[1.5]", "array_append(l,9)", "fsl", "make_array(1,2)", "make_array(id,i8)"],
    "words": ["['a','b']", "[1]", "null", "make_array(s,word)"],
    "st": [
        "null",
        "named_struct('a',5,'b','y')",
        "struct(5,'y')",
        "named_struct('b','y','a',5)",
        "named_struct('a',5)",
        "'x'",
        "5",
        "named_struct('a','5','b','y')",
        "named_struct('a',id,'b',s)",
        "st",
        "named_struct('a',word,'b','y')",
    ],
    "dict": ["'b'", "'zz'", "null", "s", "5", "word"],
    "must": ["5", "null", "cast(null as bigint)", "id", "f64", "nullif(id,2)", "must+1"],
}

# The codec can't write these: nulls beside empty structs.
BEYOND_THE_CODEC = {("struct_empty", "rewrite_columns", "null")}


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("typed") / "base.lance")
    lance.write_dataset(TYPED, uri, max_rows_per_file=4)
    return uri


@pytest.mark.parametrize("column", EXPRESSIONS)
def test_values_take_the_type_of_their_column_as_in_pylance(typed: str, tmp_path: Path, column: str) -> None:
    """Each expression is taken with pylance's value, or refused where pylance refuses it, with nothing written.

    Values are computed before it is decided where they go: modes take turns, but for the first expression.
    """
    before, sort = tree(typed), "id" if column != "id" else "u64"
    for number, expression in enumerate(EXPRESSIONS[column]):
        theirs = linked(typed, tmp_path / f"{number}-theirs.lance")
        there, refusal = outcome(lance.dataset(theirs).update, {column: expression}, where="id >= 2 and id < 6")
        truth = content(theirs, sort) if refusal is None else None
        for mode in WRITE_MODES[:2] if number == 0 else [WRITE_MODES[number % 2]]:
            mine = linked(typed, tmp_path / f"{number}-{mode}.lance")
            here, mistake = outcome(update, ours.dataset(mine), {column: expression}, "id >= 2 and id < 6", mode)
            if refusal is None:
                assert mistake is None, f"{column} = {expression}, {mode}: {mistake!r}"
                assert here == there
                assert content(mine, sort) == truth, f"{column} = {expression}, {mode}"
                seen, wanted = (each.dataset(mine).to_table(columns=[column, sort]) for each in (ours, lance))
                assert_same_rows(seen, wanted)
                continue
            expected = Exception if UNDER_TEST == "lance" else ours.errors.InvalidRequest
            assert isinstance(mistake, expected), f"{column} = {expression}: {here} {mistake!r}; pylance: {refusal}"
            if UNDER_TEST == "tablewright":
                assert tree(mine) == before, f"{column} = {expression}, {mode} left something behind"


CARRYING: list[tuple[dict[str, str], str]] = [
    ({"id": "id + 100"}, "id % 3 = 1"),
    ({"v": "v"}, "id % 2 = 0"),
    ({"v": "null"}, "id % 4 = 1"),
]


@pytest.mark.parametrize("name", CASES)
def test_every_type_is_carried_along(tmp_path: Path, name: str) -> None:
    """A row moves with its values of every type; a column of every type is rewritten; a null can be set."""
    values = CASES[name]
    rows = 24
    column = pa.concat_arrays([values] * (rows // len(values) + 1)).slice(0, rows)
    base = str(tmp_path / "base.lance")
    table = pa.table([pa.array(range(rows), pa.int64()), column], names=["id", "v"])
    made, refusal = outcome(lambda: lance.write_dataset(table, base, max_rows_per_file=14, enable_stable_row_ids=True))
    if refusal is not None or outcome(made.to_table)[1] is not None:
        pytest.skip("pylance has no tables with this type")
    lance.dataset(base).delete("id in (3, 11)")
    theirs = linked(base, tmp_path / "theirs.lance")
    mine = {mode: linked(base, tmp_path / f"{mode}.lance") for mode in WRITE_MODES[:2]}
    for updates, where in CARRYING:
        beyond = [mode for mode in mine if (name, mode, updates.get("v")) in BEYOND_THE_CODEC]
        before = told(theirs) if beyond else ""
        there, refusal = outcome(lance.dataset(theirs).update, updates, where=where)
        for mode, place in list(mine.items()):
            files = tree(place)
            here, mistake = outcome(update, ours.dataset(place), updates, where, mode)
            if mode in beyond and UNDER_TEST == "tablewright":
                assert isinstance(mistake, ours.errors.InvalidRequest)
                assert tree(place) == files
                assert_same_content(mine.pop(mode), before)
                continue
            assert (refusal is None) == (mistake is None), f"{updates}, {mode}: {mistake!r}; pylance: {refusal!r}"
            assert here == there
            assert refusal is None or tree(place) == files
    truth = told(theirs)
    for place in mine.values():
        assert_same_content(place, truth)  # rows that moved twice lie in the order of their ids here, as found there


# ------------------------------------------------------------------------------------------------ more than pylance

CASE_UPDATES: dict[str, tuple[dict[str, str], str, Any]] = {
    "case": (
        {"s": "case when id % 2 = 0 then 'even' when x is null then null else concat(s, '?') end"},
        "id < 20",
        lambda row: row.update(
            s="even" if row["id"] % 2 == 0 else None if row["x"] is None else (row["s"] or "") + "?"
        ),
    ),
    "case of a value": (
        {"CamelCase": "case `select` when 0 then 10 when 1 then 11 end"},
        "id < 20",
        lambda row: row.update(CamelCase={0: 10, 1: 11}.get(row["select"])),
    ),
    "interval": (
        {"ts": "ts + interval '1 day'"},
        "id > 40",
        lambda row: row.update(ts=row["ts"] + dt.timedelta(days=1)),
    ),
    "member": ({"st.a": "id + 1"}, "id % 5 = 0", lambda row: row["st"].update(a=row["id"] + 1)),
    "quoted member": (
        {"st.`B c`": "concat(st.`B c`, '!')"},
        "id % 5 = 0",
        lambda row: row["st"].update({"B c": row["st"]["B c"] + "!"}),
    ),
    "deep member": (
        {"st.inner.z": "st.inner.z * 2"},
        "st.inner.z > 2",
        lambda row: row["st"]["inner"].update(z=row["st"]["inner"]["z"] * 2),
    ),
    "two members": (
        {"st.a": "null", "st.inner.z": "cast(st.a as double)"},
        "id < 10",
        lambda row: row.update(
            st={**row["st"], "a": None, "inner": {"z": None if row["st"]["a"] is None else float(row["st"]["a"])}}
        ),
    ),
    "inner struct": ({"st.inner": "named_struct('z', 1.5)"}, "id < 10", lambda row: row["st"].update(inner={"z": 1.5})),
    "member and column": (
        {"st.a": "1", "x": "st.a"},
        "id < 10",
        lambda row: row.update(x=None if row["st"]["a"] is None else float(row["st"]["a"]), st={**row["st"], "a": 1}),
    ),
    "swap": (  # every expression sees the old row; in pylance it is a matter of luck
        {"x": "cast(must as double)", "must": "cast(`select` as int)", "select": "must % 7"},
        "id < 20",
        lambda row: row.update(x=float(row["must"]), must=row["select"], select=row["must"] % 7),
    ),
    "empty list": ({"l": "[]"}, "id < 10", lambda row: row.update(l=[])),
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A table with row addresses, and one with stable row ids."""
    folder = tmp_path_factory.mktemp("plain")
    places = [str(folder / f"{kind}.lance") for kind in ("addresses", "stable")]
    for stable, place in enumerate(places):
        lance.write_dataset(people(0, 48), place, max_rows_per_file=8, enable_stable_row_ids=bool(stable))
    return places


@only_ours
@pytest.mark.parametrize("name", CASE_UPDATES)
def test_what_pylance_refuses_and_is_plain_we_update(plain: list[str], tmp_path: Path, name: str) -> None:
    """In every mode; the two kinds of table take turns."""
    updates, where, change = CASE_UPDATES[name]
    refusing = lance.dataset(linked(plain[0], tmp_path / "theirs.lance"))
    assert name == "swap" or outcome(refusing.update, updates, where=where)[1] is not None
    touched = set(lance.dataset(plain[0]).to_table(columns=["id"], filter=where)["id"].to_pylist())
    model = lance.dataset(plain[0]).to_table().to_pylist()
    for row in model:
        if row["id"] in touched:
            change(row)
    for number, mode in enumerate(WRITE_MODES, list(CASE_UPDATES).index(name)):
        uri = linked(plain[number % 2], tmp_path / f"{mode}.lance")
        assert update(ours.dataset(uri), updates, where, mode) == {"num_rows_updated": len(touched)}
        assert _placeless(uri, "id") == model, mode
        assert_same_dataset(uri)
        lance.dataset(uri).update({"st": "st", "x": "x"}, where="id % 2 = 1")
        assert _placeless(uri, "id") == model, mode


@only_ours
@BOTH
def test_members_of_null_structs(tmp_path: Path, mode: str) -> None:
    """Setting a member of a struct that is null makes a struct with that member."""
    uri = str(tmp_path / "t.lance")
    kind = pa.struct([("a", pa.int64()), ("b", pa.string())])
    table = pa.table(
        {"id": [0, 1, 2, 3], "st": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": None}, None], kind)}
    )
    lance.write_dataset(table, uri)
    update(ours.dataset(uri), {"st.a": "7"}, "id < 3", mode)
    found = {row["id"]: row["st"] for row in lance.dataset(uri).to_table().to_pylist()}
    assert found == {0: {"a": 7, "b": "x"}, 1: {"a": 7, "b": None}, 2: {"a": 7, "b": None}, 3: None}
    assert_same_dataset(uri)


# ------------------------------------------------------------------------------------------------ what stands around

INDICES = [
    ("id", "BTREE", "id_btree"),
    ("x", "BTREE", "x_btree"),
    ("s", "BITMAP", "s_bitmap"),
    ("x", "BITMAP", "x_bitmap"),
    ("l", "LABEL_LIST", "l_labels"),
    ("with space", "INVERTED", "w_words"),
    ("with space", "NGRAM", "w_grams"),
    ("must", "ZONEMAP", "must_zones"),
    ("must", "BLOOMFILTER", "must_bloom"),
]
FILTERS = [
    "id = 9",
    "id > 30",
    "x = -1",
    "x = 2.25",
    "x is null",
    "x > 7",
    "s = 'it''s row 10'",
    "s = 'new'",
    "s is null",
    "array_has(l, 2)",
    "array_has(l, 77)",
    "contains(`with space`, 'ord 3')",
    "must = 27",
    "must > 100",
    "must = -5",
]


@pytest.fixture(scope="module", params=["addresses", "stable"])
def indexed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("indexed") / "base.lance")
    dataset = lance.write_dataset(
        people(0, 48), uri, max_rows_per_file=12, enable_stable_row_ids=request.param == "stable"
    )
    for column, kind, name in INDICES:
        dataset.create_scalar_index(column, kind, name=name)
    dataset.create_index("v", "IVF_FLAT", name="v_ivf", num_partitions=2)
    dataset.insert(people(48, 52))  # nobody indexed these
    return uri


COVERED = [
    ({"x": "-1"}, "id in (1, 9)"),
    ({"x": "-1", "s": "'new'"}, "id % 2 = 0 and id < 30"),
    ({"größe": "0"}, "id in (1, 9, 10)"),
    ({"größe": "0"}, "id in (1, 49)"),  # one of these rows is in no index
    ({"must": "-5", "l": "[77]"}, "id < 8"),
    ({"with space": "'Word 3'", "v": "[9.0, 9.0, 9.0, 9.0]"}, "id in (20, 30, 40)"),
    ({"id": "id + 1000"}, "id = 12"),
    ({"x": "x"}, "id = 1000"),
]
ON_INDEXED = [
    pytest.param(kind, updates, where, id=f"{kind}-{updates}-{where}")
    for stable, kind in enumerate(["addresses", "stable"])
    for number, (updates, where) in enumerate(COVERED)
    if deep(1, 2) > 1 or (number + number // 2 + stable) % 2 == 0
]
"""Each update on both kinds of table; in CI they take turns."""


@pytest.mark.parametrize(("indexed", "updates", "where"), ON_INDEXED, indirect=["indexed"])
def test_index_coverage(indexed: str, tmp_path: Path, updates: dict[str, str], where: str) -> None:
    theirs = linked(indexed, tmp_path / "theirs.lance")
    touched = {int(address) >> 32 for address in _addresses(indexed, where)}
    before = coverage(indexed)
    lance.dataset(theirs).update(updates, where=where)
    truth, near = told(theirs), _near(theirs)
    answers = assert_indices_answer_as_a_scan(theirs, FILTERS)
    for mode in WRITE_MODES:
        mine = linked(indexed, tmp_path / f"{mode}.lance")
        update(ours.dataset(mine), updates, where, mode)
        if mode == "rewrite_rows":
            assert coverage(mine) == coverage(theirs)
        elif mode == "rewrite_columns" and UNDER_TEST == "tablewright":
            columns = {name: column for column, _, name in INDICES} | {"v_ivf": "v"}
            expected = {
                name: [id for id in ids if columns[name] not in updates or id not in touched]
                for name, ids in before.items()
            }
            assert coverage(mine) == expected
        _same(mine, truth, mode)
        assert_indices_answer(mine, answers)
        assert _near(mine) == near, mode
        lance.dataset(mine).optimize.optimize_indices()
        assert_indices_answer(mine, answers)
        lance.dataset(mine).optimize.compact_files(target_rows_per_fragment=30)
        assert_indices_answer(mine, answers)


def _near(uri: str) -> list[int]:
    query = {"column": "v", "q": [9.0, 9.0, 9.0, 9.0], "k": 5, "nprobes": 2}
    return sorted(lance.dataset(uri).to_table(columns=["id"], nearest=query)["id"].to_pylist())


def _addresses(uri: str, where: str) -> list[int]:
    return lance.dataset(uri).to_table(columns=["_rowaddr"], filter=where)["_rowaddr"].to_pylist()


@pytest.mark.parametrize(("stable", "mode"), [(True, "rewrite_rows"), (False, "rewrite_columns")])
def test_a_hundred_and_twenty_fragments(tmp_path: Path, stable: bool, mode: str) -> None:
    base = str(tmp_path / "base.lance")
    table = people(0, 360).select(["id", "x", "s"])
    lance.write_dataset(table, base, max_rows_per_file=3, enable_stable_row_ids=stable)
    mine, theirs = twins(base, tmp_path)
    for updates, where in [({"x": "-id"}, "id % 3 = 1"), ({"s": "'n'"}, "id >= 30 and id < 330")]:
        assert update(ours.dataset(mine), updates, where, mode) == lance.dataset(theirs).update(updates, where=where)
    _same(mine, theirs, "auto" if stable else mode)  # by id here, by address there


@STABLE
@MODES
def test_empty_tables(tmp_path: Path, stable: bool, mode: str) -> None:
    base = str(tmp_path / "base.lance")
    lance.write_dataset(people(0, 0), base, enable_stable_row_ids=stable)
    mine, theirs = twins(base, tmp_path)
    assert update(ours.dataset(mine), {"x": "1"}, None, mode) == lance.dataset(theirs).update({"x": "1"})
    assert_same_state(mine, theirs)


@MODES
def test_pyarrow_expressions_say_where(tmp_path: Path, mode: str) -> None:
    base = str(tmp_path / "base.lance")
    lance.write_dataset(people(0, 40).select(["id", "x", "s"]), base, max_rows_per_file=7)
    for number, where in enumerate(
        [pc.field("id") == 12, (pc.field("x") > 5) & (pc.field("id") < 30), pc.field("s").is_null()]
    ):
        mine, theirs = twins(base, tmp_path, str(number))
        assert update(ours.dataset(mine), {"x": "0"}, where, mode) == lance.dataset(theirs).update(
            {"x": "0"}, where=where
        )
        _same(mine, theirs, mode)


@MODES
def test_the_arguments_of_pylance_are_taken(tmp_path: Path, mode: str) -> None:
    base = str(tmp_path / "base.lance")
    lance.write_dataset(people(0, 10), base)
    mine, theirs = twins(base, tmp_path)
    options = {"conflict_retries": 3, "retry_timeout": dt.timedelta(seconds=5)}
    assert update(ours.dataset(mine), {"x": "1"}, "id = 3", mode, **options) == lance.dataset(theirs).update(
        {"x": "1"}, "id = 3", **options
    )
    _same(mine, theirs, mode)


@MODES
def test_on_a_branch(tmp_path: Path, mode: str) -> None:
    base = str(tmp_path / "base.lance")
    lance.write_dataset(people(0, 20), base, max_rows_per_file=5).create_branch("side")
    mine, theirs = twins(base, tmp_path)
    for library, place in ((ours, mine), (lance, theirs)):
        side = library.dataset(place).checkout_version(("side", None))
        assert update(side, {"x": "-1"}, "id in (1, 2, 7) or id >= 15", mode) == {"num_rows_updated": 8}
    for reader in (ours, lance):
        sides = [
            reader.dataset(place).checkout_version(("side", None)).to_table().sort_by("id") for place in (mine, theirs)
        ]
        assert_same_rows(sides[0], sides[1])
        assert_same_rows(reader.dataset(mine).to_table(), people(0, 20))


@only_ours
@STABLE
def test_the_writer_chooses_per_fragment_by_bytes(tmp_path: Path, stable: bool) -> None:
    """Wide rows: few rows of a fragment move, many rows of another have their column rewritten; in one commit."""
    uri = str(tmp_path / "t.lance")
    vectors = np.random.default_rng(0).random((4000, 64), np.float32)
    table = pa.table(
        {
            "id": pa.array(range(4000), pa.int64()),
            "x": pa.array([i / 8 for i in range(4000)], pa.float64()),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 64),
        }
    )
    lance.write_dataset(table, uri, max_rows_per_file=1000, enable_stable_row_ids=stable)
    before = {name for name in tree(uri) if name.startswith("data/")}
    where = "id < 900 or id in (1500, 2500)"
    assert ours.dataset(uri).update({"x": "-1"}, where=where) == {"num_rows_updated": 902}
    found = lance.dataset(uri)
    fragments = {fragment.fragment_id: fragment for fragment in found.get_fragments()}
    assert [len(fragments[id].data_files()) for id in range(4)] == [2, 1, 1, 1]
    assert [fragments[id].num_deletions for id in range(4)] == [0, 1, 1, 0]
    assert sum(fragments[id].count_rows() for id in fragments if id > 3) == 2
    new = [name for name in tree(uri) if name.startswith("data/") and name not in before]
    assert sum(Path(uri, name).stat().st_size for name in new) < 1000 * 8 * 1.2 + 4000  # no vector was written twice
    model = pa.table({"id": table["id"], "x": [-1.0 if i < 900 or i in (1500, 2500) else i / 8 for i in range(4000)]})
    assert_same_rows(found.to_table(columns=["id", "x"]).sort_by("id"), model)
    assert_same_rows(found.to_table(columns=["v"], filter="id = 1500"), table.slice(1500, 1).select(["v"]))
    assert_same_dataset(uri)
    versions = found.to_table(columns=["id"], filter="_row_last_updated_at_version = 2")["id"].to_pylist()
    assert sorted(versions) == ([*range(900), 1500, 2500] if stable else [])
    assert lancedb_rows(uri).num_rows == 4000


# ------------------------------------------------------------------------------------------------ bad input

BAD: dict[str, tuple[Any, Any, str]] = {
    "unknown column": ({"nope": "1"}, None, "nope"),
    "one of several unknown": ({"x": "1", "nope": "1"}, None, "nope"),
    "unknown member": ({"st.nope": "1"}, None, "nope"),
    "no name": ({"": "1"}, None, ""),
    "row id": ({"_rowid": "1"}, None, "_rowid"),
    "row address": ({"_rowaddr": "1"}, None, "_rowaddr"),
    "row offset": ({"_rowoffset": "1"}, None, "_rowoffset"),
    "version of creation": ({"_row_created_at_version": "1"}, None, "_row_created_at_version"),
    "version of update": ({"_row_last_updated_at_version": "1"}, None, "_row_last_updated_at_version"),
    "no updates": ({}, None, "(?i)no updates"),
    "unknown column in an expression": ({"x": "nope + 1"}, None, "nope"),
    "unknown function": ({"x": "nofunc(id)"}, None, "nofunc"),
    "no expression": ({"x": ""}, None, ""),
    "half an expression": ({"x": "1 +"}, None, ""),
    "aggregate": ({"x": "sum(id)"}, None, ""),
    "window": ({"x": "row_number() over ()"}, None, ""),
    "subquery": ({"x": "(select 1)"}, None, ""),
    "text for a number": ({"x": "'abc'"}, None, "abc"),
    "texts for numbers": ({"x": "s"}, None, "(?i)cast"),
    "number for a struct": ({"st": "5"}, None, "st"),
    "list for a number": ({"x": "[1, 2]"}, None, "x"),
    "struct for a number": ({"x": "st"}, None, "x"),
    "vector of another length": ({"v": "[1.0, 2.0]"}, None, ""),
    "too large": ({"select": "100000"}, None, "100000"),
    "too large in some rows": ({"select": "id * 10000"}, None, "(?i)cast"),
    "null into a column that takes none": ({"must": "null"}, "id = 3", "must"),
    "some nulls into it": ({"must": "CamelCase"}, None, "must"),
    "null by nullif": ({"must": "nullif(id, 33)"}, None, "must"),
    "division by zero": ({"x": "1 / (id - 33)"}, None, "(?i)divi"),
    "number as a predicate": ({"x": "1"}, "id", "(?i)boolean"),
    "text as a predicate": ({"x": "1"}, "s", "(?i)boolean"),
    "null as a predicate": ({"x": "1"}, "null", "(?i)boolean"),
    "unknown column in the predicate": ({"x": "1"}, "nope = 1", "nope"),
    "no predicate": ({"x": "1"}, "", ""),
    "half a predicate": ({"x": "1"}, "id =", ""),
    "division by zero in the predicate": ({"x": "1"}, "id % 0 = 1", "(?i)divi"),
    "literal that does not fit in the predicate": ({"x": "1"}, "id = 'abc'", "abc"),
}

# Cells where we differ on purpose; the reason stands beside each.
STRICTER = {
    "two expressions": ({"x": "1, 2"}, None, ""),  # pylance takes the first and forgets the second
    "a column and its member": ({"st": "null", "st.a": "1"}, None, "st"),  # which of both would win?
    "a member twice": ({"st.a": "1", "`st`.a": "2"}, None, "st"),
}


@pytest.mark.parametrize("name", [*BAD, *(STRICTER if UNDER_TEST == "tablewright" else ())])
def test_bad_input_changes_nothing(plain: list[str], tmp_path: Path, name: str) -> None:
    updates, where, words = {**BAD, **STRICTER}[name]
    expected = ours.errors.InvalidRequest if UNDER_TEST == "tablewright" else Exception
    for number, base in enumerate(plain):
        uri, before = linked(base, tmp_path / f"{number}.lance"), tree(base)
        for mode in WRITE_MODES:
            dataset = ours.dataset(uri)
            with pytest.raises(expected, match=words if UNDER_TEST == "tablewright" and words else None):
                update(dataset, updates, where, mode)
            if UNDER_TEST == "tablewright":
                assert tree(uri) == before, mode
            assert dataset.version == 1
        if name in BAD:
            assert outcome(lance.dataset(uri).update, updates, where=where)[1] is not None


@pytest.mark.parametrize(
    "arguments",
    [
        (None,),
        ("x = 1",),
        ([("x", "1")],),
        ({"x": 1},),
        ({"x": None},),
        ({5: "1"},),
        ({"x": "1"}, 5),
        ({"x": "1"}, True),
    ],
    ids=str,
)
def test_arguments_of_the_wrong_type(tmp_path: Path, arguments: tuple[Any, ...]) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(people(0, 20), uri)
    before = tree(uri)
    for library in (ours, lance):
        with pytest.raises(TypeError):
            library.dataset(uri).update(*arguments)
    assert tree(uri) == before


@only_ours
@pytest.mark.parametrize(
    "option",
    [
        {"write_mode": "rows"},
        {"write_mode": 3},
        {"conflict_retries": -1},
        {"conflict_retries": "3"},
        {"retry_timeout": 5},
    ],
    ids=str,
)
def test_options_of_the_wrong_kind(tmp_path: Path, option: dict[str, Any]) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(people(0, 20), uri)
    before = tree(uri)
    with pytest.raises(ours.errors.InvalidRequest):
        ours.dataset(uri).update({"x": "1"}, "id = 1", **option)
    assert tree(uri) == before


def test_names_of_columns(tmp_path: Path) -> None:
    """The column of exactly that spelling; else, where pylance gives up, the one that differs only in case."""
    base = str(tmp_path / "base.lance")
    lance.write_dataset(pa.table({"k": [0, 1], "a": [1, 2], "A": [10, 20], "Other": [5, 6]}), base)
    mine, theirs = twins(base, tmp_path)
    for library, place in ((ours, mine), (lance, theirs)):
        library.dataset(place).update({"A": "a + 1"}, where="A = 20")
        library.dataset(place).update({"a": "OTHER + A"}, where="other = 5")
    assert_same_content(mine, theirs, "k")
    lance.dataset(theirs).update({"Other": "7"}, where="k = 1")
    ours.dataset(mine).update({"other" if UNDER_TEST == "tablewright" else "Other": "7"}, where="k = 1")
    assert_same_content(mine, theirs, "k")
    if UNDER_TEST == "tablewright":
        before = tree(mine)
        with pytest.raises(ours.errors.InvalidRequest, match=r"(?i)other"):
            ours.dataset(mine).update({"Other": "1", "other": "2"})
        assert tree(mine) == before

"""Columns: added, altered, dropped, merged. Ours on one copy of a table, pylance's on another, the same table after.

Then each library reads the other's table and goes on there.
"""

from __future__ import annotations

import decimal
import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.depth import deep

from .referee import UNDER_TEST, assert_same_dataset, assert_same_rows, lance, ours, tree
from .twins import (
    SHAPES,
    assert_indices_answer_as_a_scan,
    assert_same_content,
    assert_same_state,
    coverage,
    go_on,
    linked,
    look,
    outcome,
    people,
    shape_of,
    some,
    told,
    twins,
)

only_ours = pytest.mark.skipif(UNDER_TEST != "tablewright", reason="pylance has no such thing")
STABLE = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])

Change = Callable[[Any, Any], Any]
"""From a library and its dataset to whatever the call returns."""


def _udf(library: Any, **options: Any) -> Any:
    @library.batch_udf(output_schema=pa.schema([("twice", pa.int64()), ("word", pa.string())]), **options)
    def made(batch: pa.RecordBatch) -> pa.RecordBatch:
        ids = batch["id"].to_pylist()
        return pa.record_batch({"twice": [2 * i for i in ids], "word": [None if i % 2 else f"w{i}" for i in ids]})

    return made


def _values(dataset: Any, **columns: pa.DataType) -> pa.Table:
    count = dataset.count_rows()
    return pa.table({name: pa.array([i % 9 for i in range(count)]).cast(kind) for name, kind in columns.items()})


INNER = pa.struct([pa.field("p", pa.int32()), pa.field("q", pa.list_(pa.string()))])

ADD: dict[str, Change] = {
    "sql": lambda lib, ds: ds.add_columns({"y": "x * 2", "z": "id + 1"}),
    "sql of literals": lambda lib, ds: ds.add_columns({"five": "5", "text": "'t'", "nothing": "cast(null as double)"}),
    "sql of a null": lambda lib, ds: ds.add_columns({"nothing": "null"}),
    "sql of texts": lambda lib, ds: ds.add_columns({"up": "upper(s)", "len": "length(`with space`)"}),
    "sql of members": lambda lib, ds: ds.add_columns({"a": "st.a + 1", "z": "st.inner.z", "inner": "st.inner"}),
    "sql of copies": lambda lib, ds: ds.add_columns({"v2": "v", "l2": "l", "d2": "d", "ts2": "ts", "bin2": "bin"}),
    "sql of a struct": lambda lib, ds: ds.add_columns({"made": "named_struct('i', id, 't', s)"}),
    "sql of a list": lambda lib, ds: ds.add_columns({"made": "make_array(id, id + 1)"}),
    "sql by small batches": lambda lib, ds: ds.add_columns({"y": "id"}, batch_size=3),
    "sql beside case": lambda lib, ds: ds.add_columns({"ID": "id", "größer": "`größe` + 1", "sp ace": "1 + id"}),
    "field": lambda lib, ds: ds.add_columns(pa.field("y", pa.int32())),
    "fields": lambda lib, ds: ds.add_columns([pa.field("y", pa.int32(), metadata={"k": "v"}), pa.field("z", INNER)]),
    "schema": lambda lib, ds: ds.add_columns(pa.schema([("y", pa.list_(pa.float32(), 3)), ("z", pa.timestamp("ns"))])),
    "schema of a dictionary": lambda lib, ds: ds.add_columns(pa.schema([("y", pa.dictionary(pa.int8(), pa.string()))])),
    "schema of a member": lambda lib, ds: ds.add_columns(
        pa.schema([pa.field("st", pa.struct([pa.field("new", pa.int32())]))])
    ),
    "reader": lambda lib, ds: ds.add_columns(_values(ds, y=pa.int64(), z=pa.float32()).to_reader(max_chunksize=5)),
    "table": lambda lib, ds: ds.add_columns(_values(ds, y=pa.string())),
    "iterator": lambda lib, ds: ds.add_columns(
        iter(_values(ds, y=pa.int16()).to_batches(max_chunksize=3)), reader_schema=pa.schema([("y", pa.int16())])
    ),
    "udf": lambda lib, ds: ds.add_columns(_udf(lib)),
    "udf of some columns": lambda lib, ds: ds.add_columns(_udf(lib), read_columns=["s", "id"]),
    "udf by small batches": lambda lib, ds: ds.add_columns(_udf(lib), batch_size=3),
    "function": lambda lib, ds: ds.add_columns(
        lambda batch: pa.record_batch({"y": pa.array([i * 3 for i in batch["id"].to_pylist()], pa.int64())})
    ),
    "function that returns pandas": lambda lib, ds: ds.add_columns(
        lib.batch_udf(output_schema=pa.schema([("y", pa.int64())]))(
            lambda batch: pa.table({"y": batch["id"]}).to_pandas()
        )
    ),
    "merge": lambda lib, ds: ds.merge(
        pa.table({"id": pa.array([0, 2, 4, 4, 999], pa.int64()), "y": [10, 12, 14, 15, 19], "z": list("abcde")}), "id"
    ),
    "merge on another name": lambda lib, ds: ds.merge(
        pa.table({"k": ["it's row 5", "it's row 11", None], "y": [5, 11, -1]}), "s", right_on="k"
    ),
    "merge on row ids": lambda lib, ds: ds.merge(
        pa.table({"_rowid": pa.array([0, 3, 4294967297], pa.uint64()), "y": [5, 6, 7]}), "_rowid"
    ),
}

ALTER: dict[str, Change] = {
    "rename": lambda lib, ds: ds.alter_columns({"path": "x", "name": "xx"}),
    "rename to itself": lambda lib, ds: ds.alter_columns({"path": "x", "name": "x"}),
    "rename with blanks": lambda lib, ds: ds.alter_columns({"path": "with space", "name": "other space ü"}),
    "rename to other case": lambda lib, ds: ds.alter_columns({"path": "x", "name": "ID"}),
    "swap of names": lambda lib, ds: ds.alter_columns({"path": "x", "name": "s"}, {"path": "s", "name": "x"}),
    "rename of a member": lambda lib, ds: ds.alter_columns({"path": "st.a", "name": "aa"}),
    "rename deep below": lambda lib, ds: ds.alter_columns({"path": "st.inner.z", "name": "zz"}),
    "nullable": lambda lib, ds: ds.alter_columns({"path": "must", "nullable": True}),
    "not nullable": lambda lib, ds: ds.alter_columns({"path": "with space", "nullable": False}),
    "nullable as it is": lambda lib, ds: ds.alter_columns(
        {"path": "x", "nullable": True}, {"path": "must", "nullable": False}
    ),
    "member not nullable": lambda lib, ds: ds.alter_columns({"path": "st.B c", "nullable": False}),
    "rename and nullability": lambda lib, ds: ds.alter_columns({"path": "must", "name": "may", "nullable": True}),
    "int to long": lambda lib, ds: ds.alter_columns({"path": "CamelCase", "data_type": pa.int64()}),
    "int to short": lambda lib, ds: ds.alter_columns({"path": "CamelCase", "data_type": pa.int8()}),
    "int to unsigned": lambda lib, ds: ds.alter_columns({"path": "id", "data_type": pa.uint32()}),
    "double to float": lambda lib, ds: ds.alter_columns({"path": "x", "data_type": pa.float32()}),
    "float to double": lambda lib, ds: ds.alter_columns({"path": "größe", "data_type": pa.float64()}),
    "text to large": lambda lib, ds: ds.alter_columns({"path": "s", "data_type": pa.large_string()}),
    "text to dictionary": lambda lib, ds: ds.alter_columns(
        {"path": "with space", "data_type": pa.dictionary(pa.int32(), pa.string())}
    ),
    "dictionary to text": lambda lib, ds: ds.alter_columns({"path": "d", "data_type": pa.string()}),
    "binary to large": lambda lib, ds: ds.alter_columns({"path": "bin", "data_type": pa.large_binary()}),
    "timestamp to nanoseconds": lambda lib, ds: ds.alter_columns({"path": "ts", "data_type": pa.timestamp("ns")}),
    "timestamp to zone": lambda lib, ds: ds.alter_columns({"path": "ts", "data_type": pa.timestamp("us", "UTC")}),
    "timestamp to date": lambda lib, ds: ds.alter_columns({"path": "ts", "data_type": pa.date32()}),
    "date to timestamp": lambda lib, ds: ds.alter_columns({"path": "day", "data_type": pa.timestamp("us")}),
    "decimal to wider": lambda lib, ds: ds.alter_columns({"path": "dec", "data_type": pa.decimal128(20, 4)}),
    "decimal to 256": lambda lib, ds: ds.alter_columns({"path": "dec", "data_type": pa.decimal256(40, 2)}),
    "decimal to narrower": lambda lib, ds: ds.alter_columns({"path": "dec", "data_type": pa.decimal128(6, 1)}),
    "list of other items": lambda lib, ds: ds.alter_columns({"path": "l", "data_type": pa.list_(pa.int32())}),
    "large list": lambda lib, ds: ds.alter_columns({"path": "l", "data_type": pa.large_list(pa.int64())}),
    "vector of doubles": lambda lib, ds: ds.alter_columns({"path": "v", "data_type": pa.list_(pa.float64(), 4)}),
    "vector to list": lambda lib, ds: ds.alter_columns({"path": "v", "data_type": pa.list_(pa.float32())}),
    "cast and rename": lambda lib, ds: ds.alter_columns(
        {"path": "must", "data_type": pa.int64(), "name": "may", "nullable": True}
    ),
    "two casts": lambda lib, ds: ds.alter_columns(
        {"path": "must", "data_type": pa.int64()}, {"path": "x", "data_type": pa.float32()}, {"path": "s", "name": "t"}
    ),
}

DROP: dict[str, Change] = {
    "one": lambda lib, ds: ds.drop_columns(["x"]),
    "several": lambda lib, ds: ds.drop_columns(["with space", "größe", "st", "v"]),
    "all but one": lambda lib, ds: ds.drop_columns([name for name in ds.schema.names if name != "id"]),
    "member": lambda lib, ds: ds.drop_columns(["st.a"]),
    "last member of a member": lambda lib, ds: ds.drop_columns(["st.inner.z"]),
    "all members": lambda lib, ds: ds.drop_columns(["st.a", "st.`B c`", "st.inner"]),
    "quoted": lambda lib, ds: ds.drop_columns(["`x`"]),
    "twice": lambda lib, ds: ds.drop_columns(["x", "x"]),
    "column and member": lambda lib, ds: ds.drop_columns(["st", "st.a"]),
    "the newest": lambda lib, ds: ds.drop_columns(ds.schema.names[-2:]),
}

CHANGES = {
    **{f"add {name}": change for name, change in ADD.items()},
    **{f"alter {name}": change for name, change in ALTER.items()},
    **{f"drop {name}": change for name, change in DROP.items()},
}

GO_ON: list[Callable[[Any], Any]] = [
    lambda ds: ds.delete("id % 4 = 3"),
    lambda ds: ds.update({"must": "7"}, where="id % 4 = 2")["num_rows_updated"] if "must" in ds.schema.names else None,
    lambda ds: ds.add_columns({"next": "id * 2"}),
    lambda ds: ds.alter_columns({"path": "id", "data_type": pa.int32(), "name": "key"}),
]


@pytest.fixture(scope="module", params=SHAPES)
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(SHAPES[request.param](tmp_path_factory.mktemp(request.param)).uri)


def _key(uri: str) -> str:
    return next(name for name in ("id", "key", "ID", "s") if name in lance.dataset(uri).schema.names)


def test_every_change_makes_pylances_table(base: str, tmp_path: Path) -> None:
    for number, name in enumerate(some(list(CHANGES), base, 6)):
        mine, theirs = twins(base, tmp_path, str(number))
        here, there = ours.dataset(mine), lance.dataset(theirs)
        result, refusal = outcome(CHANGES[name], lance, there)
        if "Output schema of function" in str(refusal) and UNDER_TEST == "tablewright":
            assert outcome(CHANGES[name], ours, here)[1] is None, f"{name}: it fits, and is cast"
            continue
        if refusal is not None:  # nulls, codec of an old file version…
            assert isinstance(outcome(CHANGES[name], ours, here)[1], Exception), f"{name}: pylance says {refusal}"
            continue
        assert CHANGES[name](ours, here) == result
        assert here.version == there.version, name
        kinds = [type(lance.dataset(place).read_transaction(there.version).operation) for place in (mine, theirs)]
        assert kinds[0] is kinds[1], name
        keeps = [
            lance.dataset(place).read_transaction(there.version).operation.preserves_nullability
            for place in (mine, theirs)
        ]
        assert keeps[0] == keeps[1], name
        try:
            assert_same_state(mine, theirs)
        except AssertionError as difference:
            raise AssertionError(f"{name}: {difference}") from difference


def test_each_library_goes_on_with_the_others_table(base: str, tmp_path: Path) -> None:
    for number, name in enumerate(
        [
            "add sql",
            "add schema",
            "add udf",
            "alter rename and nullability",
            "alter two casts",
            "drop several",
            "drop member",
        ]
    ):
        if (list(SHAPES).index(shape_of(base)) + number) % (4 // deep(1, 2)) == 1:  # shapes and changes take turns
            mine, theirs = twins(base, tmp_path, str(number))
            CHANGES[name](ours, ours.dataset(mine))
            CHANGES[name](lance, lance.dataset(theirs))
            go_on([mine], theirs, GO_ON, "key")


@STABLE
def test_change_after_change(tmp_path: Path, stable: bool) -> None:
    """Ids are given, freed and given again as pylance does it; files without live columns go."""
    base = str(tmp_path / "base.lance")
    lance.write_dataset(people(0, 24), base, max_rows_per_file=7, enable_stable_row_ids=stable)
    mine, theirs = twins(base, tmp_path)
    steps: list[Callable[[Any], Any]] = [
        lambda ds: ds.add_columns({"y": "id", "z": "id * 2"}),
        lambda ds: ds.drop_columns(["y"]),
        lambda ds: ds.add_columns({"y": "id + 1"}),
        lambda ds: ds.drop_columns(["y", "z"]),
        lambda ds: ds.add_columns(pa.schema([("a", pa.int32()), ("b", pa.string())])),
        lambda ds: ds.update({"a": "id", "b": "s"}, where="id % 2 = 0"),
        lambda ds: ds.delete("id % 5 = 0"),
        lambda ds: ds.alter_columns({"path": "a", "data_type": pa.int64(), "name": "aa"}),
        lambda ds: ds.insert(people(100, 103)),
        lambda ds: ds.drop_columns(["b", "st.a"]),
        lambda ds: ds.add_columns({"after": "aa + 1"}),
        lambda ds: ds.alter_columns({"path": "st.inner", "name": "outer"}),
    ]
    for step in steps:
        here, there = ours.dataset(mine), lance.dataset(theirs)
        assert step(here) == step(there)
        found, truth = look(mine), told(theirs)
        assert_same_content(found, truth)
        assert found.state["max_field_id"] == truth.state["max_field_id"]


@STABLE
def test_indices_stay_where_their_column_stays(tmp_path: Path, stable: bool) -> None:
    base = str(tmp_path / "base.lance")
    dataset = lance.write_dataset(people(0, 40), base, max_rows_per_file=8, enable_stable_row_ids=stable)
    for column, kind in [("id", "BTREE"), ("s", "BITMAP"), ("x", "ZONEMAP"), ("l", "LABEL_LIST")]:
        dataset.create_scalar_index(column, kind)
    filters = ["id = 9", "s = 'it''s row 10'", "array_has(l, 2)"]
    for number, (name, change) in enumerate(
        {
            "add": lambda ds: ds.add_columns({"y": "id"}),
            "rename": lambda ds: ds.alter_columns({"path": "x", "name": "xx"}),
            "drop": lambda ds: ds.drop_columns(["x"]),
            "cast of another": lambda ds: ds.alter_columns({"path": "must", "data_type": pa.int64()}),
        }.items()
    ):
        mine, theirs = twins(base, tmp_path, str(number))
        change(ours.dataset(mine)), change(lance.dataset(theirs))
        assert coverage(mine) == coverage(theirs), name
        assert_same_state(mine, theirs)
        assert_indices_answer_as_a_scan(mine, filters)
    place = linked(base, tmp_path / "cast.lance")
    before = tree(place)
    for library in (ours, lance):
        with pytest.raises(OSError, match="index"):
            library.dataset(place).alter_columns({"path": "x", "data_type": pa.float32()})
    assert tree(place) == before


def test_a_hundred_and_twenty_fragments(tmp_path: Path) -> None:
    base = str(tmp_path / "base.lance")
    table = people(0, 360).select(["id", "x", "s", "must"])
    lance.write_dataset(table, base, max_rows_per_file=3, enable_stable_row_ids=True)
    for number, name in enumerate(["add sql", "add reader", "alter two casts"]):
        mine, theirs = twins(base, tmp_path, str(number))
        CHANGES[name](ours, ours.dataset(mine))
        CHANGES[name](lance, lance.dataset(theirs))
        assert_same_state(mine, told(theirs))


@STABLE
def test_empty_tables(tmp_path: Path, stable: bool) -> None:
    base = str(tmp_path / "base.lance")
    lance.write_dataset(people(0, 0), base, enable_stable_row_ids=stable)
    for number, name in enumerate(["add sql", "add schema", "alter rename", "alter int to long", "drop one"]):
        mine, theirs = twins(base, tmp_path, str(number))
        CHANGES[name](ours, ours.dataset(mine))
        CHANGES[name](lance, lance.dataset(theirs))
        assert_same_state(mine, theirs)


def test_functions_see_live_rows_only(tmp_path: Path) -> None:
    base = str(tmp_path / "base.lance")
    lance.write_dataset(people(0, 20), base, max_rows_per_file=8).delete("id in (0, 3, 9)")
    seen: dict[str, list[Any]] = {}
    for library, place in zip((ours, lance), twins(base, tmp_path), strict=True):
        calls: list[Any] = []

        def look(batch: pa.RecordBatch, calls: list[Any] = calls) -> pa.RecordBatch:
            calls.append((batch.schema.names, batch["id"].to_pylist()))
            return pa.record_batch({"y": batch["id"]})

        function = library.batch_udf(output_schema=pa.schema([("y", pa.int64())]))(look)
        library.dataset(place).add_columns(function, read_columns=["x", "id"], batch_size=4)
        seen[place] = calls
    first, second = seen.values()
    assert sorted(id for _, ids in first for id in ids) == sorted(id for _, ids in second for id in ids)
    assert {tuple(names) for names, _ in first} == {tuple(names) for names, _ in second} == {("x", "id")}
    assert max(len(ids) for _, ids in first) <= 4


@pytest.mark.parametrize("fails", [1, 2, 4])
def test_checkpoints_save_what_is_done(tmp_path: Path, fails: int) -> None:
    """A run that died goes on where it was, with the same file; then the file goes."""
    base = str(tmp_path / "base.lance")
    lance.write_dataset(people(0, 20), base, max_rows_per_file=8)
    mine, theirs = twins(base, tmp_path)
    for library, place in ((ours, mine), (lance, theirs)):
        file = tmp_path / f"{library.__name__}.sqlite"
        calls: list[int] = []

        def made(batch: pa.RecordBatch, calls: list[int] = calls) -> pa.RecordBatch:
            calls.append(batch.num_rows)
            if len(calls) == fails:
                raise RuntimeError("stop here")
            return pa.record_batch({"y": batch["id"]})

        def function(library: Any = library, file: Path = file, made: Any = made) -> Any:
            return library.batch_udf(output_schema=pa.schema([("y", pa.int64())]), checkpoint_file=str(file))(made)

        before = tree(place)
        with pytest.raises(Exception, match="stop here"):
            library.dataset(place).add_columns(function(), read_columns=["id"], batch_size=4)
        left = {name for name in tree(place) if name not in before}
        assert all(name.startswith("data/") for name in left), "only files of finished fragments may stay"
        assert len(left) <= (fails - 1) // 2 or library is lance
        assert file.exists()
        done = len(calls)
        library.dataset(place).add_columns(function(), read_columns=["id"], batch_size=4)
        assert sum(calls) <= 20 + 4
        assert len(calls) - done <= 5 - (fails - 1) + (1 if library is lance else 0)
        assert not file.exists()
    assert_same_state(mine, theirs)
    if UNDER_TEST == "tablewright":  # every file that was written is part of the table
        used = {file.path for fragment in lance.dataset(mine).get_fragments() for file in fragment.data_files()}
        assert {path.name for path in Path(mine, "data").iterdir()} == used
    assert lance.dataset(mine).to_table(columns=["y"])["y"].to_pylist() == list(range(20))


# ------------------------------------------------------------------------------------------------ fragments


@STABLE
@pytest.mark.parametrize("writer", [ours, lance], ids=["w-ours", "w-pylance"])
def test_columns_of_fragments_travel_as_json(tmp_path: Path, stable: bool, writer: Any) -> None:
    """One library writes the column files, the other commits them: what distributed jobs do."""
    committer = lance if writer is ours else ours
    base = str(tmp_path / "base.lance")
    table = people(0, 24).drop_columns(["d"])  # a dictionary's values don't travel in an Arrow schema
    lance.write_dataset(table, base, max_rows_per_file=8, enable_stable_row_ids=stable).delete("id in (3, 9)")
    place = linked(base, tmp_path / "t.lance")
    dataset = writer.dataset(place)
    ways: list[Callable[[Any], Any]] = [
        lambda fragment: fragment.merge_columns({"y": "id * 2", "w": "upper(s)"}),
        lambda fragment: fragment.merge_columns(
            lambda batch: pa.record_batch(
                {
                    "y": pa.array([2 * i for i in batch["id"].to_pylist()], pa.int64()),
                    "w": pa.array([text and text.upper() for text in batch["s"].to_pylist()]),
                }
            ),
            columns=["s", "id"],
        ),
        lambda fragment: fragment.merge(
            pa.table(
                {
                    "k": pa.array(range(24), pa.int64()),
                    "y": pa.array([2 * i for i in range(24)], pa.int64()),
                    "w": [text and text.upper() for text in people(0, 24)["s"].to_pylist()],
                }
            ),
            "id",
            right_on="k",
        ),
    ]
    made = [way(dataset.get_fragment(id)) for id, way in enumerate(ways)]
    assert dataset.version == 2
    new = [committer.fragment.FragmentMetadata.from_json(_json(metadata)) for metadata, _ in made]
    assert [[len(file.fields) for file in metadata.files] for metadata in new] == [[18, 2]] * 3
    schemas = [schema.to_pyarrow() for _, schema in made]
    assert schemas[0].names == schemas[1].names == schemas[2].names == [*dataset.schema.names, "y", "w"]
    schema = made[0][1] if committer is writer else _lance_schema(committer, schemas[0])
    committer.LanceDataset.commit(place, committer.LanceOperation.Merge(new, schema), read_version=2)
    other = linked(base, tmp_path / "plain.lance")
    lance.dataset(other).add_columns({"y": "id * 2", "w": "upper(s)"})
    assert_same_rows(lance.dataset(place).to_table(), lance.dataset(other).to_table())
    assert_same_dataset(place)


def _json(metadata: Any) -> str:
    return json.dumps(metadata.to_json())


def _lance_schema(library: Any, schema: pa.Schema) -> Any:
    return importlib.import_module(f"{library.__name__}.schema").LanceSchema.from_pyarrow(schema)


@STABLE
@pytest.mark.parametrize("with_offsets", [False, True])
def test_update_columns_of_a_fragment(tmp_path: Path, stable: bool, with_offsets: bool) -> None:
    base = str(tmp_path / "base.lance")
    lance.write_dataset(people(0, 24), base, max_rows_per_file=8, enable_stable_row_ids=stable).delete("id in (3, 9)")
    sources: list[tuple[pa.Table, dict[str, Any]]] = [
        (pa.table({"id": pa.array([8, 9, 15, 77], pa.int64()), "x": [-1.0, -2.0, None, -4.0]}), {"left_on": "id"}),
        (
            pa.table({"k": pa.array([8, 8], pa.int64()), "x": [1.0, 2.0], "s": ["first", "last"]}),
            {"left_on": "id", "right_on": "k"},
        ),
        (
            pa.table(
                {"_rowid": pa.array([4294967297 if not stable else 10], pa.uint64()), "must": pa.array([5], pa.int32())}
            ),
            {},
        ),
        (pa.table({"id": pa.array([9], pa.int64()), "x": [-1.0]}), {"left_on": "id"}),  # that row is gone
    ]
    for number, (source, options) in enumerate(sources):
        mine, theirs = twins(base, tmp_path, str(number))
        results = []
        for library, place in ((ours, mine), (lance, theirs)):
            made = library.dataset(place).get_fragment(1).update_columns(source, with_offsets=with_offsets, **options)
            fragment, fields = made[:2]
            rest = {"updated_fragment_offsets": {1: made[2]}} if with_offsets else {}
            operation = library.LanceOperation.Update(
                updated_fragments=[fragment], fields_modified=list(fields), update_mode="rewrite_columns", **rest
            )
            library.LanceDataset.commit(place, operation, read_version=2)
            results.append((sorted(fields), made[2:]))
        assert results[0] == results[1]
        assert_same_state(mine, theirs)


# ------------------------------------------------------------------------------------------------ bad input


def _short(ds: Any) -> Any:
    return ds.add_columns(pa.table({"y": range(ds.count_rows() - 1)}))


def _raises(batch: pa.RecordBatch) -> Any:
    raise KeyError("boom")


BAD: dict[str, tuple[Callable[[Any], Any], type[BaseException], str]] = {
    "add: column is there": (lambda ds: ds.add_columns({"x": "id"}), OSError, "x"),
    "add: column is there with this type": (lambda ds: ds.add_columns({"x": "x"}), OSError, "x"),
    "add: field is there": (lambda ds: ds.add_columns(pa.field("x", pa.int32())), OSError, "x"),
    "add: dotted name": (lambda ds: ds.add_columns({"a.b": "id"}), OSError, r"a\.b"),
    "add: no name": (lambda ds: ds.add_columns({"": "id"}), OSError, ""),
    "add: unknown column": (lambda ds: ds.add_columns({"y": "nope + 1"}), OSError, "nope"),
    "add: new column in another": (lambda ds: ds.add_columns({"y": "id", "z": "y + 1"}), OSError, "y"),
    "add: half an expression": (lambda ds: ds.add_columns({"y": "id +"}), OSError, ""),
    "add: aggregate": (lambda ds: ds.add_columns({"y": "sum(id)"}), OSError, ""),
    "add: division by zero": (lambda ds: ds.add_columns({"y": "1 / (id - 13)"}), Exception, "(?i)divi"),
    "add: cast that fails": (lambda ds: ds.add_columns({"y": "cast(s as int)"}), Exception, "(?i)cast"),
    "add: nulls into a column that takes none": (
        lambda ds: ds.add_columns(pa.field("y", pa.int32(), nullable=False)),
        OSError,
        "y",
    ),
    "add: too few rows": (_short, OSError, "Stream ended before producing values for all rows in dataset"),
    "add: too many rows": (
        lambda ds: ds.add_columns(pa.table({"y": range(ds.count_rows() + 1)})),
        OSError,
        "Stream produced more values than expected for dataset",
    ),
    "add: rows for a column that is there": (lambda ds: ds.add_columns(pa.table({"x": range(20)})), OSError, "x"),
    "add: function raises": (lambda ds: ds.add_columns(_raises), Exception, "boom"),
    "add: wrong length": (
        lambda ds: ds.add_columns(
            lambda batch: pa.record_batch({"y": [1]}) if batch.num_rows > 1 else batch.select([0])
        ),
        Exception,
        "",
    ),
    "add: function for unknown columns": (
        lambda ds: ds.add_columns(lambda batch: batch, read_columns=["nope"]),
        Exception,
        "nope",
    ),
    "alter: unknown column": (
        lambda ds: ds.alter_columns({"path": "q", "name": "y"}),
        OSError,
        'Column "q" does not exist',
    ),
    "alter: system column": (lambda ds: ds.alter_columns({"path": "_rowid", "name": "y"}), OSError, "_rowid"),
    "alter: name is taken": (lambda ds: ds.alter_columns({"path": "x", "name": "s"}), OSError, "(?i)duplicate.*s|s"),
    "alter: dotted name": (lambda ds: ds.alter_columns({"path": "x", "name": "a.b"}), OSError, r"a\.b"),
    "alter: nothing": (
        lambda ds: ds.alter_columns({"path": "x"}),
        ValueError,
        "At least one of name, nullable, or data_type",
    ),
    "alter: no path": (lambda ds: ds.alter_columns({"name": "x"}), ValueError, "path"),
    "alter: unknown key": (
        lambda ds: ds.alter_columns({"path": "x", "type": pa.int32()}),
        ValueError,
        "Unknown key: type",
    ),
    "alter: nulls are there": (lambda ds: ds.alter_columns({"path": "x", "nullable": False}), OSError, "(?i)null"),
    "alter: nulls in a member": (lambda ds: ds.alter_columns({"path": "st.a", "nullable": False}), OSError, "(?i)null"),
    "alter: number to text": (
        lambda ds: ds.alter_columns({"path": "CamelCase", "data_type": pa.string()}),
        OSError,
        'Cannot cast column "CamelCase" from Int32 to Utf8',
    ),
    "alter: text to number": (
        lambda ds: ds.alter_columns({"path": "s", "data_type": pa.int32()}),
        OSError,
        'Cannot cast column "s"',
    ),
    "alter: number to float": (
        lambda ds: ds.alter_columns({"path": "id", "data_type": pa.float64()}),
        OSError,
        "Cannot cast",
    ),
    "alter: too small": (
        lambda ds: ds.alter_columns({"path": "big", "data_type": pa.int8()}),
        OSError,
        "(?i)cast value",
    ),
    "alter: struct": (lambda ds: ds.alter_columns({"path": "st", "data_type": pa.string()}), OSError, "Cannot cast"),
    "alter: another length": (
        lambda ds: ds.alter_columns({"path": "v", "data_type": pa.list_(pa.float32(), 3)}),
        OSError,
        "Cannot cast",
    ),
    "drop: unknown column": (lambda ds: ds.drop_columns(["nope"]), ValueError, "nope"),
    "drop: one of several unknown": (lambda ds: ds.drop_columns(["x", "nope"]), ValueError, "nope"),
    "drop: unknown member": (lambda ds: ds.drop_columns(["st.nope"]), ValueError, "nope"),
    "drop: system column": (lambda ds: ds.drop_columns(["_rowid"]), ValueError, "_rowid"),
    "drop: all": (lambda ds: ds.drop_columns(ds.schema.names), ValueError, "(?i)all"),
    "merge: unknown left": (lambda ds: ds.merge(pa.table({"id": [1], "y": [1]}), "nope"), OSError, "nope"),
    "merge: unknown right": (lambda ds: ds.merge(pa.table({"k": [1], "y": [1]}), "id"), OSError, "id"),
    "merge: column is there": (lambda ds: ds.merge(pa.table({"id": [1], "x": [1.0]}), "id"), OSError, "x"),
    "merge: key of another type": (lambda ds: ds.merge(pa.table({"id": ["1"], "y": [1]}), "id"), OSError, ""),
    "merge: no value for rows that need one": (
        lambda ds: ds.merge(
            pa.table([[1], [1]], schema=pa.schema([("id", pa.int64()), pa.field("y", pa.int64(), nullable=False)])),
            "id",
        ),
        OSError,
        "(?i)null",
    ),
}

# Cells where we differ on purpose; the reason stands beside each.
STRICTER: dict[str, tuple[Callable[[Any], Any], type[BaseException], str]] = {
    # pylance makes a table that nobody can read any more
    "add: name of a system column": (lambda ds: ds.add_columns({"_rowid": "id"}), OSError, "_rowid"),
    "add: field with the name of a system column": (
        lambda ds: ds.add_columns(pa.field("_rowaddr", pa.int64())),
        OSError,
        "_rowaddr",
    ),
    "alter: name of a system column": (lambda ds: ds.alter_columns({"path": "x", "name": "_rowid"}), OSError, "_rowid"),
    "alter: no name": (lambda ds: ds.alter_columns({"path": "x", "name": ""}), OSError, ""),
    # pylance panics
    "alter: twice": (
        lambda ds: ds.alter_columns({"path": "must", "data_type": pa.int64()}, {"path": "must", "name": "y"}),
        OSError,
        "must",
    ),
    "merge: only the key": (lambda ds: ds.merge(pa.table({"id": [1]}), "id"), OSError, ""),
    # pylance commits a version that changes nothing
    "add: nothing": (lambda ds: ds.add_columns({}), ValueError, ""),
}


@pytest.mark.parametrize("name", [*BAD, *(STRICTER if UNDER_TEST == "tablewright" else ())])
@STABLE
def test_bad_input_changes_nothing(tmp_path: Path, name: str, stable: bool) -> None:
    action, builtin, words = {**BAD, **STRICTER}[name]
    uri = str(tmp_path / "t.lance")
    table = people(0, 20).append_column("big", pa.array([2**40 + i for i in range(20)], pa.int64()))
    lance.write_dataset(table, uri, max_rows_per_file=8, enable_stable_row_ids=stable)
    before = tree(uri)
    dataset = ours.dataset(uri)
    with pytest.raises(ours.errors.TablewrightError if UNDER_TEST == "tablewright" else Exception) as caught:
        action(dataset)
    if UNDER_TEST == "tablewright":
        assert isinstance(caught.value, ours.errors.InvalidRequest), repr(caught.value)
        assert isinstance(caught.value, builtin), repr(caught.value)
        assert re.search(words, str(caught.value)), str(caught.value)
        assert tree(uri) == before
    assert dataset.version == 1
    if name in BAD:
        refusal = outcome(action, lance.dataset(uri))[1]
        assert isinstance(refusal, builtin if builtin is not Exception else BaseException), repr(refusal)


WRONG_TYPES: dict[str, Callable[[Any], Any]] = {
    "add: number": lambda ds: ds.add_columns(5),
    "add: None": lambda ds: ds.add_columns(None),
    "add: expression is a number": lambda ds: ds.add_columns({"y": 5}),
    "alter: text": lambda ds: ds.alter_columns("x"),
    "alter: list": lambda ds: ds.alter_columns([{"path": "x", "name": "y"}]),
    "alter: type as a text": lambda ds: ds.alter_columns({"path": "x", "data_type": "int32"}),
    "alter: name is a number": lambda ds: ds.alter_columns({"path": "x", "name": 5}),
    "alter: nullable is a text": lambda ds: ds.alter_columns({"path": "x", "nullable": "no"}),
    "drop: text": lambda ds: ds.drop_columns("x"),
    "drop: None": lambda ds: ds.drop_columns(None),
    "drop: number": lambda ds: ds.drop_columns([5]),
    "merge: number": lambda ds: ds.merge(5, "id"),
}


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_arguments_of_the_wrong_type(tmp_path: Path, name: str) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(people(0, 20), uri)
    before = tree(uri)
    for library in (ours, lance):
        with pytest.raises(TypeError):
            WRONG_TYPES[name](library.dataset(uri))
    assert tree(uri) == before


@only_ours
def test_what_pylance_refuses_and_is_plain_we_add(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(people(0, 10), uri, max_rows_per_file=4)
    ours.dataset(uri).add_columns(
        {
            "parity": "case when id % 2 = 0 then 'even' else 'odd' end",
            "pair": "[id, 2]",
            "soon": "ts + interval '1 day'",
        }
    )
    rows = lance.dataset(uri).to_table(columns=["id", "parity", "pair"]).to_pylist()
    assert rows == [{"id": i, "parity": "odd" if i % 2 else "even", "pair": [i, 2]} for i in range(10)]
    assert_same_dataset(uri)


@only_ours
def test_a_cast_keeps_what_is_known_about_a_field(tmp_path: Path) -> None:
    """Its metadata stay, which pylance drops."""
    uri = str(tmp_path / "t.lance")
    field = pa.field("a", pa.int32(), metadata={"unit": "m"})
    lance.write_dataset(pa.table([[1, 2], [3, 4]], schema=pa.schema([field, ("b", pa.int32())])), uri)
    ours.dataset(uri).alter_columns({"path": "a", "data_type": pa.int64(), "name": "c"})
    found = lance.dataset(uri)
    expected = pa.schema([pa.field("c", pa.int64(), metadata={"unit": "m"}), ("b", pa.int32())])
    assert found.schema.equals(expected, check_metadata=True)
    assert found.to_table().to_pydict() == {"c": [1, 2], "b": [3, 4]}
    assert_same_dataset(uri)


@only_ours
@pytest.mark.parametrize("version", ["2.0", "2.2"])
@STABLE
def test_members_are_cast(tmp_path: Path, version: str, stable: bool) -> None:
    """We write the whole column anew, and siblings keep their ids; pylance writes the leaf, and breaks 2.0 tables."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(
        people(0, 20), uri, max_rows_per_file=8, data_storage_version=version, enable_stable_row_ids=stable
    )
    old = lance.dataset(uri).to_table().to_pylist()
    ours.dataset(uri).alter_columns({"path": "st.inner.z", "data_type": pa.float32()})
    found = lance.dataset(uri)
    assert found.schema.field("st").type.field("inner").type.field("z").type == pa.float32()
    assert found.to_table().to_pylist() == old
    assert_same_dataset(uri)
    found.update({"x": "1"}, where="id < 5")
    found.optimize.compact_files()
    assert_same_dataset(uri)
    assert sorted(row["st"]["inner"]["z"] for row in found.to_table(columns=["st"]).to_pylist()) == [
        i / 8 for i in range(20)
    ]
    assert found.to_table(columns=["dec"])["dec"][0].as_py() in (decimal.Decimal(0), decimal.Decimal("1.25"))

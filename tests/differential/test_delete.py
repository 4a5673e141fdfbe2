"""`delete` and `truncate_table`: ours on one copy of a table, pylance's on another, the same table after.

Then each library reads the other's table and goes on deleting, updating and appending there.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from .referee import UNDER_TEST, assert_same_dataset, assert_same_rows, lance, ours, state_of, tree
from .twins import (
    SHAPES,
    assert_indices_answer_as_a_scan,
    assert_same_state,
    coverage,
    go_on,
    linked,
    outcome,
    people,
    shape_of,
    some,
    told,
    twins,
)

only_ours = pytest.mark.skipif(UNDER_TEST != "tablewright", reason="pylance has no such thing")
STABLE = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])

PREDICATES = [
    "id = 12",
    "id < 12",  # a whole fragment
    "id < 20",  # whole fragments and a part of one
    "id % 3 = 1",  # something everywhere
    "id in (0, 7, 8, 15, 47)",
    "id between 14 and 17",
    "true",
    "1 = 1",
    "false",
    "id = 1000",
    "id = 12;",
    "cast(null as boolean)",
    "x > 5",  # drops no null
    "not (x > 5)",
    "x is null",
    "s = 'it''s row 11'",
    's = "it\'s row 10"',
    "s like '%row 1%'",
    "starts_with(s, 'it''s row 2')",
    "lower(s) = 'it''s row 13'",
    "ID = 13",
    "CamelCase = 4",
    "camelcase = 4",
    "`with space` = 'word 3'",
    "größe > 20",
    "`größe` < 1",
    "`select` = 2",
    "st.a = 1200",
    "st.`B c` = 'b2' and st.inner.z > 3",
    "st.a is null",
    "array_has(l, 2)",
    "l is null",
    "d = 'kind 1'",
    "ts >= timestamp '2024-02-01'",
    "day = date '2024-01-05'",
    "cast(dec as double) > 8.5",
    "flag",
    "not flag",
    "flag is null",
    "flag is not true",
    "bin = X'0a00ff'",
    "must = 30",
    "_rowid = 3",
    "_rowid in (4, 5, 4294967297)",
    "_rowaddr >= 8589934592 and _rowaddr < 8589934595",
    "_row_created_at_version > 1",
    "_row_last_updated_at_version <= 1 and id > 30",
]

GO_ON = [
    lambda ds: ds.delete("id % 4 = 3"),
    lambda ds: ds.update({"s": "'gone on'"}, where="id % 4 = 2")["num_rows_updated"],
    lambda ds: ds.insert(people(200, 203)),
    lambda ds: ds.delete("id = 201 or id = 2"),
]


@pytest.fixture(scope="module", params=SHAPES)
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(SHAPES[request.param](tmp_path_factory.mktemp(request.param)).uri)


def _removed(uri: str, version: int) -> tuple[Any, ...]:
    operation = lance.dataset(uri).read_transaction(version).operation
    updated = {
        fragment.id: (fragment.deletion_file.num_deleted_rows, len(fragment.files))
        for fragment in operation.updated_fragments
    }
    return type(operation), updated, sorted(operation.deleted_fragment_ids), operation.predicate


def test_every_predicate_deletes_what_pylance_deletes(base: str, tmp_path: Path) -> None:
    for number, predicate in enumerate(some(PREDICATES, base, 5)):
        mine, theirs = twins(base, tmp_path, str(number))
        here, there = ours.dataset(mine), lance.dataset(theirs)
        assert here.delete(predicate) == there.delete(predicate), predicate
        assert here.version == there.version
        assert here.count_rows() == there.count_rows()
        assert state_of(mine) == state_of(theirs), predicate
        assert _removed(mine, here.version) == _removed(theirs, there.version)
        assert_same_dataset(mine)


def test_each_library_goes_on_with_the_others_table(base: str, tmp_path: Path) -> None:
    extra = set(lance.dataset(base).schema.names) - set(people(0, 0).schema.names)
    steps = GO_ON if not extra else [step for step in GO_ON if step is not GO_ON[2]]
    for number, predicate in enumerate(["id < 20 and id > 2", "id % 3 = 1", "false"]):
        if (list(SHAPES).index(shape_of(base)) + number) % 3:  # each shape goes on from two of them
            mine, theirs = twins(base, tmp_path, str(number))
            ours.dataset(mine).delete(predicate)
            lance.dataset(theirs).delete(predicate)
            go_on([mine], theirs, steps)


def test_deleting_again_and_again(base: str, tmp_path: Path) -> None:
    """Vectors are united with what is there; the last row takes its fragment along."""
    mine, theirs = twins(base, tmp_path)
    here, there = ours.dataset(mine), lance.dataset(theirs)
    for step in range(8):
        predicate = f"id % 8 = {step}"
        assert here.delete(predicate) == there.delete(predicate)
        assert_same_state(mine, told(theirs))
    assert here.count_rows() == 0
    assert here.get_fragments() == []
    assert here.delete("true") == {"num_deleted_rows": 0}
    there.delete("true")
    assert_same_state(mine, theirs)


@pytest.mark.parametrize(
    "expression",
    [
        pc.field("id") == 12,
        (pc.field("x") > 5) & (pc.field("id") < 30),
        ~pc.field("s").isin(["it's row 1"]),
        pc.field("s").is_null(),
        pc.field("with space") == "word 3",
    ],
    ids=str,
)
def test_pyarrow_expressions(tmp_path: Path, expression: pc.Expression) -> None:
    base = str(tmp_path / "base.lance")
    lance.write_dataset(people(0, 40).select(["id", "x", "s", "with space"]), base, max_rows_per_file=7)
    mine, theirs = twins(base, tmp_path)
    assert ours.dataset(mine).delete(expression) == lance.dataset(theirs).delete(expression)
    assert_same_state(mine, theirs)


@STABLE
def test_truncate(tmp_path: Path, stable: bool) -> None:
    base = str(tmp_path / "base.lance")
    dataset = lance.write_dataset(people(0, 40), base, max_rows_per_file=7, enable_stable_row_ids=stable)
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id in (3, 4)")
    mine, theirs = twins(base, tmp_path)
    here, there = ours.dataset(mine), lance.dataset(theirs)
    for _ in range(2):  # an empty table too
        assert (here.truncate_table(), there.truncate_table()) == (None, None)
        assert (here.version, here.count_rows()) == (there.version, 0)
        assert_same_state(mine, theirs)
        assert _removed(mine, here.version) == _removed(theirs, there.version)
    go_on([mine], theirs, [lambda ds: ds.insert(people(0, 5)), lambda ds: ds.delete("id = 1")])
    assert ours.dataset(mine, version=1).count_rows() == 40
    assert ours.dataset(mine).to_table(columns=["id"])["id"].to_pylist() == [0, 2, 3, 4]


@STABLE
@pytest.mark.parametrize(
    "counts", [(4_999,), (5_000,), (5_001,), (10, 4_999), (10, 5_000), (10, 5_001), (5_000, 5_001)]
)
def test_deletion_files_are_of_pylances_type(tmp_path: Path, stable: bool, counts: tuple[int, ...]) -> None:
    base = str(tmp_path / "base.lance")
    table = pa.table({"id": pa.array(range(12_000), pa.int64())})
    lance.write_dataset(table, base, max_rows_per_file=11_000, enable_stable_row_ids=stable)
    mine, theirs = twins(base, tmp_path)
    here, there = ours.dataset(mine), lance.dataset(theirs)
    for count in counts:
        assert here.delete(f"id < {count}") == there.delete(f"id < {count}")
        kinds = [ds.get_fragments()[0].metadata.deletion_file.file_type for ds in (lance.dataset(mine), there)]
        assert kinds[0] == kinds[1]
    assert_same_state(mine, theirs)
    go_on([mine], theirs, [lambda ds: ds.delete("id % 2 = 1"), lambda ds: ds.delete("id >= 11000")])


def test_a_hundred_and_twenty_fragments(tmp_path: Path) -> None:
    base = str(tmp_path / "base.lance")
    table = people(0, 360).select(["id", "x", "s"])
    lance.write_dataset(table, base, max_rows_per_file=3, enable_stable_row_ids=True)
    for number, predicate in enumerate(["id % 3 = 1", "id >= 30 and id < 330"]):
        mine, theirs = twins(base, tmp_path, str(number))
        assert ours.dataset(mine).delete(predicate) == lance.dataset(theirs).delete(predicate)
        assert_same_state(mine, told(theirs))
        go_on([mine], theirs, [lambda ds: ds.delete("id % 2 = 0")])


@STABLE
def test_empty_tables(tmp_path: Path, stable: bool) -> None:
    base = str(tmp_path / "base.lance")
    lance.write_dataset(people(0, 0), base, enable_stable_row_ids=stable)
    for number, predicate in enumerate(["true", "id = 3", "st.a > 1"]):
        mine, theirs = twins(base, tmp_path, str(number))
        assert ours.dataset(mine).delete(predicate) == lance.dataset(theirs).delete(predicate)
        assert_same_state(mine, theirs)


@STABLE
def test_indices_keep_their_coverage_and_answer_right(tmp_path: Path, stable: bool) -> None:
    base = str(tmp_path / "base.lance")
    dataset = lance.write_dataset(people(0, 40), base, max_rows_per_file=8, enable_stable_row_ids=stable)
    for column, kind in [
        ("id", "BTREE"),
        ("s", "BITMAP"),
        ("x", "ZONEMAP"),
        ("l", "LABEL_LIST"),
        ("must", "BLOOMFILTER"),
    ]:
        dataset.create_scalar_index(column, kind)
    dataset.insert(people(40, 44))
    mine, theirs = twins(base, tmp_path)
    filters = ["id > 3", "id = 9", "s = 'it''s row 10'", "x > 4", "array_has(l, 2)", "must in (30, 33)", "s is null"]
    for predicate in ["id in (9, 10, 41)", "s = 'it''s row 13'", "id < 16", "array_has(l, 1)"]:
        assert ours.dataset(mine).delete(predicate) == lance.dataset(theirs).delete(predicate)
        assert coverage(mine) == coverage(theirs)
        assert_same_state(mine, theirs)
        assert_indices_answer_as_a_scan(mine, filters)
    lance.dataset(mine).optimize.optimize_indices()
    assert_indices_answer_as_a_scan(mine, filters)


@pytest.mark.parametrize("retries", [0, 10])
def test_the_arguments_of_pylance_are_taken(tmp_path: Path, retries: int) -> None:
    base = str(tmp_path / "base.lance")
    lance.write_dataset(people(0, 10), base)
    mine, theirs = twins(base, tmp_path)
    options = {"conflict_retries": retries, "retry_timeout": dt.timedelta(seconds=5)}
    assert ours.dataset(mine).delete("id = 3", **options) == lance.dataset(theirs).delete("id = 3", **options)
    assert_same_state(mine, theirs)


def test_a_handle_on_an_old_version_deletes_on_top_of_the_newest(tmp_path: Path) -> None:
    base = str(tmp_path / "base.lance")
    dataset = lance.write_dataset(people(0, 20), base, max_rows_per_file=5)
    dataset.delete("id = 1")
    dataset.insert(people(20, 24))
    dataset.update({"x": "0"}, where="id = 2")
    mine, theirs = twins(base, tmp_path)
    for library, place in ((ours, mine), (lance, theirs)):
        old = library.dataset(place, version=1)
        assert old.delete("id in (1, 2, 3)")["num_deleted_rows"] in (1, 2)
        assert old.version == 5
        assert old.count_rows() == 21
    found = [lance.dataset(place).to_table(columns=["id"])["id"].to_pylist() for place in (mine, theirs)]
    assert sorted(found[0]) == sorted(found[1]) == [0, *range(4, 24)]
    assert_same_dataset(mine)


@STABLE
def test_versions_tags_and_delta_see_a_delete(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(people(0, 20), uri, max_rows_per_file=5, enable_stable_row_ids=stable)
    here = ours.dataset(uri)
    here.tags.create("before", 1)
    here.delete("id % 2 = 0")
    assert_same_dataset(uri, version=1)
    assert lance.dataset(uri, version="before").count_rows() == 20
    assert [entry["version"] for entry in lance.dataset(uri).versions()] == [1, 2]
    lance.dataset(uri, version=1).restore()
    assert_same_dataset(uri)
    assert ours.dataset(uri).count_rows() == 20


def test_on_a_branch(tmp_path: Path) -> None:
    base = str(tmp_path / "base.lance")
    lance.write_dataset(people(0, 20), base, max_rows_per_file=5).create_branch("side")
    mine, theirs = twins(base, tmp_path)
    for library, place in ((ours, mine), (lance, theirs)):
        side = library.dataset(place).checkout_version(("side", None))
        assert side.delete("id in (1, 2, 7) or id >= 15") == {"num_deleted_rows": 8}
    for reader in (ours, lance):
        sides = [reader.dataset(place).checkout_version(("side", None)).to_table() for place in (mine, theirs)]
        assert_same_rows(sides[0], sides[1])
        assert [reader.dataset(place).count_rows() for place in (mine, theirs)] == [20, 20]


# ------------------------------------------------------------------------------------------------ bad input

BAD_PREDICATES: dict[str, tuple[Any, str]] = {
    "a number": ("id", "does not return a boolean"),
    "a sum": ("id + 1", "does not return a boolean"),
    "null": ("null", "does not return a boolean"),
    "a text": ("s", "does not return a boolean"),
    "a struct": ("st", "does not return a boolean"),
    "an unknown column": ("nope = 1", "(?s)nope.*id"),
    "an unknown sub-field": ("st.nope = 1", "nope"),
    "nothing": ("", ""),
    "blanks": ("   ", ""),
    "half a predicate": ("id = ", "id ="),
    "a subquery": ("id in (select 1)", ""),
    "an aggregate": ("sum(id) > 3", ""),
    "an unknown function": ("nofunc(id) > 3", "nofunc"),
    "a literal that does not fit": ("id = 'abc'", "(?s)id.*abc"),
    "a division by zero": ("id % 0 = 1", "(?i)divi"),
    "a cast that fails": ("cast(s as int) = 1", "(?i)cast"),
    "an unknown field in an expression": (pc.field("nope") == 1, "nope"),
}

# Cells where we differ on purpose; the reason stands beside each.
STRICTER = {"two predicates": ("id = 1; id = 2", "")}  # pylance takes the first and forgets the second
if UNDER_TEST == "tablewright":
    BAD_PREDICATES.update(STRICTER)


@pytest.mark.parametrize("name", BAD_PREDICATES)
@STABLE
def test_bad_predicates_change_nothing(tmp_path: Path, name: str, stable: bool) -> None:
    predicate, words = BAD_PREDICATES[name]
    uri = str(tmp_path / "t.lance")
    columns = ["id", "x", "s"] if isinstance(predicate, pc.Expression) else people(0, 0).schema.names
    lance.write_dataset(people(0, 20).select(columns), uri, max_rows_per_file=5, enable_stable_row_ids=stable)
    before = tree(uri)
    expected = ours.errors.InvalidRequest if UNDER_TEST == "tablewright" else Exception
    dataset = ours.dataset(uri)
    with pytest.raises(expected, match=words if UNDER_TEST == "tablewright" and words else None):
        dataset.delete(predicate)
    assert tree(uri) == before
    assert dataset.version == 1
    assert name in STRICTER or outcome(lance.dataset(uri).delete, predicate)[1] is not None


@pytest.mark.parametrize("predicate", [None, 5, True, 1.5, ["id = 1"], {"id": 1}], ids=str)
def test_predicates_of_the_wrong_type(tmp_path: Path, predicate: Any) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(people(0, 20), uri)
    before = tree(uri)
    for library in (ours, lance):
        with pytest.raises(TypeError):
            library.dataset(uri).delete(predicate)
    assert tree(uri) == before


@only_ours
@pytest.mark.parametrize("option", [{"conflict_retries": -1}, {"conflict_retries": "3"}, {"retry_timeout": 5}], ids=str)
def test_options_of_the_wrong_kind(tmp_path: Path, option: dict[str, Any]) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(people(0, 20), uri)
    before = tree(uri)
    with pytest.raises(ours.errors.InvalidRequest):
        ours.dataset(uri).delete("id = 1", **option)
    assert tree(uri) == before


@only_ours
def test_what_pylance_refuses_and_is_plain_we_delete(tmp_path: Path) -> None:
    base = str(tmp_path / "base.lance")
    lance.write_dataset(people(0, 20), base, max_rows_per_file=5)
    for number, (predicate, expected) in enumerate(
        [
            ("id = 3.0", [3]),
            ("ts > '2024-01-18'", [17, 18, 19]),
            ("day = '2024-01-05'", [4]),
            ("ts < timestamp '2024-01-09' - interval '6 days'", [0, 1]),
            ("case when id > 10 then id = 12 else id = 3 end", [3, 12]),
        ]
    ):
        uri = linked(base, tmp_path / f"{number}.lance")
        assert ours.dataset(uri).delete(predicate) == {"num_deleted_rows": len(expected)}
        left = lance.dataset(uri).to_table(columns=["id"])["id"].to_pylist()
        assert left == [i for i in range(20) if i not in expected]
        assert_same_dataset(uri)

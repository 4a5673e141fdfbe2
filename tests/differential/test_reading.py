"""The scanner's whole matrix, drawn by Hypothesis: the same answer from both libraries, in the same order.

Where pylance answers, we answer the same. Where it refuses, we either refuse with an error of ours or know better.
"""

from __future__ import annotations

import datetime as dt
import importlib
import re
from contextlib import suppress
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .referee import SYSTEM_COLUMNS, UNDER_TEST, assert_same_rows, lance, ours

START = dt.datetime(2024, 1, 1)
WORDS = ["alpha", "Beta", "", "it's", "delta", "100%", "ünïcode"]


def _rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "x": pa.array([None if i % 7 == 3 else i / 4 - 10 for i in ids], pa.float64()),
            "s": pa.array([None if i % 11 == 5 else WORDS[i % len(WORDS)] for i in ids]),
            "flag": pa.array([None if i % 13 == 1 else i % 3 == 0 for i in ids]),
            "day": pa.array([(START + dt.timedelta(days=i)).date() for i in ids], pa.date32()),
            "ts": pa.array([START + dt.timedelta(hours=7 * i) for i in ids], pa.timestamp("us")),
            "st": pa.array([{"a": i % 10, "b": f"b{i % 4}"} for i in ids]),
            "l": pa.array([[i % 3, i % 5] if i % 6 else [] for i in ids], pa.list_(pa.int32())),
            "v": pa.array([[i, i + 1] for i in ids], pa.list_(pa.float32(), 2)),
            "Upper": pa.array([i % 9 for i in ids], pa.int32()),
            "with space": pa.array([i % 4 for i in ids], pa.uint8()),
        }
    )


COLUMNS = [*_rows(0, 0).schema.names, "added", "late"]
SCALARS = ["id", "x", "s", "flag", "day", "ts", "Upper", "with space", "added"]


@pytest.fixture(scope="module", params=[pytest.param(False, marks=pytest.mark.slow), True], ids=["addresses", "stable"])
def uri(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Fragments of several files, with deletions, moved rows, a column that the last fragment lacks."""
    place = str(tmp_path_factory.mktemp("reading") / "t.lance")
    dataset = lance.write_dataset(_rows(0, 150), place, max_rows_per_file=60, enable_stable_row_ids=request.param)
    dataset.add_columns({"added": "id * 2", "late": "concat(s, '!')"})
    dataset.delete("id in (0, 5, 59, 60, 61, 149)")
    dataset.update({"s": "'moved'"}, where="id % 20 = 7")
    lance.write_dataset(_rows(150, 170), place, mode="append")
    return place


def _answers(dataset: Any, query: dict[str, Any]) -> pa.Table:
    fragments = query.get("fragments")
    if fragments is not None:
        live = {fragment.fragment_id: fragment for fragment in dataset.get_fragments()}
        query = {**query, "fragments": [live[sorted(live)[number % len(live)]] for number in fragments]}
    return dataset.scanner(**query).to_table()


def _compare(place: str, query: dict[str, Any]) -> None:
    try:
        expected = _answers(lance.dataset(place), query)
    except Exception:
        with suppress(ours.errors.TablewrightError if UNDER_TEST == "tablewright" else Exception):
            _answers(ours.dataset(place), query)
        return
    assert_same_rows(_answers(ours.dataset(place), query), expected)


# ---------------------------------------------------------------------------------- filters, in SQL and in pyarrow

_ints = st.integers(-3, 175)
_floats = st.integers(-44, 140).map(lambda n: n / 4)
_words = st.sampled_from([*WORDS, "moved", "zzz"])


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "''") + "'"


def _compared(name: str, field: pc.Expression, literals: st.SearchStrategy[Any], sql: Any) -> st.SearchStrategy[Any]:
    operators = {"=": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
    return st.tuples(st.sampled_from(list(operators)), literals).map(
        lambda drawn: (f"{name} {drawn[0]} {sql(drawn[1])}", getattr(field, operators[drawn[0]])(pc.scalar(drawn[1])))
    )


def _listed(name: str, field: pc.Expression, literals: st.SearchStrategy[Any], sql: Any) -> st.SearchStrategy[Any]:
    return st.lists(literals, min_size=1, max_size=4, unique=True).map(
        lambda drawn: (f"{name} in ({', '.join(map(sql, drawn))})", reduce(or_, [field == value for value in drawn]))
    )


_nullness = st.sampled_from([*SCALARS, "late", "s"]).map(lambda name: (f"`{name}` is null", pc.field(name).is_null()))
# No IN over a column with nulls: DataFusion folds `s in (…) and not (s in (…))` to false, also where it is null.
ATOMS = st.one_of(
    _compared("id", pc.field("id"), _ints, str),
    _compared("x", pc.field("x"), _floats, str),
    _compared("s", pc.field("s"), _words, _quoted),
    _compared("added", pc.field("added"), _ints, str),
    _listed("id", pc.field("id"), _ints, str),
    _nullness,
    st.just(("flag", pc.field("flag"))),
    st.just(("`with space` = 2", pc.field("with space") == pc.scalar(pa.scalar(2, pa.uint8())))),
)
PAIRS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: (f"({two[0][0]}) and ({two[1][0]})", two[0][1] & two[1][1])),
        st.tuples(inner, inner).map(lambda two: (f"({two[0][0]}) or ({two[1][0]})", two[0][1] | two[1][1])),
        inner.map(lambda one: (f"not ({one[0]})", ~one[1])),
    ),
    max_leaves=4,
)
SQL_ONLY = st.sampled_from(
    [
        "st.a = 3",
        "st.a > 4 and st.b = 'b2'",
        "array_has(l, 2)",
        "array_has_any(l, [2, 4])",
        "array_contains(l, 1)",
        "s like '%a%'",
        "s ilike 'b%'",
        "starts_with(s, 'd')",
        "regexp_like(s, '^[a-d]')",
        "regexp_match(s, 'et')",
        "lower(s) = 'beta'",
        "Upper = 4",
        "upper = 4",
        's = "delta"',
        "id between 20 and 30",
        "id not between 20 and 150",
        "id % 5 = 2 or x + 1 > 20",
        "ts < timestamp '2024-01-20'",
        "ts >= cast('2024-02-01' as timestamp)",
        "day = date '2024-02-02'",
        "coalesce(x, -1) < 0",
        "case when flag then id > 30 else id < 30 end",
        "length(s) = 5",
        "cast(id as string) like '1%'",
        "true",
        "false",
        "id = null",
        "flag is not true",
        "x is not null and x < 0",
        "_rowid > 30",
        "_rowid in (1, 2, 3)",
        "_rowaddr > 4294967300 and id < 100",
        "_row_created_at_version = 1",
        "_row_last_updated_at_version > 1 and flag",
        "nope = 1",
        "id",
        "id + ",
        "`st.a` = 1",
        "sum(id) > 3",
    ]
)
FILTERS = st.one_of(PAIRS.map(lambda pair: pair[0]), SQL_ONLY)
PROJECTIONS = st.one_of(
    st.none(),
    st.lists(st.sampled_from([*COLUMNS, *SYSTEM_COLUMNS, "st.a", "st.b", "nope"]), max_size=5),
    st.dictionaries(
        st.sampled_from(["a", "b", "id", "x"]),
        st.sampled_from(
            ["id + 1", "x", "upper(s)", "st.a", "_rowid", "_rowaddr", "l[1]", "x / 2", "flag", "'k'", "1.5"]
        ),
        min_size=1,
        max_size=3,
    ),
)
ORDERS = st.one_of(
    st.none(),
    st.lists(st.tuples(st.sampled_from(SCALARS), st.booleans(), st.booleans()), min_size=1, max_size=2),
)
QUERIES = st.fixed_dictionaries(
    {
        "columns": PROJECTIONS,
        "filter": st.none() | FILTERS,
        "limit": st.none() | st.integers(0, 200),
        "offset": st.none() | st.integers(0, 180),
        "with_row_id": st.booleans(),
        "with_row_address": st.booleans(),
        "fragments": st.none() | st.lists(st.integers(0, 4), min_size=1, max_size=4, unique_by=lambda n: n % 4),
        "batch_size": st.none() | st.integers(1, 100),
    }
)


@given(query=QUERIES)
def test_any_scan_answers_as_pylance_does(uri: str, query: dict[str, Any]) -> None:
    _compare(uri, query)


@given(pair=PAIRS)
def test_sql_and_pyarrow_filters_mean_the_same(uri: str, pair: tuple[str, pc.Expression]) -> None:
    sql, expression = pair
    for filter in (sql, expression):
        _compare(uri, {"filter": filter, "columns": ["id"], "with_row_id": True})
    here, there = ours.dataset(uri), lance.dataset(uri)
    assert here.count_rows(sql) == there.count_rows(sql)
    if UNDER_TEST == "tablewright":  # pylance can't compare unsigned columns in an expression
        assert here.count_rows(expression) == here.count_rows(sql)


def _ordering(library: Any, order: list[tuple[str, bool, bool]]) -> list[Any]:
    made = importlib.import_module(f"{library.__name__}.dataset").ColumnOrdering
    seen: dict[str, Any] = {}
    for name, ascending, nulls_first in order:
        seen.setdefault(name, made(name, ascending=ascending, nulls_first=nulls_first))
    return [*seen.values()] + ([] if "id" in seen else ["id"])


@given(query=QUERIES, order=ORDERS)
def test_any_order_is_pylances(uri: str, query: dict[str, Any], order: list[tuple[str, bool, bool]] | None) -> None:
    """`id` ends every order, so that there are no ties; the projection holds what is sorted by, as pylance wants it."""
    order = order or [("id", False, False)]
    names = list(dict.fromkeys(["id", *(name for name, _, _ in order)]))
    query = {**query, "columns": names, "fragments": None}
    try:
        expected = lance.dataset(uri).scanner(**query, order_by=_ordering(lance, order)).to_table()
    except Exception:
        return
    assert_same_rows(ours.dataset(uri).scanner(**query, order_by=_ordering(ours, order)).to_table(), expected)


@pytest.mark.parametrize("filter", [*SQL_ONLY.elements])
def test_the_dialect(uri: str, filter: str) -> None:
    """Each construct once for certain, and the same kind of error for what is no filter."""
    there, here = lance.dataset(uri), ours.dataset(uri)
    try:
        expected = there.to_table(filter=filter, with_row_id=True)
    except Exception as refusal:
        if filter.startswith("case when"):
            return  # not in pylance's dialect, plain in meaning
        words = re.findall(r"No field named|does not return a boolean", str(refusal))
        with pytest.raises(ValueError, match=words[0] if words else None):
            here.to_table(filter=filter)
        return
    assert_same_rows(here.to_table(filter=filter, with_row_id=True), expected)
    assert here.count_rows(filter) == expected.num_rows


def test_pickle_and_threads_read_the_same(uri: str) -> None:
    import pickle
    from concurrent.futures import ThreadPoolExecutor

    here = ours.dataset(uri)
    expected = here.to_table()
    assert_same_rows(pickle.loads(pickle.dumps(here)).to_table(), expected)
    with ThreadPoolExecutor(4) as pool:
        for table in pool.map(lambda _: here.to_table(), range(8)):
            assert_same_rows(table, expected)
    assert Path(uri).exists()

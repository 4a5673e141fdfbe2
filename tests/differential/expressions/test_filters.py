"""Every rule of the SQL dialect, refereed by pylance on the same table."""

from __future__ import annotations

from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.unit.expressions.test_filters import _table

from tablewright.errors import InvalidRequest
from tablewright.expressions import compile_filter

SYSTEM = ["_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"]


@pytest.fixture(scope="module")
def referee(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    return lance.write_dataset(_table(), tmp_path_factory.mktemp("dialect") / "t.lance", max_rows_per_file=4)


@pytest.fixture(scope="module")
def rows(referee: lance.LanceDataset) -> pa.RecordBatch:
    table = referee.to_table(columns=[*referee.schema.names, *SYSTEM])
    table = table.append_column("_rowoffset", pa.array(range(6), pa.uint64()))
    return table.combine_chunks().to_batches()[0]


def _ours(filter: Any, rows: pa.RecordBatch, schema: pa.Schema) -> list[int]:
    found: list[int] = compile_filter(filter, schema).filter(rows).column("x").to_pylist()
    return found


AS_PYLANCE = """
CamelCase = 1
camelcase = 5
upper = 1
UPPER = 1
cAmElcase = 1
X = 1 AND CAMELCASE = 1
`with space` = 1
`select` = 1
`x` = 1
s = "foo"
s = 'foo'
s = 'it''s'
s = "it's"
s = "say ""hi\"""
s = 'say "hi"'
s in ("foo", 'bar')
s like "f%"
st.a = 3
st.`B c` = 2
`st`.`a` = 3
`ST`.`a` = 3
st['a'] = 3
st.in.z = 2
ST.a = 3
st.a + 1 = 3
st.a in (1, 2)
st is null
_rowid = 1
_ROWID = 1
_rowid in (1, 2)
_rowaddr > 0
_row_created_at_version = 1
_row_last_updated_at_version > 3
array_has(l, 3)
array_has(ls, 'a')
array_has_any(l, [3])
array_has_any(ls, ['a', 'b'])
array_has_any(ls, make_array('a'))
array_has_all(l, [3, 4])
array_contains(l, 3)
array_length(l) = 2
cardinality(l) = 2
l[1] = 3
l = [3]
l is null
v[1] > 2
s LIKE 'f%'
s ILIKE 'f%'
s not like 'f%'
not s like 'f%'
starts_with(s, 'f')
contains(s, 'o')
regexp_like(s, '^f')
regexp_match(s, '^f')
not regexp_match(s, '^f')
(regexp_match(s, '^f'))
regexp_match(s, '^f') and x = 1
x = 2 or regexp_match(s, '^f')
not (x = 2 or regexp_match(s, '^f'))
regexp_match(s, '^f') is not null
regexp_match(s, '^(f)')[1] = 'f'
lower(s) = 'bar'
length(s) = 3
s || 'x' = 'foox'
s = ''
ts > timestamp '2024-03-01'
ts > timestamp '2024-03-01 00:00:00'
ts > timestamp '9990-01-01'
ts > cast('2024-03-01' as timestamp)
ts between timestamp '2024-02-01' and timestamp '2024-03-01'
ts in (timestamp '2024-02-01')
tz > timestamp '2024-03-01'
tz > timestamp '2024-03-01 00:00:00Z'
d = date '2024-01-01'
d > cast('2024-01-01' as date)
date > date '2024-01-02'
date is not null and date < date '2024-01-03'
d > timestamp '2024-01-02'
ts < current_date()
ts < now()
tz < now()
current_timestamp > ts
current_date() > d
date_part('month', ts) = 3
date_trunc('month', ts) = timestamp '2024-03-01'
n IS NULL
n IS NOT NULL
n in (1)
n not in (1)
n between 1 and 1
n not between 1 and 1
not (n = 1)
x = null
x is distinct from 1
n is not distinct from null
coalesce(n, 7) = 7
nullif(n, 1) is null
b
not b
b = true
b is true
b is not true
b is false
x = 1 is true
true
false
true and x = 1
x == 1
x != 1
x <> 1
x % 2 = 0
x + n = 2
x * 2.5 > 5
-x = -1
abs(x) > 1
((x) > (2))
x = f
f = 1
f in (1, 2)
dec = 1
dec in (1, 2)
bin = X'61'
dic = 'a'
dic in ('a', 'b')
dic like 'a%'
i8 > 1
u8 > 3
x = cast('1' as int)
x::bigint = 1
cast(x as string) = '1'
cast(x as decimal(10, 2)) > 1 and x < 3
x > 1 -- comment
x > /* comment */ 1
x = 1;
"""


@pytest.mark.parametrize("filter", AS_PYLANCE.strip().splitlines())
def test_same_rows_as_pylance(filter: str, referee: lance.LanceDataset, rows: pa.RecordBatch) -> None:
    assert _ours(filter, rows, referee.schema) == referee.to_table(columns=["x"], filter=filter)["x"].to_pylist()


REFUSED = {
    "`st.a` = 3": "No field named st.a. Did you mean 'st'?",
    "nope = 1": "No field named nope",
    "st.nope = 1": "No field named st.nope",
    "t.x = 1": "No field named t",
    "`X` = 1": "Did you mean 'x'?",
    "CamelCase": "does not return a boolean",
    "n + 1": "does not return a boolean",
    "null": "does not return a boolean",
    "x = 'abc'": "x is of type int32 and can't be compared with 'abc'",
    "x = '1'": "x is of type int32 and can't be compared with '1'",
    "'abc' = x": "x is of type int32 and can't be compared with 'abc'",
    "x in ('abc')": "x is of type int32 and can't be compared with 'abc'",
    "x between 'a' and 'b'": "x is of type int32 and can't be compared with 'a'",
    "s = 1": "s is of type string and can't be compared with 1",
    "s = x": "s is of type string and can't be compared with x",
    "f = '1'": "f is of type double",
    "b = 1": "b is of type bool",
    "b = 'true'": "b is of type bool",
    '"x" = 1': "backticks",
    "s > timestamp '2024-01-01'": "s is of type string",
    "x =": "Expected: an expression",
    "x = 1 and": "Expected: an expression",
    "(x = 1": "Expected: )",
    "x in ()": "Expected: an expression",
    "": "is empty",
    " ": "is empty",
    "s = 'open": "never closed",
    "`x = 1": "never closed",
    "sum(x) > 1": "an aggregate",
    "x in (select 1)": "x in (select 1)",
    "foo(x) = 1": "Invalid function 'foo'",
    "s similar to 'f%'": "regexp_like",
    "array_has(l, '3')": "array_has",
    "regexp_match(s, '^f') = true": "List(Utf8) = Boolean",
}


@pytest.mark.parametrize("filter", REFUSED)
def test_refused_as_by_pylance(filter: str, referee: lance.LanceDataset) -> None:
    with pytest.raises(InvalidRequest) as ours:
        compile_filter(filter, referee.schema)
    assert REFUSED[filter] in str(ours.value)
    assert filter in str(ours.value)
    if "field named" in str(ours.value):
        assert "CamelCase" in str(ours.value) or "B c" in str(ours.value)
    if "panic" not in filter:
        with pytest.raises(ValueError, match=r"."):
            referee.to_table(filter=filter)


@pytest.mark.parametrize("filter", ["cast(s as int) = 1", "array_has(ls, 3)"])
def test_refused_while_reading_as_by_pylance(filter: str, referee: lance.LanceDataset, rows: pa.RecordBatch) -> None:
    with pytest.raises(InvalidRequest, match="The expression was"):
        _ours(filter, rows, referee.schema)
    with pytest.raises(ValueError, match="Cannot cast"):
        referee.to_table(filter=filter)

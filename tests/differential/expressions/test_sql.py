"""Values of expressions: types as pylance's, where pylance has them."""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest

from tablewright.expressions import compile_sql

TABLE = pa.table(
    {
        "x": pa.array([1, 2, None], pa.int32()),
        "i8": pa.array([1, 2, 3], pa.int8()),
        "n": pa.array([10, 20, 30], pa.int64()),
        "u": pa.array([1, 2, 3], pa.uint64()),
        "f": pa.array([0.5, 1.5, 2.5], pa.float64()),
        "s": pa.array(["Foo", "bar", None]),
        "st": pa.array([{"a": 1}, {"a": 2}, {"a": 3}], pa.struct([("a", pa.int16())])),
        "with space": pa.array([1, 2, 3], pa.int64()),
    }
)

AS_PYLANCE = """
x
x + 1
1 + x
x * 2 + 1
abs(x + 1)
(x + 1)
x - 1
-x
x + x
x + n
x / 2
x % 2
f + 1
st.a
st.a + 1
i8 + 1
i8 + 1 + 1
u - 1
x > 1
lower(s)
s || 'q'
concat(s, 'q')
`with space`
make_array(x, n)
coalesce(x, 7)
cast(x as string)
regexp_match(s, '(o+)')
_rowid
_rowaddr
""".strip().splitlines()


@pytest.fixture(scope="module")
def referee(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    return lance.write_dataset(TABLE, tmp_path_factory.mktemp("sql") / "t.lance")


@pytest.mark.parametrize("sql", AS_PYLANCE)
def test_values_and_types(sql: str, referee: lance.LanceDataset) -> None:
    rows = referee.to_table(columns=[*TABLE.column_names, "_rowid", "_rowaddr"]).combine_chunks().to_batches()[0]
    compiled = compile_sql(sql, referee.schema)
    expected = referee.to_table(columns={"value": sql})["value"].combine_chunks()
    assert compiled.type == expected.type
    assert compiled.evaluate(rows).to_pylist() == expected.to_pylist()

"""Names, quotes and keywords, without DataFusion."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablewright.errors import InvalidRequest
from tablewright.expressions.scope import Scope
from tablewright.expressions.translate import translate

SCOPE = Scope(
    pa.schema(
        [
            ("a", pa.int64()),
            ('quo"te', pa.int64()),
            ("from", pa.int64()),
            ("year", pa.int64()),
            ("timestamp", pa.timestamp("us")),
            ("now", pa.int64()),
            ("st", pa.struct([("it's", pa.int64()), ("deep", pa.struct([("er", pa.int64())]))])),
        ]
    )
)

CASES = {
    "A = 1": '"a" = 1',
    '`quo"te` = 1': '"quo""te" = 1',
    "from = 1 and a is distinct from from": '"from" = 1 and "a" is distinct from "from"',
    "extract(year from timestamp) = year": 'extract ( year from "timestamp" ) = "year"',
    "timestamp > timestamp '2024-01-01'": "\"timestamp\" > timestamp '2024-01-01'",
    "cast(a as time) = cast(a as decimal(10, 2))": 'cast ( "a" as time ) = cast ( "a" as decimal ( 10 , 2 ) )',
    "st.`it's` = 1": "\"st\"['it''s'] = 1",
    "st.deep.er": "\"st\"['deep']['er']",
    "now = now()": "\"now\" = arrow_cast('1970-01-01T00:00:00.000000001', 'Timestamp(Nanosecond, None)')",
    "current_date > a": "arrow_cast('1970-01-01', 'Date32') > \"a\"",
    "a not in (1) and not a = 2": '"a" not in ( 1 ) and not "a" = 2',
    "a::int = 1": '"a" ::int = 1',
    "/* a */ a -- a": '"a"',
}


@pytest.mark.parametrize("sql", CASES)
def test_translation(sql: str) -> None:
    assert translate(sql, SCOPE, 1).sql == CASES[sql]


def test_unknown_names_are_suggested() -> None:
    with pytest.raises(InvalidRequest, match=r"No field named yeer\. Did you mean 'year'\?"):
        translate("yeer = 1", SCOPE, 0)
    with pytest.raises(InvalidRequest, match=r"No field named st\.depp\. Did you mean 'deep'\?"):
        translate("st.depp = 1", SCOPE, 0)
    with pytest.raises(InvalidRequest, match="not a struct"):
        translate("a.b = 1", SCOPE, 0)

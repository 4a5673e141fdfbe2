"""Which column a name means, and what is suggested where none has it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablewright.errors import InvalidRequest
from tablewright.expressions.scope import SYSTEM_COLUMNS, Scope, empty_batch, with_system_columns

SCHEMA = pa.schema(
    {
        "Name": pa.string(),
        "name": pa.int64(),
        "a.b": pa.int8(),
        "st": pa.struct({"X": pa.int8(), "in": pa.struct({"Deep": pa.int8()})}),
        "_rowid": pa.string(),
    }
)
SCOPE = Scope(SCHEMA)


@pytest.mark.parametrize(
    ("name", "bare", "exact"),
    [
        ("name", "name", "name"),
        ("Name", "Name", "Name"),
        ("NAME", "Name", None),
        ("ST", "st", None),
        ("nope", None, None),
    ],
)
def test_columns(name: str, bare: str | None, exact: str | None) -> None:
    assert SCOPE.column(name) == bare
    assert SCOPE.column(name, exact=True) == exact


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        (["st"], ("st",)),
        (["ST", "x"], ("st", "X")),
        (["st", "in", "DEEP"], ("st", "in", "Deep")),
        (["a.b"], ("a.b",)),
    ],
)
def test_paths(parts: list[str], path: tuple[str, ...]) -> None:
    assert SCOPE.resolve(parts) == path


def test_a_text_is_a_column_first_and_a_path_then() -> None:
    assert SCOPE.named("a.b") == ("a.b",)
    assert SCOPE.named("st.in.deep") == ("st", "in", "Deep")
    assert SCOPE.named("st.nope") is None


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (["nmae"], r"No field named nmae\. Did you mean 'Name'\? The columns are: Name, name"),
        (["zzz"], r"No field named zzz\. The columns are"),
        (["st", "deap"], r"No field named st\.deap\. Its parent has the fields: X, in"),
        (["st", "in", "deap"], r"No field named st\.in\.deap\. Did you mean 'Deep'\?"),
        (["name", "x"], r"No field named name\.x\. Its parent is not a struct"),
    ],
)
def test_unknown_names(parts: list[str], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        SCOPE.resolve(parts)


def test_system_columns_come_after_and_give_way() -> None:
    both = with_system_columns(SCHEMA)
    assert both.names == [*SCHEMA.names, *(name for name in SYSTEM_COLUMNS if name != "_rowid")]
    assert both.field("_rowid").type == pa.string()
    batch = empty_batch(both)
    assert (batch.num_rows, batch.schema) == (0, both)

"""Rows or columns: what either way would write of a fragment, and which one is chosen."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.operations.tables import COLUMNS, data_file, fragment

from tablewright.errors import InvalidRequest
from tablewright.format.fragment import Fragment
from tablewright.format.schema import Schema
from tablewright.operations.rewrite.costs import REWRITE_COLUMNS, REWRITE_ROWS, check_write_mode, decide

TABLE = Schema.from_arrow(COLUMNS)
FILE_BYTES = 256 + 3 * 128
"""What a file of three columns is thought to take beside its rows."""

WIDE = fragment(0, 100, nbytes=FILE_BYTES + 100 * (8 + 4 + 88))
"""100 rows of 100 bytes each: id has 8, x has 4, s has what is left."""


@pytest.mark.parametrize(
    ("columns", "matched", "bytes_rows", "bytes_columns", "mode"),
    [
        (["x"], 1, 100, 400, REWRITE_ROWS),
        (["x"], 3, 300, 400, REWRITE_ROWS),
        (["x"], 4, 400, 400, REWRITE_COLUMNS),  # where both cost the same, the rows stay where they are
        (["x"], 100, 10_000, 400, REWRITE_COLUMNS),
        (["s"], 87, 8_700, 8_800, REWRITE_ROWS),
        (["s"], 88, 8_800, 8_800, REWRITE_COLUMNS),
        (["id", "x", "s"], 99, 9_900, 10_000, REWRITE_ROWS),
        (["id", "x", "s"], 100, 10_000, 10_000, REWRITE_COLUMNS),
    ],
)
def test_the_way_that_writes_less(
    columns: list[str], matched: int, bytes_rows: int, bytes_columns: int, mode: str
) -> None:
    (choice,) = decide(TABLE, [WIDE], {0: matched}, columns, "auto").choices
    assert (choice.bytes_rows, choice.bytes_columns, choice.mode) == (bytes_rows, bytes_columns, mode)
    assert choice.bytes_written == min(bytes_rows, bytes_columns)


@pytest.mark.parametrize("mode", [REWRITE_ROWS, REWRITE_COLUMNS])
def test_a_mode_that_was_asked_for_is_kept(mode: str) -> None:
    decision = decide(TABLE, [WIDE], {0: 50}, ["x"], mode)
    assert [choice.mode for choice in decision.choices] == [mode]
    assert decision.bytes_written == (5_000 if mode == REWRITE_ROWS else 400)


def test_each_fragment_is_decided_alone() -> None:
    fragments = [fragment(2, 100), fragment(0, 100), fragment(1, 100)]
    decision = decide(TABLE, fragments, {2: 100, 0: 1, 7: 5}, ["x"], "auto")
    assert [(choice.fragment_id, choice.mode) for choice in decision.choices] == [
        (0, REWRITE_ROWS),
        (2, REWRITE_COLUMNS),
    ]
    assert [choice.fragment_id for choice in decision.of_mode(REWRITE_COLUMNS)] == [2]


def test_what_is_not_known_is_guessed() -> None:
    """Of a file without a size: 64 bytes for a value whose width varies."""
    (choice,) = decide(TABLE, [fragment(0, 10)], {0: 1}, ["s"], "auto").choices
    assert (choice.bytes_rows, choice.bytes_columns) == (8 + 4 + 64, 640)


def test_a_superseded_column_takes_its_share_of_the_file() -> None:
    old = data_file("old", (0, 1, -2, 2), nbytes=256 + 4 * 128 + 100 * (8 + 4 + 2 * 30))
    (choice,) = decide(TABLE, [Fragment(id=0, files=(old,), physical_rows=100)], {0: 1}, ["s"], "auto").choices
    assert (choice.bytes_rows, choice.bytes_columns) == (8 + 4 + 30, 3_000)


def test_a_struct_without_members_moves_its_rows() -> None:
    """A file of such columns alone could not hold their nulls."""
    table = Schema.from_arrow(pa.schema({"id": pa.int64(), "e": pa.struct([])}))
    held = fragment(0, 100, fields=[node.id for node in table.fields])
    (choice,) = decide(table, [held], {0: 100}, ["e"], "auto").choices
    assert choice.mode == REWRITE_ROWS


def test_no_matches_need_no_choice() -> None:
    decision = decide(TABLE, [WIDE], {}, ["x"], "auto")
    assert decision.choices == () and decision.bytes_written == 0
    assert str(decision).startswith("Decision: matched_rows=0 in 0 fragments")


def test_a_long_decision_is_shown_in_part() -> None:
    fragments = [fragment(id, 100) for id in range(23)]
    lines = str(decide(TABLE, fragments, dict.fromkeys(range(23), 1), ["x"], "auto")).splitlines()
    assert len(lines) == 22 and lines[-1] == "  … and 3 more"


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="Unknown write_mode 'both'"):
        check_write_mode("both")

"""Rows or columns: what either way writes of a fragment, and which one is chosen."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from tablewright.errors import InvalidRequest
from tablewright.format.fragment import TOMBSTONE, DataFile, Fragment
from tablewright.format.schema import Schema
from tablewright.operations.rewrite.costs import (
    REWRITE_COLUMNS,
    REWRITE_ROWS,
    Decision,
    FragmentChoice,
    StoredWidths,
    check_write_mode,
    decide,
)
from tablewright.operations.rewrite.lineage_bytes import LineageBytes

ID, X, VECTOR, TEXT, NOTE = range(5)
TABLE = Schema.from_arrow(
    pa.schema(
        {
            "id": pa.int64(),
            "x": pa.int32(),
            "v": pa.list_(pa.float32(), 22),
            "text": pa.string(),
            "note": pa.string(),
        }
    )
)
FILE = DataFile(
    path="f.lance",
    fields=(ID, X, VECTOR, TEXT, NOTE),
    column_indices=(0, 1, 2, 3, 4),
    file_major_version=2,
    file_minor_version=2,
)
ROWS = 1000
OVERHEAD = 256 + 5 * 128


def fragment(id: int = 0, *, text_bytes: int = 50) -> Fragment:
    """A thousand rows of 8 + 4 + 88 bytes, and of twice as many bytes of text and note."""
    size = ROWS * (100 + 2 * text_bytes) + OVERHEAD
    return Fragment(id=id, files=(replace(FILE, file_size_bytes=size),), physical_rows=ROWS)


def choice(matched: int, *columns: str, mode: str = "auto", table: Schema = TABLE) -> FragmentChoice:
    (found,) = decide(table, [fragment()], {0: matched}, columns, mode).choices
    return found


@pytest.mark.parametrize(
    ("matched", "columns", "mode"),
    [
        (19, ("x",), REWRITE_ROWS),  # 19 rows of 200 bytes, or 1000 values of 4
        (20, ("x",), REWRITE_COLUMNS),  # as much either way: the rows stay where they are
        (21, ("x",), REWRITE_COLUMNS),
        (439, ("v",), REWRITE_ROWS),
        (440, ("v",), REWRITE_COLUMNS),
        (249, ("text",), REWRITE_ROWS),
        (250, ("text",), REWRITE_COLUMNS),
        (999, ("id", "x", "v", "text", "note"), REWRITE_ROWS),
        (1000, ("id", "x", "v", "text", "note"), REWRITE_COLUMNS),
        (1, (), REWRITE_COLUMNS),
    ],
)
def test_the_way_that_writes_less(matched: int, columns: tuple[str, ...], mode: str) -> None:
    found = choice(matched, *columns)
    assert found.bytes_rows == matched * 200
    assert found.mode == mode
    assert found.bytes_written == (found.bytes_rows if mode == REWRITE_ROWS else found.bytes_columns)


@pytest.mark.parametrize(
    ("matched", "lineage", "mode"),
    [
        (100, LineageBytes(0, 0), REWRITE_COLUMNS),  # 20,000 bytes of rows, 4,000 of columns
        (100, LineageBytes(0, 160), REWRITE_COLUMNS),  # as much either way, written a hundred times
        (100, LineageBytes(0, 161), REWRITE_ROWS),
        (100, LineageBytes(100, 260), REWRITE_COLUMNS),
        (100, LineageBytes(-1, 160), REWRITE_ROWS),
        (20, LineageBytes(0, 63), REWRITE_COLUMNS),  # too little to count
        (20, LineageBytes(0, 64), REWRITE_ROWS),
    ],
)
def test_bytes_of_the_manifest_are_written_again_and_again(matched: int, lineage: LineageBytes, mode: str) -> None:
    with_ids = replace(fragment(), row_ids=b"")
    (found,) = decide(TABLE, [with_ids], {0: matched}, ["x"], "auto", lambda _: lineage).choices
    assert (found.mode, found.bytes_rows, found.bytes_columns) == (mode, 200 * matched, 4000)
    shown = f"manifest_rows={lineage.rows:+}, manifest_columns={lineage.columns:+} -> {mode}"
    assert str(found).endswith(f"bytes_columns=4000, {shown}")
    assert "bytes of the manifest count 100 times" in str(Decision((found,)))
    (without,) = decide(TABLE, [fragment()], {0: matched}, ["x"], "auto", lambda _: lineage).choices
    assert (without.mode, without.lineage) == (REWRITE_COLUMNS, None)


@pytest.mark.parametrize("mode", [REWRITE_ROWS, REWRITE_COLUMNS])
def test_the_caller_may_insist(mode: str) -> None:
    assert {choice(matched, "x", mode=mode).mode for matched in (1, 999)} == {mode}


def test_the_manifest_is_not_weighed_where_it_can_not_decide() -> None:
    asked: list[int] = []

    def weigh(fragment: Fragment) -> LineageBytes:
        asked.append(fragment.id)
        return LineageBytes()

    with_ids = replace(fragment(), row_ids=b"")
    every = TABLE.names
    (clear,) = decide(TABLE, [with_ids], {0: 2}, every, "auto", weigh).choices
    assert (clear.mode, clear.lineage, asked) == (REWRITE_ROWS, None, [])
    (close,) = decide(TABLE, [with_ids], {0: 900}, every, "auto", weigh).choices
    assert (close.mode, close.lineage, asked) == (REWRITE_ROWS, LineageBytes(), [0])


def test_structs_without_members_move() -> None:
    table = Schema.from_arrow(pa.schema({"id": pa.int64(), "x": pa.int32(), "v": pa.struct([])}))
    assert choice(999, "v", table=table).mode == REWRITE_ROWS
    assert choice(999, "x", table=table).mode == REWRITE_COLUMNS


def test_fragments_are_decided_alone_and_in_order() -> None:
    narrow, wide = fragment(7, text_bytes=1), fragment(3, text_bytes=5000)
    found = decide(TABLE, [narrow, fragment(5), wide], {7: 20, 3: 20, 9: 1}, ["x"], "auto")
    assert [(each.fragment_id, each.mode) for each in found.choices] == [(3, REWRITE_COLUMNS), (7, REWRITE_ROWS)]
    assert found.bytes_written == 4000 + 20 * 102
    assert [each.fragment_id for each in found.of_mode(REWRITE_ROWS)] == [7]


def test_widths() -> None:
    widths = StoredWidths(TABLE)
    assert widths.of(fragment()) == {ID: 8, X: 4, VECTOR: 88, TEXT: 50, NOTE: 50}
    unknown = Fragment(id=0, files=(FILE,), physical_rows=ROWS)
    assert widths.of(unknown) == {ID: 8, X: 4, VECTOR: 88, TEXT: 64, NOTE: 64}
    superseded = replace(fragment().files[0], fields=(ID, X, VECTOR, TEXT, TOMBSTONE))
    assert widths.of(Fragment(id=0, files=(superseded,), physical_rows=ROWS))[TEXT] == 50
    assert widths.of(Fragment(id=0, files=(), physical_rows=ROWS))[NOTE] == 1


def test_it_prints_some_fragments_and_totals() -> None:
    fragments = [fragment(id) for id in range(25)]
    lines = str(decide(TABLE, fragments, dict.fromkeys(range(25), 1), ["x"], "auto")).splitlines()
    assert lines[0] == (
        "Decision: matched_rows=25 in 25 fragments, bytes_rows=5000, bytes_columns=100000: 25 fragments rewrite_rows, "
        "0 rewrite_columns, 5000 bytes in all"
    )
    assert lines[1] == "  fragment 0: matched_rows=1, bytes_rows=200, bytes_columns=4000 -> rewrite_rows"
    assert (len(lines), lines[-1]) == (22, "  … and 5 more")
    assert str(Decision()).startswith("Decision: matched_rows=0 in 0 fragments")


def test_modes() -> None:
    assert check_write_mode("auto") == "auto"
    with pytest.raises(InvalidRequest, match="Unknown write_mode 'rows': use one of 'auto', 'rewrite_rows'"):
        check_write_mode("rows")

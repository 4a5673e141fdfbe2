"""Rows or columns? What either way would write of a fragment, and which one is less.

- *Rows*: the rows that match move to a new fragment with all their columns: matched rows × width of a row.
- *Columns*: the columns that change are written again for all physical rows: physical rows × their width.

On tables with stable row ids either way changes the row ids and versions in the manifest (:mod:`.lineage_bytes`). Every
later commit writes them again, so their bytes count :data:`MANIFEST_WRITES` times: a table is committed to about a
hundred times before the rows of a fragment are written again and their runs of versions can become one.

Widths are those on disk, guessed without opening files: fixed-width columns are known, what a file is larger than those
is shared out among its other columns. Each fragment is decided alone; where both cost the same, columns are written:
the rows stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tablewright.data.sizes import fixed_width
from tablewright.errors import InvalidRequest
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.schema import Schema
from tablewright.operations.rewrite.lineage_bytes import LineageBytes, most_lineage_bytes

__all__ = [
    "MANIFEST_WRITES",
    "REWRITE_COLUMNS",
    "REWRITE_ROWS",
    "WRITE_MODES",
    "Decision",
    "FragmentChoice",
    "check_write_mode",
    "decide",
]

REWRITE_ROWS, REWRITE_COLUMNS = "rewrite_rows", "rewrite_columns"
WRITE_MODES = ("auto", REWRITE_ROWS, REWRITE_COLUMNS)

MANIFEST_WRITES = 100
_LINEAGE_BYTES_MIN = 64  # less is less than the entries of files and fragments differ by, which are not weighed

_BYTES_UNKNOWN, _BLOB_BYTES_UNKNOWN = 64.0, 1024.0
_BYTES_MIN = 1.0
_FILE_BYTES, _FILE_BYTES_PER_COLUMN = 256, 128  # what a file takes beside its rows, about
_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentChoice:
    """What the two ways would write of one fragment, and the way that was chosen."""

    fragment_id: int
    matched_rows: int
    bytes_rows: int
    bytes_columns: int
    mode: str
    lineage: LineageBytes | None = None

    @property
    def bytes_written(self) -> int:
        """What the chosen way writes, beside the manifest."""
        return self.bytes_rows if self.mode == REWRITE_ROWS else self.bytes_columns

    def __str__(self) -> str:
        manifest = ""
        if self.lineage is not None:
            manifest = f", manifest_rows={self.lineage.rows:+}, manifest_columns={self.lineage.columns:+}"
        return (
            f"fragment {self.fragment_id}: matched_rows={self.matched_rows}, bytes_rows={self.bytes_rows}, "
            f"bytes_columns={self.bytes_columns}{manifest} -> {self.mode}"
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """The choices for all fragments with matches, by id. ``str(decision)`` shows the first of them, and totals."""

    choices: tuple[FragmentChoice, ...] = ()

    def of_mode(self, mode: str) -> tuple[FragmentChoice, ...]:
        """The fragments for which a way was chosen."""
        return tuple(choice for choice in self.choices if choice.mode == mode)

    @property
    def bytes_written(self) -> int:
        """What all of it writes."""
        return sum(choice.bytes_written for choice in self.choices)

    @property
    def _has_lineage(self) -> bool:
        return any(choice.lineage is not None for choice in self.choices)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        rows, columns = self.of_mode(REWRITE_ROWS), self.of_mode(REWRITE_COLUMNS)
        yield (
            f"Decision: matched_rows={sum(choice.matched_rows for choice in self.choices)} in {len(self.choices)} "
            f"fragments, bytes_rows={sum(choice.bytes_rows for choice in self.choices)}, "
            f"bytes_columns={sum(choice.bytes_columns for choice in self.choices)}: "
            f"{len(rows)} fragments {REWRITE_ROWS}, {len(columns)} {REWRITE_COLUMNS}, "
            f"{self.bytes_written} bytes in all"
            + (f"; bytes of the manifest count {MANIFEST_WRITES} times" if self._has_lineage else "")
        )
        for choice in self.choices[:_SHOWN_MAX]:
            yield f"  {choice}"
        if len(self.choices) > _SHOWN_MAX:
            yield f"  … and {len(self.choices) - _SHOWN_MAX} more"


def check_write_mode(write_mode: str) -> str:
    """One of :data:`WRITE_MODES`."""
    if write_mode not in WRITE_MODES:
        raise InvalidRequest(f"Unknown write_mode {write_mode!r}: use one of {', '.join(map(repr, WRITE_MODES))}.")
    return write_mode


def decide(
    table: Schema,
    fragments: Sequence[Fragment],
    matched: Mapping[int, int],
    columns: Sequence[str],
    write_mode: str,
    weigh: Callable[[Fragment], LineageBytes] | None = None,
) -> Decision:
    """Decide each fragment that has ``matched`` rows (counts by fragment id); ``columns`` are those that change.

    ``weigh`` tells what both ways add to the manifest, where fragments have row ids. It is asked only where that could
    make columns the cheaper way.
    """
    widths = table.kept(StoredWidths)
    changed = table.column_ids(columns)
    rows_only = not widths.memberless.isdisjoint(changed)
    chosen = []
    for fragment in sorted(fragments, key=lambda fragment: fragment.id):
        rows = matched.get(fragment.id, 0)
        if not rows:
            continue
        known = widths.of(fragment)
        bytes_rows = round(rows * sum(known.values()))
        bytes_columns = round(fragment.physical_rows * sum([known[id] for id in changed]))
        lineage = None
        if weigh is not None and fragment.row_ids is not None:
            saved = bytes_columns - bytes_rows
            is_clear = write_mode == "auto" and saved > MANIFEST_WRITES * most_lineage_bytes(fragment, rows)
            lineage = None if is_clear else weigh(fragment)
        mode = write_mode
        if mode == "auto":
            dearer = bytes_columns - bytes_rows + MANIFEST_WRITES * _growth(lineage)
            mode = REWRITE_ROWS if dearer > 0 or rows_only else REWRITE_COLUMNS
        chosen.append(
            FragmentChoice(
                fragment_id=fragment.id,
                matched_rows=rows,
                bytes_rows=bytes_rows,
                bytes_columns=bytes_columns,
                mode=mode,
                lineage=lineage,
            )
        )
    return Decision(tuple(chosen))


def _growth(lineage: LineageBytes | None) -> int:
    """How many bytes the manifest grows more by columns than by rows."""
    growth = 0 if lineage is None else lineage.columns - lineage.rows
    return growth if abs(growth) >= _LINEAGE_BYTES_MIN else 0


class StoredWidths:
    """Bytes per row on disk of each column of a table, fragment by fragment.

    ``memberless`` are the columns with a struct without members in them: a file of such columns alone can't hold their
    nulls.
    """

    def __init__(self, table: Schema) -> None:
        fields = zip(table.top_level, table.to_arrow(), strict=True)
        self._fixed = {column.id: fixed_width(field.type) for column, field in fields}
        above = [(*table.ancestors(blob.id), blob.id)[0] for blob in table.blobs]
        self._with_blobs = frozenset(above)
        self._ids = {column.id: frozenset(table.descendants(column.id)) for column in table.top_level}
        self._files: dict[tuple[int, ...], tuple[int, tuple[int, ...], int]] = {}
        empty = {node.id for node in table.fields if node.logical_type == "struct" and not table.children(node.id)}
        self.memberless = frozenset(column for column, ids in self._ids.items() if not empty.isdisjoint(ids))

    def of(self, fragment: Fragment) -> dict[int, float]:
        """By column id."""
        widths = {column: float(fixed or 0) for column, fixed in self._fixed.items()}
        for file in fragment.files:
            fixed_bytes, variable, sharers = self._held(file)
            if not variable:
                continue
            values = file.file_size_bytes - _FILE_BYTES - _FILE_BYTES_PER_COLUMN * len(file.fields)
            per_row = values / max(1, fragment.physical_rows)
            share = max(0.0, per_row - fixed_bytes) / sharers if file.file_size_bytes else _BYTES_UNKNOWN
            blobs = self._with_blobs.intersection(variable)
            for column in variable:
                if not blobs:
                    widths[column] += share
                elif column in blobs:  # most of the file is theirs, and there may be more beside it
                    widths[column] += max(_BLOB_BYTES_UNKNOWN, share * sharers / len(blobs))
                else:
                    widths[column] += _BYTES_UNKNOWN
        return {column: max(_BYTES_MIN, width) for column, width in widths.items()}

    def _held(self, file: DataFile) -> tuple[int, tuple[int, ...], int]:
        """A file's fixed bytes per row, its variable columns, and how many share the rest: superseded ones too."""
        known = self._files.get(file.fields)
        if known is None:
            held = [column for column, ids in self._ids.items() if not ids.isdisjoint(file.fields)]
            variable = tuple(column for column in held if self._fixed[column] is None)
            fixed_bytes = sum(self._fixed[column] or 0 for column in held)
            sharers = len(variable) + sum(field < 0 for field in file.fields)
            known = self._files[file.fields] = (fixed_bytes, variable, sharers)
        return known

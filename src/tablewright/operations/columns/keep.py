"""What was computed stays: which results are still right on a newer version of the table.

A column file holds values computed from the files of a fragment that the computation read. Rows appended, deleted or
moved by others, and other columns rewritten, change nothing in it. So a result is kept as long as its fragment is
there and takes the fields that were read out of the same files; its field ids are given again, because another writer
may have used them meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.schema import Schema
from tablewright.reading.projection import RowLayout

__all__ = ["Inputs", "Kept", "inputs_of"]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What values of a fragment were computed from: files by field id, and sequences where they were read."""

    physical_rows: int
    files: tuple[tuple[int, int | None, str], ...]
    sequences: tuple[tuple[str, object], ...] = ()


def inputs_of(fragment: Fragment, table: Schema, reads: RowLayout, first_row: int = 0) -> Inputs:
    """The inputs that a computation finds in a fragment. Nulls of a struct may come from any file of its members."""
    ids = frozenset(table.descendants(*(column.id for column in reads.fields.top_level)))
    files = sorted(
        (id, file.base_id if file.base_id is None else int(file.base_id), file.path)
        for file in fragment.files
        for id in ids.intersection(file.live_fields)
    )
    known: dict[str, object] = {
        "_rowid": fragment.row_ids,
        "_rowoffset": (first_row, fragment.deletion),
        "_row_created_at_version": fragment.created_at,
        "_row_last_updated_at_version": fragment.last_updated_at,
    }
    sequences = tuple((name, known[name]) for name in reads.system if name in known)
    return Inputs(fragment.physical_rows, tuple(files), sequences)


@dataclass(frozen=True, slots=True)
class Kept:
    """One column file that was written, what it was computed from, and the columns that it holds."""

    file: DataFile
    inputs: Inputs
    deleted_rows: int
    written: Schema

    def fits(self, fragment: Fragment, inputs: Inputs, written: Schema) -> bool:
        """Whether it is what a computation over this state of the fragment would write. Rows never come back."""
        return (
            self.inputs == inputs
            and self.deleted_rows <= fragment.deleted_rows
            and _arrow(self.written).equals(_arrow(written))
        )

    def numbered(self, written: Schema) -> DataFile:
        """The file with the field ids that the columns have now."""
        ids: Mapping[int, int] = {old.id: new.id for old, new in zip(self.written.fields, written.fields, strict=True)}
        return replace(self.file, fields=tuple(ids.get(id, id) for id in self.file.fields))


def _arrow(schema: Schema) -> pa.Schema:
    return schema.to_arrow().remove_metadata()

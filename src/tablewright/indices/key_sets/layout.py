"""How a kind lays out its file: the names of its two columns, and the form of a set.

Format: ``docs/format/indices.md#bitmap-files``.

Tests: ``tests/unit/indices/test_key_set_kinds.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from tablewright.format.id_sets import ADDRESS_MAP, TREEMAP, Form

__all__ = ["BITMAPS", "POSTINGS", "Layout"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One file of keys and sets. ``file`` is its name in the directory of an index."""

    file: str
    keys: str
    sets: str
    form: Form
    sets_nullable: bool = True
    sets_metadata: dict[str, str] = field(default_factory=dict)

    def schema(self, kind: pa.DataType) -> pa.Schema:
        """The columns of a file whose keys have this type."""
        sets = pa.field(self.sets, pa.binary(), self.sets_nullable, self.sets_metadata or None)
        return pa.schema([pa.field(self.keys, kind), sets])


BITMAPS = Layout(file="bitmap_page_lookup.lance", keys="keys", sets="bitmaps", form=ADDRESS_MAP)
"""BITMAP and LABEL_LIST."""

POSTINGS = Layout(
    file="ngram_postings.lance",
    keys="tokens",
    sets="posting_list",
    form=TREEMAP,
    sets_nullable=False,
    sets_metadata={"lance-encoding:compression": "none"},
)
"""NGRAM."""

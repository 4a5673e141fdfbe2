"""What the files of scalar and full-text indices say, by kind.

Format: ``docs/format/indices.md#btree-files``.

Tests: ``tests/differential/test_stats.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tablewright.data.encoder import DataFileReader
from tablewright.operations.statistics.display import display
from tablewright.operations.statistics.segment import Segment

__all__ = ["SCALAR_KINDS"]

_ROWS_PER_BATCH = 1 << 16
_BITMAPS, _LOOKUP, _ZONES, _BLOOM = (
    "bitmap_page_lookup.lance",
    "page_lookup.lance",
    "zonemap.lance",
    "bloomfilter.lance",
)


def _btree(segment: Segment) -> dict[str, Any]:
    """The bounds of the pages that hold more than nulls."""
    reader = DataFileReader(segment.store, segment.path(_LOOKUP), ["min", "max"])
    batches = list(reader.read(0, reader.num_rows, _ROWS_PER_BATCH)) if reader.num_rows else []
    low, high = "N/A", "N/A"
    if batches:
        pages = pa.Table.from_batches(batches)
        valued = np.flatnonzero(pages["max"].is_valid().to_numpy())
        if len(valued):
            low, high = display(pages["min"][int(valued[0])]), display(pages["max"][int(valued[-1])])
    return {"min": low, "max": high, "num_pages": reader.num_rows}


def _bitmap(segment: Segment) -> dict[str, Any]:
    return {"num_bitmaps": segment.end(_BITMAPS).num_rows}


def _zone_map(segment: Segment) -> dict[str, Any]:
    end = segment.end(_ZONES)
    return {"num_zones": end.num_rows, "rows_per_zone": int(end.metadata["rows_per_zone"])}


def _bloom_filter(segment: Segment) -> dict[str, Any]:
    end = segment.end(_BLOOM)
    return {
        "type": "BloomFilter",
        "num_blocks": end.num_rows,
        "number_of_items": int(end.metadata["bloomfilter_item"]),
        "probability": float(end.metadata["bloomfilter_probability"]),
    }


def _ngram(segment: Segment) -> dict[str, Any]:
    return {"num_ngrams": segment.end("ngram_postings.lance").num_rows}


def _inverted(segment: Segment) -> dict[str, Any]:
    parts = segment.json("metadata.lance", "partitions")
    return {
        "params": segment.json("metadata.lance", "params"),
        "num_tokens": sum(segment.end(f"part_{part}_invert.lance").num_rows for part in parts),
        "num_docs": sum(segment.end(f"part_{part}_docs.lance").num_rows for part in parts),
    }


SCALAR_KINDS: Mapping[str, Callable[[Segment], dict[str, Any]]] = {
    "BTree": _btree,
    "Bitmap": _bitmap,
    "LabelList": _bitmap,
    "ZoneMap": _zone_map,
    "BloomFilter": _bloom_filter,
    "NGram": _ngram,
    "Inverted": _inverted,
}

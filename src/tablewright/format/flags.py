"""Feature flags: what a reader and a writer must understand before they touch a table.

They are derived from a manifest's content, so they can't disagree with it. Three of them say something that the
content does not show; those are sticky: once stored, they stay. A bit that we do not implement is refused with
pylance's message. So are bits 128 and 2048, which pylance accepts: their meaning is not known.

Format: ``docs/format/table.md#feature-flags``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tablewright.errors import UnsupportedFeature
from tablewright.format.manifest import Manifest

__all__ = [
    "BASE_PATHS",
    "DELETION_FILES",
    "MIXED_FILE_VERSIONS",
    "NON_REUSABLE_FIELD_IDS",
    "STABLE_ROW_IDS",
    "TABLE_CONFIG",
    "check_readable",
    "check_writable",
    "derive_flags",
    "problems_of_flags",
]

DELETION_FILES = 1
STABLE_ROW_IDS = 2
V2_FILES = 4
TABLE_CONFIG = 8
BASE_PATHS = 16
NO_TRANSACTION_FILE = 32
DATA_OVERLAYS = 64
MIXED_FILE_VERSIONS = 256
TAGGED_FRAGMENT_REUSE = 1024
MANAGED_BLOBS = 16384
NON_REUSABLE_FIELD_IDS = 32768
ZONE_WRITE_SEEDS = 65536

_NAMES = {
    DATA_OVERLAYS: "data overlays",
    TAGGED_FRAGMENT_REUSE: "tagged fragment-reuse history",
    MANAGED_BLOBS: "managed blobs",
    ZONE_WRITE_SEEDS: "zone write seeds",
}
_PAIRED = {
    MIXED_FILE_VERSIONS: "mixed data-file-version",
    TAGGED_FRAGMENT_REUSE: "tagged fragment-reuse",
    MANAGED_BLOBS: "managed-blob",
    ZONE_WRITE_SEEDS: "zone-write-seed",
}
_STICKY = V2_FILES | MIXED_FILE_VERSIONS | TAGGED_FRAGMENT_REUSE | MANAGED_BLOBS
_READABLE = (
    DELETION_FILES
    | STABLE_ROW_IDS
    | V2_FILES
    | TABLE_CONFIG
    | BASE_PATHS
    | NO_TRANSACTION_FILE
    | MIXED_FILE_VERSIONS
    | MANAGED_BLOBS
)
_WRITABLE = (_READABLE & ~MANAGED_BLOBS) | NON_REUSABLE_FIELD_IDS
_MANAGED_KEY = "lance.blob.managed"
_BITS = 64


def derive_flags(manifest: Manifest) -> tuple[int, int]:
    """Reader and writer flags of a manifest: those its content asks for, and the sticky ones it came with."""
    both = 0
    if np.count_nonzero(manifest.fragments.facts.has_deletion):
        both |= DELETION_FILES
    if manifest.stable_row_ids:
        both |= STABLE_ROW_IDS
    if manifest.base_paths:
        both |= BASE_PATHS
    if manifest.schema.metadata.get(_MANAGED_KEY) == b"true":
        both |= MANAGED_BLOBS
    writer = both | (manifest.writer_flags & _STICKY)
    if manifest.config:
        writer |= TABLE_CONFIG
    if manifest.max_allocated_field_id is not None:
        writer |= NON_REUSABLE_FIELD_IDS
    if not manifest.transaction_file:
        writer |= manifest.writer_flags & NO_TRANSACTION_FILE
    return both | (manifest.reader_flags & _STICKY), writer


def problems_of_flags(manifest: Manifest) -> Iterator[str]:
    """Flags that contradict each other or the content, in words."""
    for bit, name in _PAIRED.items():
        if bool(manifest.reader_flags & bit) != bool(manifest.writer_flags & bit):
            yield f"only one of the {name} reader and writer flags ({bit}) is set"
    if bool(manifest.writer_flags & NON_REUSABLE_FIELD_IDS) != (manifest.max_allocated_field_id is not None):
        yield f"the highest field id ever allocated and the writer flag for it ({NON_REUSABLE_FIELD_IDS}) disagree"


def check_readable(reader_flags: int, uri: str) -> None:
    """Raise :class:`UnsupportedFeature` if a flag asks readers for something that we can't do."""
    _check(reader_flags, _READABLE, "read", uri)


def check_writable(writer_flags: int, uri: str) -> None:
    """Raise :class:`UnsupportedFeature` if a flag asks writers for something that we can't do."""
    _check(writer_flags, _WRITABLE, "written", uri)


def _check(flags: int, implemented: int, what: str, uri: str) -> None:
    rest = flags & ~implemented
    if not rest:
        return
    bits = [1 << bit for bit in range(_BITS) if rest >> bit & 1]
    unknown = ", ".join(f"{bit} ({_NAMES[bit]})" if bit in _NAMES else str(bit) for bit in bits)
    infinitive = "read" if what == "read" else "write"
    raise UnsupportedFeature(
        f"This dataset cannot be {what} by this version of Lance. Please upgrade Lance to {infinitive} this dataset. "
        f"Flags: {flags}. The table at {uri} uses features that Tablewright does not have: {unknown}."
    )

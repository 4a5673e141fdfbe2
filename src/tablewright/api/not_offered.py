"""Methods of pylance's ``LanceDataset`` that this release does not have: asking for one says so, and what to use.

Tests: ``tests/differential/test_not_offered.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tablewright.errors import UnsupportedFeature

__all__ = ["NotOffered", "PylanceNames"]

_GROUPS = {
    "vector indices are built by pylance, and survive our writes; create_scalar_index() builds scalar ones": (
        "create_index create_index_uncommitted centroids get_ivf_model merge_index_metadata "
        "merge_existing_index_segments commit_existing_index_segments remap_row_addrs"
    ),
    'use to_table(columns=[…], filter=…, blob_handling="all_binary") for the bytes of blobs': (
        "take_blobs read_blobs read_blob_ranges"
    ),
    "use update_schema_metadata(…, replace=True)": "replace_schema_metadata",
    "use update_field_metadata(…, replace=True)": "replace_field_metadata",
    "use [fragment.fragment_id for fragment in dataset.get_fragments()]": "fragment_ids",
    "use versions()": "get_version version_refs",
    "clones and further base paths come with later work": "shallow_clone deep_clone add_bases base_paths",
    "tables have been created with the new manifest names since pylance 0.20": "migrate_manifest_paths_v2",
    "use write_dataset()": "from_pydantic_model",
    "it belongs to pylance's own reader and writer": (
        "session new_file_session io_stats_incremental io_stats_snapshot initial_storage_options "
        "latest_storage_options storage_options_accessor all_files tracked_files"
    ),
    "it belongs to pylance's memory WAL": "initialize_mem_wal mem_wal_index_details mem_wal_writer",
}
_WHY = {name: why for why, names in _GROUPS.items() for name in names.split()}


class NotOffered(UnsupportedFeature, AttributeError):
    """A method that pylance has and this release has not. ``hasattr`` is false for it."""


class PylanceNames:
    """Answers for names that a dataset does not have."""

    if not TYPE_CHECKING:  # a type checker would take every name for one that is there

        def __getattr__(self, name: str) -> Any:
            if name in _WHY:
                raise NotOffered(f"{name} is pylance's and not part of this release: {_WHY[name]}.")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

"""Finding and loading versions of a table; a version as an immutable value."""

from tablewright.snapshot.files import (
    read_deletion_vector,
    read_manifest,
    read_transaction,
    write_deletion_vector,
    write_hint,
    write_transaction,
)
from tablewright.snapshot.locate import VersionEntry, find_version, latest_version, list_versions, probe_latest
from tablewright.snapshot.ref_files import Branch, Tag
from tablewright.snapshot.reference import Reference, open_reference, resolve_reference
from tablewright.snapshot.refs import (
    branch_world,
    create_tag,
    delete_tag,
    in_order,
    list_branches,
    list_tags,
    main_world,
    read_branch,
    read_tag,
    replace_branch_metadata,
    replace_tag_metadata,
    update_tag,
)
from tablewright.snapshot.snapshot import Snapshot, open_snapshot

__all__ = [
    "Branch",
    "Reference",
    "Snapshot",
    "Tag",
    "VersionEntry",
    "branch_world",
    "create_tag",
    "delete_tag",
    "find_version",
    "in_order",
    "latest_version",
    "list_branches",
    "list_tags",
    "list_versions",
    "main_world",
    "open_reference",
    "open_snapshot",
    "probe_latest",
    "read_branch",
    "read_deletion_vector",
    "read_manifest",
    "read_tag",
    "read_transaction",
    "replace_branch_metadata",
    "replace_tag_metadata",
    "resolve_reference",
    "update_tag",
    "write_deletion_vector",
    "write_hint",
    "write_transaction",
]

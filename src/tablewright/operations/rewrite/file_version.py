"""The version of the data files that a change writes into an existing table."""

from __future__ import annotations

from tablewright.errors import InvalidRequest, UnsupportedFeature
from tablewright.format.blobs import as_bytes
from tablewright.format.field import is_blob_v2
from tablewright.format.flags import MIXED_FILE_VERSIONS
from tablewright.format.manifest import Manifest
from tablewright.format.schema import check_file_version
from tablewright.operations.write import asked_file_version

__all__ = ["new_file_version"]

_VERSIONS_WITHOUT_BLOBS_V2, _FIRST_VERSION_WITH_BLOBS_V2 = ("2.0", "2.1"), "2.2"


def new_file_version(manifest: Manifest, asked: str | None) -> str:
    """The version of the new files: the table's own, or another one if the table mixes versions already."""
    version = asked_file_version(asked) or manifest.data_storage_version
    if version != manifest.data_storage_version and not manifest.writer_flags & MIXED_FILE_VERSIONS:
        raise UnsupportedFeature(
            f"data_storage_version={asked!r}: the table's files are of version {manifest.data_storage_version}, and "
            "this release does not begin to mix versions. Leave it out."
        )
    if version in _VERSIONS_WITHOUT_BLOBS_V2 and any(map(is_blob_v2, manifest.schema.blobs)):
        version = _FIRST_VERSION_WITH_BLOBS_V2  # such a table mixes versions: older ones can't hold the column
    problems = check_file_version(as_bytes(manifest.schema), version)
    if problems:
        raise InvalidRequest(f"File version {version} can't store these columns: " + "; ".join(problems))
    return version

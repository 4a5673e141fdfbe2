"""A snapshot file, ``snapshot/snapshot-<id>``: what the table is at one moment (JSON).

It names two manifest lists (all files before this commit, and what this commit changed) and the index manifest.
:func:`next_snapshot` is the fold that a delete needs: the same data files, another index manifest. Fields that this
module does not know are kept as they are and carried into the next snapshot; fields that belong to one commit
(its changelog, uuid, writer, operation, properties) are not.

Tests: ``tests/unit/paimon/test_metadata.py``, ``tests/unit/paimon/test_hostile.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tablewright.errors import UnsupportedFeature
from tablewright.paimon.format.documents import Fields, checked, json_object

__all__ = ["ManifestList", "Snapshot", "decode_snapshot", "encode_snapshot", "next_snapshot"]

_VERSION_MAX = 3
_KINDS = ("APPEND", "COMPACT", "OVERWRITE", "ANALYZE")
_OF_ONE_COMMIT = (
    "changelogManifestList",
    "changelogManifestListSize",
    "changelogRecordCount",
    "uuid",
    "writerVersion",
    "operation",
    "properties",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestList:
    """A manifest list by name, and its size in bytes where the writer noted it."""

    name: str
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One state of a table. ``document`` holds all fields as they are stored, known and unknown."""

    id: int
    schema_id: int
    base: ManifestList
    delta: ManifestList
    index_manifest: str | None
    commit_user: str
    commit_identifier: int
    commit_kind: str
    time_millis: int
    total_record_count: int
    document: Mapping[str, Any]


def decode_snapshot(data: bytes, path: str) -> Snapshot:
    """The snapshot in a file's bytes; :class:`UnsupportedFeature` if a newer writer made it."""
    document = json_object(data, path)
    version = document.get("version")
    if isinstance(version, int) and version > _VERSION_MAX:
        raise UnsupportedFeature(
            f"{path} is a Paimon snapshot of version {version}; this release reads up to version {_VERSION_MAX}."
        )
    problems: list[str] = []
    taken = Fields(document, problems)
    snapshot = Snapshot(
        id=taken.whole("id", minimum=1),
        schema_id=taken.whole("schemaId", minimum=0),
        base=ManifestList(name=taken.file_name("baseManifestList"), size=taken.whole_or_none("baseManifestListSize")),
        delta=ManifestList(
            name=taken.file_name("deltaManifestList"), size=taken.whole_or_none("deltaManifestListSize")
        ),
        index_manifest=taken.file_name_or_none("indexManifest"),
        commit_user=taken.text("commitUser"),
        commit_identifier=taken.whole("commitIdentifier"),
        commit_kind=taken.text("commitKind"),
        time_millis=taken.whole("timeMillis"),
        total_record_count=taken.whole_or_none("totalRecordCount") or 0,
        document=MappingProxyType(document),
    )
    if snapshot.commit_kind not in _KINDS:
        problems.append(f"commitKind is {snapshot.commit_kind!r}")
    checked(path, problems)
    return snapshot


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """The bytes of a snapshot file."""
    return json.dumps(dict(snapshot.document), indent=2, ensure_ascii=False).encode()


def next_snapshot(
    before: Snapshot,
    *,
    schema_id: int,
    base: ManifestList,
    delta: ManifestList,
    index_manifest: str | None,
    commit_user: str,
    commit_identifier: int,
    time_millis: int,
    uuid: str,
    writer: str,
) -> Snapshot:
    """The snapshot after a delete that only writes deletion vectors: data files and row counts stay the same.

    Its kind is OVERWRITE, as every Paimon writer calls a commit with deletion vectors.
    """
    document = {key: value for key, value in before.document.items() if key not in _OF_ONE_COMMIT}
    document |= {
        "version": _VERSION_MAX,
        "id": before.id + 1,
        "schemaId": schema_id,
        "baseManifestList": base.name,
        "baseManifestListSize": base.size,
        "deltaManifestList": delta.name,
        "deltaManifestListSize": delta.size,
        "commitUser": commit_user,
        "commitIdentifier": commit_identifier,
        "commitKind": "OVERWRITE",
        "timeMillis": time_millis,
        "totalRecordCount": before.total_record_count,
        "deltaRecordCount": 0,
        "uuid": uuid,
        "writerVersion": writer,
        "operation": "DELETE",
    }
    document.pop("indexManifest", None)
    if schema_id != before.schema_id:
        document.pop("statistics", None)  # they describe columns that have changed
    if index_manifest is not None:
        document["indexManifest"] = index_manifest
    return decode_snapshot(json.dumps(document).encode(), f"snapshot-{before.id + 1}")

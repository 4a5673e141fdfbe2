"""Facts about a table for people: its versions and its indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from tablewright.format.index import IndexMetadata
from tablewright.format.manifest import Manifest
from tablewright.format.schema import Schema
from tablewright.snapshot.files import read_manifest
from tablewright.snapshot.locate import VersionEntry, list_versions
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.base import ObjectNotFound
from tablewright.world import World

__all__ = ["describe_field", "describe_indices", "describe_versions", "index_kind", "totals"]


def describe_versions(world: World, map: Callable[..., Sequence[Any]]) -> list[dict[str, Any]]:
    """Every version, oldest first; one that is cleaned up meanwhile is left out. ``map`` is that of an engine."""
    return [version for version in map(_describe, list_versions(world.store), world) if version is not None]


def _describe(entry: VersionEntry, world: World) -> dict[str, Any] | None:
    try:
        manifest = read_manifest(world.store, entry).manifest
    except ObjectNotFound:
        return None
    return {"version": entry.version, "timestamp": local_time(manifest.timestamp_ns), "metadata": totals(manifest)}


def local_time(timestamp_ns: int) -> datetime:
    """A commit time in this machine's zone, without one attached, as pylance gives it."""
    return datetime.fromtimestamp(timestamp_ns // 1_000_000_000) + timedelta(
        microseconds=timestamp_ns % 1_000_000_000 // 1000
    )


def totals(manifest: Manifest) -> dict[str, str]:
    """Sums over all fragments, as text."""
    fragments, facts = manifest.fragments, manifest.fragments.facts
    return {
        "total_data_file_rows": str(int(facts.physical_rows.sum())),
        "total_data_files": str(len(facts.file_row)),
        "total_deletion_file_rows": str(int(facts.deleted_rows.sum())),
        "total_deletion_files": str(int(facts.has_deletion.sum())),
        "total_files_size": str(int(facts.file_bytes.sum())),
        "total_fragments": str(len(fragments)),
        "total_rows": str(fragments.total_live_rows),
    }


_KINDS = {"BTree": "BTree", "Bitmap": "Bitmap", "LabelList": "LabelList", "ZoneMap": "ZoneMap", "NGram": "NGram"}
_KINDS |= {"BloomFilter": "BloomFilter", "Inverted": "Inverted", "FragmentReuse": "FragmentReuse"}


def index_kind(index: IndexMetadata) -> str:
    """The kind of an index as pylance spells it; vector indices say ``Vector``: their files know more."""
    name = (index.details_type_url or "").rsplit(".", 1)[-1].removesuffix("IndexDetails")
    return _KINDS.get(name, name or "Unknown")


def describe_field(schema: Schema, field_id: int) -> str:
    """The path of a field's names; one that the table no longer has is named by its id."""
    return schema.path(field_id) if schema.has(field_id) else f"(dropped field {field_id})"


def describe_indices(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Every index segment of a version; other clients may leave one whose column is gone."""
    schema = snapshot.schema
    return [
        {
            "name": index.name,
            "type": index_kind(index),
            "uuid": str(index.uuid),
            "fields": [describe_field(schema, id) for id in index.fields],
            "version": index.dataset_version,
            "fragment_ids": set(index.coverage or ()),
            "base_id": index.base_id,
        }
        for index in snapshot.manifest.indices
    ]

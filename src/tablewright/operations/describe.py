"""Facts about a table for people: its versions and its indices."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tablewright.format.index import IndexMetadata
from tablewright.format.schema import Schema
from tablewright.format.totals import Summary, Totals, summarise
from tablewright.snapshot.locate import list_versions
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.address import join_uri
from tablewright.storage.together import read_each
from tablewright.world import World

__all__ = ["describe_field", "describe_indices", "describe_versions", "index_kind"]


def describe_versions(world: World) -> list[dict[str, Any]]:
    """Every version, oldest first; one that is cleaned up meanwhile is left out."""
    entries, uri = list_versions(world.store), world.store.location.uri
    described: list[dict[str, Any]] = []
    before: Summary | None = None
    for entry, data in zip(entries, read_each(world.store, [entry.path for entry in entries]), strict=True):
        if data is not None:
            before = summarise(data, join_uri(uri, entry.path), before)
            described.append(_described(before))
    return described


def _described(found: Summary) -> dict[str, Any]:
    return {"version": found.version, "timestamp": local_time(found.timestamp_ns), "metadata": _texts(found.totals)}


def local_time(timestamp_ns: int) -> datetime:
    """A commit time in this machine's zone, without one attached, as pylance gives it."""
    return datetime.fromtimestamp(timestamp_ns // 1_000_000_000) + timedelta(
        microseconds=timestamp_ns % 1_000_000_000 // 1000
    )


def _texts(totals: Totals) -> dict[str, str]:
    numbers = {
        "total_data_file_rows": totals.data_file_rows,
        "total_data_files": totals.data_files,
        "total_deletion_file_rows": totals.deletion_file_rows,
        "total_deletion_files": totals.deletion_files,
        "total_files_size": totals.files_size,
        "total_fragments": totals.fragments,
        "total_rows": totals.data_file_rows - totals.deletion_file_rows,
    }
    return {name: str(number) for name, number in numbers.items()}


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
    """Every index segment of a version, by name; other clients may leave one whose column is gone."""
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
        for index in sorted(snapshot.manifest.indices, key=lambda index: index.name)
    ]

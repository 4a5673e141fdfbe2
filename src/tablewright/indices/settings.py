"""The settings that an index was built with, so that new segments of it go on with them.

Tests: ``tests/differential/test_create_index.py``.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablewright.data.file_end import read_end
from tablewright.errors import CorruptTable
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import BLOOMFILTER, ZONEMAP, kind_of
from tablewright.indices.files import IndexPlaces
from tablewright.storage.address import join_uri
from tablewright.storage.base import ObjectNotFound

__all__ = ["settings_of"]

_KEYS: Mapping[str, Mapping[str, tuple[str, type[int] | type[float]]]] = {
    ZONEMAP.name: {"rows_per_zone": ("rows_per_zone", int)},
    BLOOMFILTER.name: {"number_of_items": ("bloomfilter_item", int), "probability": ("bloomfilter_probability", float)},
}
"""Which key of a file's metadata holds each setting, and its type."""


def settings_of(context: IndexPlaces, index: IndexMetadata) -> dict[str, object]:
    """What ``build`` takes as settings; empty for kinds that have none. Reads the end of one small file."""
    kind = kind_of(index)
    keys = {} if kind is None else _KEYS.get(kind.name, {})
    if kind is None or not keys:
        return {}
    store, directory = context.index_place(index)
    path = f"{directory}/{kind.files[0]}"
    try:
        metadata = read_end(store, path).metadata
        return {name: parse(metadata[key]) for name, (key, parse) in keys.items()}
    except ObjectNotFound:
        raise CorruptTable(join_uri(store.location.uri, path), ("the file is missing",)) from None
    except (KeyError, ValueError) as error:
        raise CorruptTable(join_uri(store.location.uri, path), (f"its settings can't be read: {error!r}",)) from None

"""Remaps of keys and row sets: the same keys in the same order, their rows under new ids.

Tests: ``tests/property/test_key_set_indices.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from tablewright.errors import CorruptTable
from tablewright.format.index import IndexFile
from tablewright.indices.building import Translate
from tablewright.indices.files import open_index_file, write_index_file
from tablewright.indices.key_sets.layout import Layout
from tablewright.indices.key_sets.part import translated
from tablewright.indices.key_sets.runs import file_chunks, part_batch
from tablewright.storage.address import join_uri
from tablewright.storage.base import Store
from tablewright.world import World

__all__ = ["remap_file"]

Finish = Callable[[int], tuple[dict[str, str], dict[str, bytes]]]


def remap_file(
    place: tuple[Store, str], layout: Layout, translate: Translate, world: World, directory: str, finish: Finish
) -> IndexFile:
    """Write the file of an index again below ``directory``; ``finish`` gets the number of keys that still have rows."""
    store, source = place
    path = f"{source}/{layout.file}"
    where = join_uri(store.location.uri, path)
    kind = open_index_file(store, source, layout.file, [layout.keys]).schema.field(layout.keys).type
    metadata: dict[str, str] = {}
    buffers: dict[str, bytes] = {}

    def batches() -> Iterator[pa.RecordBatch]:
        count = 0
        for chunk in file_chunks(store, path, layout, kind):
            try:
                part = translated(chunk, translate, layout.form)
            except ValueError as error:
                raise CorruptTable(where, (f"{error}",)) from error
            if len(part):
                count += len(part)
                yield part_batch(part, layout)
        more, beside = finish(count)  # read by the writer after the last batch
        metadata.update(more)
        buffers.update(beside)

    schema = layout.schema(kind)
    return write_index_file(world.store, directory, layout.file, schema, batches(), metadata=metadata, buffers=buffers)

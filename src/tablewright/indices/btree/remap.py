"""A BTREE under new ids: read, translate, write in order. The order by value stays, so nothing is sorted.

Tests: ``tests/unit/indices/btree/test_build.py``, ``tests/differential/indices/btree/test_build.py``.
"""

from __future__ import annotations

from tablewright.format.index import IndexMetadata
from tablewright.indices.btree.bounds import read_pages
from tablewright.indices.btree.merge import merged
from tablewright.indices.btree.pages import DATA_FILE, write_pages
from tablewright.indices.btree.runs import FileRun, TranslatedRun
from tablewright.indices.building import Translate, WrittenIndex
from tablewright.indices.files import IndexPlaces
from tablewright.world import World

__all__ = ["remap"]


def remap(
    context: IndexPlaces, index: IndexMetadata, translate: Translate, world: World, directory: str
) -> WrittenIndex:
    """Write the entries that ``translate`` keeps, under its ids, to the files of a new directory."""
    store, old = context.index_place(index)
    pages = read_pages(store, old)
    run = FileRun(store, old, DATA_FILE, pages.type, 0, pages.nulls, pages.num_rows)
    return write_pages(world.store, directory, pages.type, merged([TranslatedRun(run, translate)], pages.order))

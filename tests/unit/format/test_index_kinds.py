"""Kinds of indices: recognised by their details, and what they store."""

from __future__ import annotations

from uuid import UUID

import pytest

from tablewright.format.index import IndexFile, IndexMetadata
from tablewright.format.index_kinds import BTREE, SCALAR_KINDS, VECTOR, IndexKind, is_system, kind_of, stores_row_ids


def entry(url: str | None, *, version: int | None = 0, files: tuple[str, ...] = (), name: str = "i") -> IndexMetadata:
    return IndexMetadata(
        uuid=UUID(int=1),
        fields=(0,),
        name=name,
        dataset_version=1,
        details_type_url=url,
        index_version=version,
        files=tuple(IndexFile(path=path) for path in files),
    )


@pytest.mark.parametrize("kind", SCALAR_KINDS, ids=lambda kind: kind.name)
def test_a_kind_is_recognised_by_its_details_in_any_case(kind: IndexKind) -> None:
    assert kind_of(entry(kind.type_url)) is kind
    assert kind_of(entry(kind.type_url.upper())) is kind


def test_indices_without_details_are_recognised_by_their_files() -> None:
    assert kind_of(entry(None, files=("page_data.lance", "page_lookup.lance"))) is BTREE
    assert kind_of(entry(None, files=("auxiliary.idx", "index.idx"))) is VECTOR
    assert kind_of(entry(None, files=("page_data.lance",))) is None
    assert kind_of(entry("/lance.table.FutureIndexDetails")) is None


def test_what_is_not_known_to_store_row_ids_is_taken_to_store_addresses() -> None:
    assert [kind.name for kind in SCALAR_KINDS if stores_row_ids(entry(kind.type_url))] == [
        "BTREE",
        "BITMAP",
        "LABEL_LIST",
        "NGRAM",
    ]
    assert not stores_row_ids(entry(BTREE.type_url, version=1))
    assert not stores_row_ids(entry("/lance.table.FutureIndexDetails"))


def test_system_entries() -> None:
    assert is_system(entry(None, name="__lance_frag_reuse")) and not is_system(entry(None))

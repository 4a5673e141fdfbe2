"""Strategies for transactions and every kind of operation.

Tests: ``tests/property/test_format_codecs.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

from tablewright.format.schema import Schema
from tablewright.format.transaction import (
    Append,
    BloomFilter,
    Clone,
    CreateIndex,
    DataOverlay,
    DataReplacement,
    DataReplacementGroup,
    Delete,
    KeyExistenceFilter,
    MapUpdate,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
    Transaction,
    UnknownOperation,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
    UpdateMode,
)
from tablewright.testing.strategies.tables import (
    base_paths,
    data_files,
    field_ids,
    fragments,
    index_files,
    indices,
    maps,
    row_sets,
    schemas,
    texts,
    u32,
    u64,
    unknown_fields,
    uuids,
)

__all__ = ["OPERATION_NAMES", "operations", "transactions"]


@lru_cache(maxsize=64)
def _several(one: st.SearchStrategy[Any], max_size: int = 2) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(one, max_size=max_size).map(tuple)


@lru_cache(maxsize=64)
def _map_updates() -> st.SearchStrategy[MapUpdate]:
    return st.builds(MapUpdate, entries=maps(st.none() | texts()), replace=st.booleans(), unknown=unknown_fields())


@lru_cache(maxsize=64)
def _filters() -> st.SearchStrategy[KeyExistenceFilter]:
    bloom = st.builds(
        BloomFilter,
        bitmap=st.binary(max_size=32),
        num_bits=u32,
        number_of_items=u64,
        probability=st.floats(0, 1),
        unknown=unknown_fields(),
    )
    keys = st.one_of(_several(u64, 3).map(lambda found: (found, None)), bloom.map(lambda found: (None, found)))
    return st.builds(
        lambda which, **rest: KeyExistenceFilter(exact=which[0], bloom=which[1], **rest),
        keys,
        field_ids=_several(field_ids),
        unknown=unknown_fields(),
    )


@lru_cache(maxsize=64)
def _rewrites() -> st.SearchStrategy[Rewrite]:
    def build_index(details: tuple[str, bytes] | None, **rest: Any) -> RewrittenIndex:
        url, value = details or (None, b"")
        return RewrittenIndex(details_type_url=url, details_value=value, **rest)

    index = st.builds(
        build_index,
        st.none() | st.tuples(texts(), st.binary(max_size=10)),
        old_id=uuids,
        new_id=uuids,
        new_index_version=u32,
        new_index_files=_several(index_files()),
        unknown=unknown_fields(),
    )
    group = st.builds(
        RewriteGroup,
        old_fragments=_several(fragments()),
        new_fragments=_several(fragments()),
        unknown=unknown_fields(),
    )
    return st.builds(Rewrite, groups=_several(group), rewritten_indices=_several(index), unknown=unknown_fields())


@lru_cache(maxsize=64)
def _updates() -> st.SearchStrategy[Update]:
    return st.builds(
        Update,
        removed_fragment_ids=_several(u64),
        updated_fragments=_several(fragments()),
        new_fragments=_several(fragments()),
        fields_modified=_several(u32),
        fields_for_preserving_frag_bitmap=_several(u32),
        update_mode=st.sampled_from(UpdateMode),
        inserted_rows=st.none() | _filters(),
        updated_fragment_offsets=st.dictionaries(u64, row_sets(), max_size=2),
        compacted_sstables=_several(st.binary(max_size=8)),
        unknown=unknown_fields(),
    )


@lru_cache(maxsize=64)
def _operation_strategies() -> dict[str, Callable[[], st.SearchStrategy[Any]]]:
    some, rest = _several(fragments()), unknown_fields()
    replaced = st.builds(DataReplacementGroup, fragment_id=u64, new_file=data_files(), unknown=rest)
    bare = schemas().map(lambda schema: Schema(fields=schema.fields))
    return {
        "Append": lambda: st.builds(Append, fragments=some, unknown=rest),
        "Delete": lambda: st.builds(
            Delete, updated_fragments=some, deleted_fragment_ids=_several(u64), predicate=texts(), unknown=rest
        ),
        "Overwrite": lambda: st.builds(
            Overwrite,
            fragments=some,
            schema=schemas(),
            config_upsert_values=maps(texts()),
            initial_bases=_several(base_paths()),
            unknown=rest,
        ),
        "CreateIndex": lambda: st.builds(
            CreateIndex, new_indices=_several(indices()), removed_indices=_several(indices()), unknown=rest
        ),
        "Rewrite": _rewrites,
        "Merge": lambda: st.builds(
            Merge, fragments=some, schema=schemas(), preserves_nullability=st.booleans(), unknown=rest
        ),
        "Project": lambda: st.builds(Project, schema=bare, preserves_nullability=st.booleans(), unknown=rest),
        "Restore": lambda: st.builds(Restore, version=u64, unknown=rest),
        "ReserveFragments": lambda: st.builds(ReserveFragments, num_fragments=u32, unknown=rest),
        "Update": _updates,
        "UpdateConfig": lambda: st.builds(
            UpdateConfig,
            config_updates=st.none() | _map_updates(),
            table_metadata_updates=st.none() | _map_updates(),
            schema_metadata_updates=st.none() | _map_updates(),
            field_metadata_updates=st.dictionaries(field_ids, _map_updates(), max_size=2),
            unknown=rest,
        ),
        "DataReplacement": lambda: st.builds(DataReplacement, replacements=_several(replaced), unknown=rest),
        "UpdateMemWalState": lambda: st.builds(UpdateMemWalState, raw=st.binary(max_size=10)),
        "Clone": lambda: st.builds(
            Clone,
            is_shallow=st.booleans(),
            ref_version=u64,
            ref_path=texts(),
            ref_name=st.none() | texts(),
            branch_name=st.none() | texts(),
            unknown=rest,
        ),
        "UpdateBases": lambda: st.builds(UpdateBases, new_bases=_several(base_paths()), unknown=rest),
        "DataOverlay": lambda: st.builds(DataOverlay, raw=st.binary(max_size=10)),
        "Unknown": lambda: st.builds(UnknownOperation, field_number=st.integers(116, 199), raw=st.binary(max_size=10)),
    }


OPERATION_NAMES = tuple(_operation_strategies())
"""Every kind of operation, one that we do not know included."""


@lru_cache(maxsize=64)
def operations(name: str | None = None) -> st.SearchStrategy[Operation]:
    """Operations of one kind, or of any."""
    kinds = _operation_strategies()
    return kinds[name]() if name else st.one_of([kind() for kind in kinds.values()])


@lru_cache(maxsize=64)
def transactions(name: str | None = None) -> st.SearchStrategy[Transaction]:
    """Transactions with an operation of one kind, or of any."""

    def build(operation: Operation, unknown: bytes, **rest: Any) -> Transaction:
        # Beside an operation that we do not know, another unknown one would be a second operation.
        return Transaction(
            operation=operation, unknown=b"" if isinstance(operation, UnknownOperation) else unknown, **rest
        )

    return st.builds(
        build,
        operations(name),
        unknown_fields(),
        read_version=u64,
        uuid=texts(),
        properties=maps(texts()),
        tag=texts(),
    )

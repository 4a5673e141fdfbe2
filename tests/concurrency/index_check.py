"""Whether the indices of a table are right: a value finds exactly its live rows in the fragments that are covered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from tablewright.format.index_kinds import LABEL_LIST, NGRAM, is_system, kind_of, stores_row_ids
from tablewright.indices.query import Contains, HasAny, IsIn, IsNull, Query
from tablewright.indices.registry import offered
from tablewright.indices.reuse import reused_coverage, translate_addresses
from tablewright.storage.base import exists

__all__ = ["check_indices"]


def check_indices(dataset: Any) -> int:
    """Compare all segments with the rows of the table, and the files with the manifest. How many rows are covered."""
    snapshot, covered = dataset._snapshot, 0
    claimed: dict[str, set[int]] = {}
    for index in snapshot.manifest.indices:
        store, directory = snapshot.index_place(index)
        for file in index.files:
            assert exists(store, f"{directory}/{file.path}"), f"{index.name}: {file.path} is missing"
            assert store.head(f"{directory}/{file.path}").size == file.size_bytes
        if is_system(index):
            continue
        fragments = set(reused_coverage(snapshot, index))
        assert claimed.setdefault(index.name, set()).isdisjoint(fragments), f"{index.name}: segments overlap"
        claimed[index.name] |= fragments
        covered += _check_segment(dataset, index, fragments)
    return covered


def _check_segment(dataset: Any, index: Any, fragments: set[int]) -> int:
    snapshot, kind = dataset._snapshot, kind_of(index)
    search = offered(kind).search
    by_id = snapshot.manifest.stable_row_ids and stores_row_ids(index) and not kind.zones
    path = snapshot.schema.path(index.fields[0])
    rows = dataset.to_table(columns={"value": path, "address": "_rowaddr", "id": "_rowid"}).to_pylist()
    live = {row["id"] if by_id else row["address"]: row for row in rows if row["address"] >> 32 in fragments}
    type = snapshot.schema.arrow_field(index.fields[0]).type
    for query, is_hit in _questions(kind, type, [row["value"] for row in rows]):
        answer, wanted = search(snapshot, index, query), sorted(id for id, row in live.items() if is_hit(row["value"]))
        if kind.zones:
            _check_zones(answer, wanted, index.name)
            continue
        hits = answer.ids
        if not by_id:
            hits, kept = translate_addresses(snapshot, hits, index)
            hits = hits[kept]
        found = sorted(id for id in hits.tolist() if id in live)
        same = found == wanted if answer.exact else set(wanted) <= set(found)
        assert same, f"{index.name} covers {fragments}: {query} is at {found}, not {wanted}"
    return len(live)


def _questions(kind: Any, type: pa.DataType, values: list[Any]) -> Iterator[tuple[Query, Callable[[Any], bool]]]:
    """What an index of this kind is asked about these values, and for which of them the answer is yes."""
    if kind is LABEL_LIST:
        for label in {label for value in values for label in value or ()}:
            yield HasAny(pa.array([label], type.value_type)), lambda value, label=label: label in (value or ())
        return
    for wanted in set(values) - ({None} if kind is NGRAM else set()):
        if wanted is None:
            yield IsNull(), lambda value: value is None
        elif kind is NGRAM:
            yield Contains(wanted), lambda value, wanted=wanted: wanted in (value or "")
        else:
            yield IsIn(pa.array([wanted], type)), lambda value, wanted=wanted: value == wanted


def _check_zones(answer: Any, wanted: list[int], name: str) -> None:
    """Every row must be in a range, or among the ids."""
    found = set(answer.ids.tolist())
    for address in wanted:
        inside = answer.ranges is not None and bool(
            (
                (answer.ranges.fragment_ids == address >> 32)
                & (answer.ranges.starts <= (address & 0xFFFFFFFF))
                & (answer.ranges.stops > (address & 0xFFFFFFFF))
            ).any()
        )
        assert inside or address in found, f"{name} does not have the row at {address}"

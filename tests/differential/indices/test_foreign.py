"""Vector and full-text indices of pylance after a rewrite whose index files we wrote: answers stay what they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from lance.fragment import write_fragments

from tablewright.format.address_map import AddressMap, NewRows, OldRows
from tablewright.format.naming import index_dir
from tablewright.format.row_set import RowSet
from tablewright.indices import foreign
from tablewright.indices.query import Ids
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

from ..referee import lance

WORDS = ["apple", "pear", "plum", "fig", "grape", "lemon", "cherry"]
ROWS, PER_FILE, DIMENSION = 600, 150, 16
VECTORS = {
    "IVF_FLAT": {"num_partitions": 4},
    "IVF_PQ": {"num_partitions": 4, "num_sub_vectors": 4},
    "IVF_SQ": {"num_partitions": 4},
}
TEXTS: dict[str, dict[str, Any]] = {
    "v1": {"format_version": 1},
    "v2": {"format_version": 2},
    "v2-positions": {"format_version": 2, "with_position": True},
}


def rows(start: int, stop: int) -> pa.Table:
    ids = np.arange(start, stop)
    vectors = np.random.default_rng(start).random((len(ids), DIMENSION), np.float32)
    texts = [" ".join(WORDS[(i * k) % 7] for k in range(1, 2 + i % 5)) for i in ids]
    return pa.table(
        {"id": ids, "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION), "s": texts}
    )


def opened(uri: str) -> tuple[World, Snapshot]:
    world = World(open_store(uri))
    return world, open_snapshot(world)


def translation(group: AddressMap) -> Any:
    """Addresses of a group's old fragments to those of its new ones."""

    def translate(ids: Ids) -> tuple[Ids, np.ndarray]:
        new, kept = ids.copy(), np.ones(len(ids), np.bool_)
        for old in group.old:
            here = np.flatnonzero(ids >> np.uint64(32) == old.id)
            offsets = (ids[here] & np.uint64(0xFFFFFFFF)).astype(np.int64)
            gone = np.isin(offsets, old.deleted.to_numpy())
            kept[here[gone]] = False
            order = np.argsort(offsets[~gone])
            moved = group.forward(old.id, RowSet.of(offsets[~gone]))
            places = [offset | id << 32 for id, offsets_ in moved.items() for offset in offsets_]
            new[here[~gone][order]] = np.array(places, np.uint64)
        return new, kept

    return translate


def rewritten(uri: str, name: str, fragment_ids: list[int], rows_per_file: int) -> None:
    """A compaction of some fragments, committed by pylance, with index files of ours."""
    dataset = lance.dataset(uri)
    old = [fragment for fragment in dataset.get_fragments() if fragment.fragment_id in fragment_ids]
    table = pa.concat_tables([fragment.to_table() for fragment in old])
    new = write_fragments(table, dataset, max_rows_per_file=rows_per_file, mode="append")
    first = 1 + max(fragment.fragment_id for fragment in dataset.get_fragments())
    for number, fragment in enumerate(new):
        fragment.id = first + number
    world, snapshot = opened(uri)
    by_id = {fragment.id: fragment for fragment in snapshot.fragments}
    group = AddressMap(
        [OldRows(id, by_id[id].physical_rows, snapshot.deletion_vector(by_id[id]) or RowSet()) for id in fragment_ids],
        [NewRows(fragment.id, fragment.physical_rows) for fragment in new],
    )
    assert group.problem is None
    (index,) = [index for index in snapshot.manifest.indices if index.name == name]
    assert foreign.remappable(index)
    uuid = uuid4()
    written = foreign.remap(snapshot, index, translation(group), world, index_dir(uuid))
    assert {file.path for file in written.files} == {file.path for file in index.files}
    operation = lance.LanceOperation.Rewrite(
        [lance.LanceOperation.RewriteGroup([fragment.metadata for fragment in old], new)],
        [
            lance.LanceOperation.RewrittenIndex(
                str(index.uuid), str(uuid), written.details_type_url, written.details_value, written.index_version
            )
        ],
    )
    lance.LanceDataset.commit(uri, operation, read_version=dataset.version)
    _, after = opened(uri)
    (entry,) = [index for index in after.manifest.indices if index.name == name]
    assert entry.uuid == uuid
    assert entry.files == () or {(file.path, file.size_bytes) for file in entry.files} == {
        (file.path, file.size_bytes) for file in written.files
    }
    assert entry.coverage is not None
    assert {fragment.id for fragment in new} <= set(entry.coverage)


def nearest(uri: str) -> list[Any]:
    """All partitions probed; twice, so that the second time the index is in pylance's cache."""
    dataset = lance.dataset(uri)
    found: list[Any] = []
    for _ in range(2):
        for number in range(6):
            query = np.random.default_rng(1000 + number).random(DIMENSION, np.float32)
            ask = {"column": "v", "q": query, "k": 10, "nprobes": 4, "refine_factor": 60}
            assert "ANN" in dataset.scanner(nearest=ask).explain_plan()
            answer = dataset.to_table(nearest=ask, columns=["id", "s", "_distance"])
            found.append([(row["id"], row["s"], round(row["_distance"], 5)) for row in answer.to_pylist()])
    return found


def coarse(uri: str) -> list[Any]:
    """The same without a second look at the vectors: what the index itself says."""
    dataset = lance.dataset(uri)
    found = []
    for number in range(6):
        query = np.random.default_rng(1000 + number).random(DIMENSION, np.float32)
        answer = dataset.to_table(nearest={"column": "v", "q": query, "k": 100, "nprobes": 4}, columns=["id"])
        found.append(sorted((round(row["_distance"], 4), row["id"]) for row in answer.to_pylist()))
    return found


def flat(uri: str) -> list[Any]:
    dataset = lance.dataset(uri)
    found = []
    for number in range(6):
        query = np.random.default_rng(1000 + number).random(DIMENSION, np.float32)
        answer = dataset.to_table(
            nearest={"column": "v", "q": query, "k": 10, "use_index": False}, columns=["id", "s", "_distance"]
        )
        found.append([(row["id"], row["s"], round(row["_distance"], 5)) for row in answer.to_pylist()])
    return found


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("kind", VECTORS)
def test_vectors_are_found_where_they_are_now(kind: str, metric: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(rows(0, ROWS), uri, max_rows_per_file=PER_FILE)
    lance.dataset(uri).create_index("v", kind, metric=metric, **VECTORS[kind])
    lance.dataset(uri).delete("id % 7 = 3 or (id >= 160 and id < 190)")
    before, told = nearest(uri), coarse(uri)
    if metric == "l2":
        assert before[:6] == flat(uri)
    rewritten(uri, "v_idx", [1, 2], 100)
    assert nearest(uri) == before
    assert coarse(uri) == told
    rewritten(uri, "v_idx", [0, 4, 5, 6], 1000)
    assert nearest(uri) == before
    assert coarse(uri) == told
    dataset = lance.dataset(uri)
    assert dataset.stats.index_stats("v_idx")["num_indexed_rows"] == dataset.count_rows()
    lance.write_dataset(rows(ROWS, ROWS + 100), uri, mode="append")
    lance.dataset(uri).delete("id % 5 = 1")
    for step in (
        lambda: lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=2000),
        lambda: lance.dataset(uri).optimize.optimize_indices(),
    ):
        step()
        if metric == "l2":
            assert nearest(uri)[:6] == flat(uri)


def matches(uri: str, limit: int | None = None) -> list[Any]:
    dataset = lance.dataset(uri)
    found: list[Any] = []
    for _ in range(2):
        for query in ("apple", "plum fig", "cherry", "nothing"):
            answer = dataset.to_table(full_text_query=query, columns=["id", "s", "_score"], limit=limit)
            found.append(sorted((row["id"], row["s"], round(row["_score"], 4)) for row in answer.to_pylist()))
    return found


def scored(answers: list[Any]) -> list[Any]:
    return [sorted((score for _, _, score in answer), reverse=True) for answer in answers]


def words(uri: str) -> list[list[int]]:
    table = lance.dataset(uri).to_table(columns=["id", "s"]).to_pylist()
    return [
        sorted(row["id"] for row in table if set(query.split()) & set(row["s"].split()))
        for query in ("apple", "plum fig", "cherry", "nothing")
    ] * 2


def ids(answers: list[Any]) -> list[list[int]]:
    return [[row for row, _, _ in answer] for answer in answers]


@pytest.mark.parametrize("form", TEXTS)
def test_documents_are_found_where_they_are_now(form: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(rows(0, ROWS), uri, max_rows_per_file=PER_FILE)
    lance.dataset(uri).create_scalar_index("s", "INVERTED", stem=False, remove_stop_words=False, **TEXTS[form])
    lance.dataset(uri).delete("id % 7 = 3 or (id >= 160 and id < 190)")
    before, best = matches(uri), scored(matches(uri, 5))
    assert ids(before) == words(uri)
    rewritten(uri, "s_idx", [1, 2], 100)
    assert "MatchQuery" in lance.dataset(uri).scanner(full_text_query="apple").explain_plan()
    assert matches(uri) == before
    assert scored(matches(uri, 5)) == best
    rewritten(uri, "s_idx", [0, 4, 5, 6], 1000)
    assert matches(uri) == before
    assert scored(matches(uri, 5)) == best
    lance.write_dataset(rows(ROWS, ROWS + 100), uri, mode="append")
    assert ids(matches(uri)) == words(uri)
    lance.dataset(uri).delete("id % 5 = 1")
    for step in (
        lambda: lance.dataset(uri).optimize.optimize_indices(num_indices_to_merge=0),
        lambda: lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=2000),
        lambda: lance.dataset(uri).optimize.optimize_indices(),
        lambda: lance.dataset(uri).optimize.optimize_indices(retrain=True),
    ):
        step()
        assert ids(matches(uri)) == words(uri)


@pytest.mark.parametrize("kind", ["IVF_HNSW_SQ", "IVF_HNSW_PQ", "IVF_RQ"])
def test_other_kinds_are_left_alone(kind: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(rows(0, ROWS), uri)
    more = {"num_sub_vectors": 4} if kind.endswith("PQ") else {}
    lance.dataset(uri).create_index("v", kind, num_partitions=2, **more)
    _, snapshot = opened(uri)
    (index,) = snapshot.manifest.indices
    assert not foreign.remappable(index)
    assert not foreign.remappable(index, snapshot)

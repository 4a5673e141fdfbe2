"""Indices that we build and pylance builds: names, entries, statistics and errors are the same, and each uses both."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablewright.format.index_kinds import SCALAR_KINDS
from tablewright.indices.registry import offered

from .referee import lance, ours

warnings.filterwarnings("ignore", category=DeprecationWarning)

STABLE = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
COLUMNS = {"BTREE": "n", "BITMAP": "n", "ZONEMAP": "n", "BLOOMFILTER": "n", "NGRAM": "s", "LABEL_LIST": "l"}
FILTERS = {
    "BTREE": ["n = 7", "n > 40 and n < 60", "n is null", "n != 3", "n in (1, 2, 99)"],
    "BITMAP": ["n = 7", "n is null", "n != 3", "n in (1, 2, 99)"],
    "ZONEMAP": ["n = 7", "n > 40 and n < 60", "n is null"],
    "BLOOMFILTER": ["n = 7", "n in (1, 2, 99)"],
    "NGRAM": ["contains(s, 'ord1')", "contains(s, 'word2')"],
    "LABEL_LIST": ["array_has(l, 'l1')", "array_has_any(l, ['l1', 'l2'])", "not array_has(l, 'l0')"],
}
BUILT = [kind.name for kind in SCALAR_KINDS if offered(kind).build is not None]
KIND = pytest.mark.parametrize("kind", BUILT)


def rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "n": pa.array([None if i % 11 == 5 else (i * 37) % 100 for i in ids], pa.int64()),
            "s": pa.array([None if i % 13 == 5 else f"some word{i % 20}" for i in ids]),
            "l": pa.array([None if i % 17 == 5 else [f"l{i % 4}", f"m{i % 3}"] for i in ids]),
            "a": pa.array([{"b": i % 50, "c": i} for i in ids]),
            "yes": pa.array([i % 2 == 0 for i in ids]),
        }
    )


def table(uri: str, stable: bool, library: Any = ours) -> Any:
    dataset = library.write_dataset(rows(0, 300), uri, max_rows_per_file=100, enable_stable_row_ids=stable)
    dataset.delete("id % 10 = 3")
    return library.dataset(uri)


def check(uri: str, kind: str, *, uses: bool = True) -> None:
    """Our answers and pylance's, with and without the index, are the same."""
    here, there = ours.dataset(uri), lance.dataset(uri)
    for condition in FILTERS[kind]:
        flat = there.scanner(columns=["id"], filter=condition, use_scalar_index=False).to_table()["id"].to_pylist()
        assert flat, condition
        assert sorted(there.to_table(columns=["id"], filter=condition)["id"].to_pylist()) == sorted(flat), condition
        assert sorted(here.to_table(columns=["id"], filter=condition)["id"].to_pylist()) == sorted(flat), condition
        if uses:
            assert "ScalarIndexQuery" in there.scanner(filter=condition).explain_plan(True), condition


def statistics(uri: str, name: str) -> dict[str, Any]:
    found = lance.dataset(uri).stats.index_stats(name)
    return {key: value for key, value in found.items() if key != "updated_at_timestamp_ms"}


def entries(uri: str) -> list[Any]:
    found = lance.dataset(uri).list_indices()
    return [(each["name"], each["type"], each["fields"], sorted(each["fragment_ids"])) for each in found]


@KIND
@STABLE
def test_pylance_uses_what_we_build(tmp_path: Path, kind: str, stable: bool) -> None:
    mine, theirs = str(tmp_path / "mine"), str(tmp_path / "theirs")
    table(mine, stable).create_scalar_index(COLUMNS[kind], kind)
    table(theirs, stable, lance).create_scalar_index(COLUMNS[kind], kind)
    check(mine, kind)
    name = f"{COLUMNS[kind]}_idx"
    assert entries(mine) == entries(theirs)
    assert statistics(mine, name) == statistics(theirs, name)
    assert ours.dataset(mine).index_statistics(name).keys() == lance.dataset(mine).index_statistics(name).keys()
    (left,), (right,) = ours.dataset(mine).describe_indices(), lance.dataset(mine).describe_indices()
    for key in ("name", "index_type", "type_url", "num_rows_indexed", "fields", "field_names", "total_size_bytes"):
        assert getattr(left, key) == getattr(right, key), key
    for key in ("uuid", "dataset_version_at_last_update", "index_version", "size_bytes", "base_id"):
        assert getattr(left.segments[0], key) == getattr(right.segments[0], key), key
    assert set(left.segments[0].fragment_ids) == set(right.segments[0].fragment_ids)
    lance.dataset(mine).prewarm_index(name)
    ours.dataset(theirs).prewarm_index(name)


@KIND
@STABLE
def test_an_untrained_index_is_filled_by_either(tmp_path: Path, kind: str, stable: bool) -> None:
    for number, (builder, filler) in enumerate([(ours, lance), (lance, ours), (ours, ours)]):
        uri = str(tmp_path / str(number))
        table(uri, stable)
        builder.dataset(uri).create_scalar_index(COLUMNS[kind], kind, train=False)
        assert lance.dataset(uri).stats.index_stats(f"{COLUMNS[kind]}_idx")["num_indexed_rows"] == 0
        check(uri, kind, uses=False)
        filler.dataset(uri).optimize.optimize_indices()
        assert lance.dataset(uri).stats.index_stats(f"{COLUMNS[kind]}_idx")["num_unindexed_rows"] == 0
        check(uri, kind)


@KIND
@STABLE
def test_some_fragments_are_indexed(tmp_path: Path, kind: str, stable: bool) -> None:
    uri = str(tmp_path)
    table(uri, stable).create_scalar_index(COLUMNS[kind], kind, fragment_ids=[0, 2])
    assert [each[3] for each in entries(uri)] == [[0, 2]]
    check(uri, kind)
    ours.dataset(uri).optimize.optimize_indices()
    assert lance.dataset(uri).stats.index_stats(f"{COLUMNS[kind]}_idx")["num_unindexed_rows"] == 0
    check(uri, kind)


@KIND
@STABLE
def test_each_replaces_what_the_other_built(tmp_path: Path, kind: str, stable: bool) -> None:
    uri = str(tmp_path)
    table(uri, stable)
    for library in (lance, ours, lance, ours):
        before = {each["uuid"] for each in lance.dataset(uri).list_indices()}
        library.dataset(uri).create_scalar_index(COLUMNS[kind], kind)
        (after,) = lance.dataset(uri).list_indices()
        assert after["uuid"] not in before
        check(uri, kind)


def _change(step: str, uri: str, chance: random.Random, number: int) -> None:
    library = chance.choice([ours, lance])
    dataset = library.dataset(uri)
    match step:
        case "append":
            dataset.insert(rows(1000 + 20 * number, 1020 + 20 * number))
        case "delete":
            dataset.delete(f"id % 23 = {number % 23}")
        case "update":
            dataset.update({"n": "n + 1", "s": "'some word1 more'"}, where=f"id % 19 = {number % 19}")
        case "compact":
            dataset.optimize.compact_files(target_rows_per_fragment=150)


@KIND
@STABLE
@pytest.mark.parametrize("seed", range(3))
def test_indices_are_optimised_in_turns(tmp_path: Path, kind: str, stable: bool, seed: int) -> None:
    """Ours and pylance's optimisations, of ours and of pylance's index, between changes by either.

    Ours makes no segment beside others where an update leaves stale row ids in these; pylance does (trap T1), so it
    merges here.
    """
    uri, chance = str(tmp_path), random.Random(seed)
    name = f"{COLUMNS[kind]}_idx"
    table(uri, stable)
    chance.choice([ours, lance]).dataset(uri).create_scalar_index(COLUMNS[kind], kind)
    for number in range(8):
        for step in chance.sample(["append", "delete", "update", "compact"], 2):
            _change(step, uri, chance, number)
        merges = chance.choice([None, 0, 1, 2])
        if chance.random() < 0.6:
            ours.dataset(uri).optimize.optimize_indices(num_indices_to_merge=merges)
        else:
            lance.dataset(uri).optimize.optimize_indices(num_indices_to_merge=None if stable else merges)
        check(uri, kind, uses=False)
        assert lance.dataset(uri).stats.index_stats(name)["num_unindexed_rows"] == 0
        covered = [each["fragment_ids"] for each in ours.dataset(uri).list_indices()]
        assert sum(map(len, covered)) == len(set().union(*covered)), "segments overlap"


@KIND
def test_segments_and_merges_are_those_that_were_asked_for(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path)
    dataset = table(uri, stable=False)
    dataset.create_scalar_index(COLUMNS[kind], kind)
    for merges, expected in [(0, [3, 1]), (0, [3, 1, 1]), (1, [3, 1, 2]), (2, [3, 4]), (None, [8])]:
        dataset = ours.dataset(uri)
        dataset.insert(rows(1000, 1020))
        dataset.optimize.optimize_indices(num_indices_to_merge=merges)
        assert [len(each["fragment_ids"]) for each in dataset.list_indices()] == expected
        check(uri, kind)
    version = dataset.version
    dataset.optimize.optimize_indices()
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    assert dataset.version == version == lance.dataset(uri).version
    dataset.optimize.optimize_indices(retrain=True)
    assert dataset.version == version + 1
    check(uri, kind)


@STABLE
def test_an_update_then_a_segment_leaves_no_stale_value(tmp_path: Path, stable: bool) -> None:
    """Trap T1: on a stable table the updated row keeps its id, so all segments are merged."""
    uri = str(tmp_path)
    dataset = table(uri, stable)
    dataset.create_scalar_index("n", "BTREE")
    dataset.update({"n": "77"}, where="n = 7")
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    assert len(dataset.list_indices()) == (1 if stable else 2)
    for library in (ours, lance):
        assert library.dataset(uri).count_rows("n = 7") == 0
        assert library.dataset(uri).count_rows("n = 77") > 0
    assert lance.dataset(uri).stats.index_stats("n_idx")["num_unindexed_rows"] == 0


@STABLE
def test_a_btree_of_pylance_becomes_one_that_a_compaction_leaves_alone(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path)
    table(uri, stable, lance).create_scalar_index("n", "BTREE")
    ours.dataset(uri).insert(rows(1000, 1100))
    ours.dataset(uri).optimize.optimize_indices()
    check(uri, "BTREE")
    (index,) = ours.dataset(uri).describe_indices()
    assert index.segments[0].index_version == 0
    ours.dataset(uri).optimize.compact_files()
    check(uri, "BTREE")
    (after,) = ours.dataset(uri).describe_indices()
    assert (after.segments[0].uuid == index.segments[0].uuid) is stable


@STABLE
def test_indices_that_we_do_not_build_are_left_to_pylance(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path)
    table(uri, stable, lance).create_scalar_index("s", "INVERTED")
    ours.dataset(uri).create_scalar_index("n", "BTREE")
    ours.dataset(uri).insert(rows(1000, 1100))
    before = {each["name"]: each["uuid"] for each in lance.dataset(uri).list_indices()}
    ours.dataset(uri).optimize.optimize_indices()
    after = {each["name"]: each["uuid"] for each in lance.dataset(uri).list_indices()}
    assert after["s_idx"] == before["s_idx"] and after["n_idx"] != before["n_idx"]
    lance.dataset(uri).optimize.optimize_indices()
    assert lance.dataset(uri).stats.index_stats("s_idx")["num_unindexed_rows"] == 0
    with pytest.raises(NotImplementedError, match="INVERTED"):
        ours.dataset(uri).create_scalar_index("s", "INVERTED")


CALLS = {
    "unknown type": lambda ds: ds.create_scalar_index("n", "HASH"),
    "vector type": lambda ds: ds.create_scalar_index("n", "IVF_PQ"),
    "unknown column": lambda ds: ds.create_scalar_index("nope", "BTREE"),
    "two columns": lambda ds: ds.create_scalar_index(["n", "s"], "BTREE"),
    "list": lambda ds: ds.create_scalar_index("l", "BTREE"),
    "struct": lambda ds: ds.create_scalar_index("a", "BTREE"),
    "bloom filter of lists": lambda ds: ds.create_scalar_index("l", "BLOOMFILTER"),
    "bloom filter of bools": lambda ds: ds.create_scalar_index("yes", "BLOOMFILTER"),
    "name taken": lambda ds: ds.create_scalar_index("n", "BTREE", replace=False),
    "name of another column": lambda ds: ds.create_scalar_index("s", "BTREE", name="n_idx"),
    "drop unknown": lambda ds: ds.drop_index("nope"),
    "statistics unknown": lambda ds: ds.stats.index_stats("nope"),
    "prewarm unknown": lambda ds: ds.prewarm_index("nope"),
}
WORDS = {
    "unknown type": "are supported for scalar columns",
    "unknown column": "nope not found in schema",
    "two columns": "only support a single column",
    "list": "BTREE/BITMAP index column l must be int",
    "struct": "BTREE/BITMAP index column a must be int",
    "bloom filter of lists": "A bloom filter index can only be created on a non-nested field",
    "bloom filter of bools": "Bloom filter index does not support data type",
    "name taken": "Index name 'n_idx' already exists",
    "name of another column": "already exists with different fields",
    "drop unknown": "index not found: name=nope",
    "statistics unknown": 'Index "nope" not found',
    "prewarm unknown": "index not found: name=nope",
}


@pytest.mark.parametrize("call", CALLS)
def test_mistakes_are_the_same_errors(tmp_path: Path, call: str) -> None:
    uri = str(tmp_path)
    table(uri, stable=False).create_scalar_index("n", "BTREE")
    version = lance.dataset(uri).version
    with pytest.raises(Exception, match=r".") as theirs:
        CALLS[call](lance.dataset(uri))
    with pytest.raises(type(theirs.value)) as mine:
        CALLS[call](ours.dataset(uri))
    if call in WORDS:
        assert WORDS[call] in str(theirs.value) and WORDS[call] in str(mine.value)
    assert lance.dataset(uri).version == version
    assert len(list((tmp_path / "_indices").iterdir())) == 1


def test_names_are_the_same(tmp_path: Path) -> None:
    found = []
    for library in (ours, lance):
        uri = str(tmp_path / library.__name__)
        dataset = table(uri, stable=False, library=library)
        dataset.create_scalar_index("N", "btree")
        dataset.create_scalar_index("a.b", "BTREE")
        dataset.create_scalar_index("a.c", "BTREE", name="s_idx")
        dataset.create_scalar_index("s", "BTREE")
        dataset.create_scalar_index("n", "BTREE", name="other")
        dataset.create_scalar_index("n", "BTREE")
        found.append(entries(uri))
    assert found[0] == found[1]
    assert [each[0] for each in found[0]] == ["a.b_idx", "n_idx", "other", "s_idx", "s_idx_2"]


@pytest.mark.parametrize("by_config", [False, True])
def test_parameters_are_honoured_and_kept(tmp_path: Path, by_config: bool) -> None:
    """Trap T39: pylance ignores them as keywords. Segments that are merged or added go on with them."""
    uri = str(tmp_path)
    dataset = table(uri, stable=False)
    for kind, given in [
        ("ZONEMAP", {"rows_per_zone": 16}),
        ("BLOOMFILTER", {"number_of_items": 64, "probability": 0.01}),
    ]:
        if by_config:
            dataset.create_scalar_index("n", lance.indices.IndexConfig(kind.lower(), given), name=kind)
        else:
            dataset.create_scalar_index("n", kind, name=kind, **given)
    for merges in (0, None):
        ours.dataset(uri).insert(rows(1000, 1040))
        ours.dataset(uri).optimize.optimize_indices(num_indices_to_merge=merges)
        for library in (ours, lance):
            stats = library.dataset(uri).stats
            assert {part["rows_per_zone"] for part in stats.index_stats("ZONEMAP")["segments"]} == {16}
            found = stats.index_stats("BLOOMFILTER")["segments"]
            assert {(part["number_of_items"], part["probability"]) for part in found} == {(64, 0.01)}
    check(uri, "ZONEMAP")

"""match/shuffle.py: rows of a partition, matched as they come, against a plain model. Merges: tests/spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tablewright.operations.merge_insert.match import shuffle
from tablewright.operations.merge_insert.match.pairs import Pairs
from tablewright.operations.merge_insert.match.shuffle import SOURCE, TABLE, JoinKeys, KeyPlaces


@pytest.mark.parametrize("kind", [pa.int64(), pa.binary()], ids=str)
@pytest.mark.parametrize("dedupe", [None, "first", "last"])
def test_rows_in_batches_of_any_size(dedupe: str | None, kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a side rows come in any order: neither that nor where batches end makes a difference."""
    monkeypatch.setattr(shuffle, "_SETTLED_ROWS_MIN", 4)
    chance = np.random.default_rng(3)
    for _ in range(60):
        keys, sides = chance.integers(0, 8, 20), chance.integers(0, 2, 20)
        if dedupe is None and chance.random() < 0.7:  # mostly without duplicates
            keys = np.where(sides == SOURCE, np.arange(20), keys)
        places = chance.permutation(20)
        cells = pa.array(keys) if kind == pa.int64() else pa.array([b"%d" % key for key in keys])
        rows = pa.table({"k0": cells, "place": places})
        parts = [
            (side, batch)
            for side in (SOURCE, TABLE)
            for batch in rows.filter(pa.array(sides == side)).to_batches(max_chunksize=int(chance.integers(1, 6)))
        ]
        found = JoinKeys(("k0",), dedupe)(iter(parts))
        assert _told(found) == _model(keys, sides, places, dedupe)


def _told(found: KeyPlaces) -> Any:
    if found.duplicate is not None:
        return found.duplicate
    (pairs,) = found.pairs.values() or [Pairs()]
    return sorted(zip(pairs.offsets.tolist(), pairs.positions.tolist(), strict=True)), sorted(found.dropped.tolist())


def _model(keys: np.ndarray, sides: np.ndarray, places: np.ndarray, dedupe: str | None) -> Any:
    rows = list(zip(keys.tolist(), sides.tolist(), places.tolist(), strict=True))
    pairs, dropped, duplicates = [], [], []
    for key in set(keys.tolist()):
        own = sorted(place for each, side, place in rows if each == key and side == SOURCE)
        if len(own) > 1 and dedupe is None:
            duplicates.append((own[0], own[1]))
        if own:
            chosen = own[0] if dedupe == "first" else own[-1]
            dropped += [place for place in own if place != chosen]
            pairs += [(place, chosen) for each, side, place in rows if each == key and side == TABLE]
    return min(duplicates) if duplicates else (sorted(pairs), sorted(dropped))


def test_a_partition_without_source_rows() -> None:
    for keys in (pa.array([1, 2]), pa.array([b"a", b"b"])):
        found = JoinKeys(("k0",), None)(iter([(TABLE, pa.record_batch({"k0": keys, "place": [0, 1]}))]))
        assert not found.pairs and found.duplicate is None and not len(found.dropped)


def test_rows_that_others_stand_for_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source of one key, however large, is held as one row."""
    monkeypatch.setattr(shuffle, "_SETTLED_ROWS_MIN", 10)
    source = shuffle._SourceKeys(("k0",), "last")
    for begin in range(0, 1000, 5):
        source.add(pa.record_batch({"k0": [7] * 5, "place": range(begin, begin + 5)}))
        assert sum(batch.num_rows for batch in source._rows) <= 10
    assert source.find(pa.table({"k0": [7, 8]})).tolist() == [999, -1]
    assert sorted(source.dropped.tolist()) == list(range(999))

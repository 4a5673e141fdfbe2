"""Split-block Bloom filters: what was put in is found, and sizes keep false positives rare."""

from __future__ import annotations

import numpy as np
import pytest

from tablewright.indices.bloomfilter.blocks import bytes_needed, filters_of, may_hold, widened
from tablewright.indices.bloomfilter.hashes import Hashes


def hashes(seed: int, count: int) -> Hashes:
    return np.random.default_rng(seed).integers(0, 1 << 64, count, np.uint64)


def flat(filters: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    count, size = filters.shape
    return filters.ravel(), np.arange(count) * size, np.full(count, size)


# The largest number of values that pylance 14.0.2 puts into a filter of this size.
@pytest.mark.parametrize(
    ("probability", "size", "items"),
    [
        (0.5, 32, 78),
        (0.5, 8192, 20182),
        (0.1, 128, 170),
        (0.01, 64, 48),
        (0.01, 1024, 778),
        (0.00057, 32, 13),
        (0.00057, 8192, 3476),
        (1e-6, 1024, 126),
    ],
)
def test_sizes(probability: float, size: int, items: int) -> None:
    assert bytes_needed(items, probability) == size
    assert bytes_needed(items + 1, probability) == 2 * size


@pytest.mark.parametrize("cells", [1, 1 << 22])
def test_what_was_put_in_is_found(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablewright.indices.bloomfilter.blocks._CELLS_MAX", cells)
    groups = np.repeat(np.arange(5), [100, 0, 3, 200, 50])
    values = hashes(1, len(groups))
    filters = filters_of(values, groups, 5, 512)
    for group in range(5):
        for value in values[groups == group][:20]:
            assert may_hold(*flat(filters), np.array([value]))[group]
    assert may_hold(*flat(filters), values).tolist() == [True, False, True, True, True]
    assert not may_hold(*flat(filters), values[:0]).any()


def test_false_positives_are_rare() -> None:
    size = bytes_needed(1000, 0.01)
    filters = filters_of(hashes(1, 1000), np.zeros(1000, np.int64), 1, size)
    wrong = sum(bool(may_hold(*flat(filters), value[np.newaxis])[0]) for value in hashes(2, 3000))
    assert 0 < wrong < 60


def test_a_wider_filter_holds_all_that_it_held() -> None:
    values = hashes(3, 100)
    (narrow,) = filters_of(values, np.zeros(100, np.int64), 1, 128)
    for size in (256, 1024):
        wide = widened(narrow, size)[np.newaxis]
        assert all(may_hold(*flat(wide), value[np.newaxis])[0] for value in values)
    assert (widened(narrow, 160) == 0xFF).all()
    assert not may_hold(*flat(widened(narrow, 4096)[np.newaxis]), hashes(4, 2)).all()

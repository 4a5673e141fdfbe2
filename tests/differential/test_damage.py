"""Damaged and foreign files at every place of a table: CorruptTable or another error of ours, never a stranger.

Every file of a table is cut at many lengths, filled with garbage, flipped byte by byte, replaced and removed. Opening
and reading either work or raise a typed error; writing never makes it worse.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.depth import deep

from .referee import UNDER_TEST, assert_same_dataset, lance, numbers, ours, tree
from .wire import latest_manifest

pytestmark = pytest.mark.skipif(UNDER_TEST != "tablewright", reason="the errors are ours")


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two fragments, a deletion file of each kind, an index, a tag."""
    place = tmp_path_factory.mktemp("damage") / "t.lance"
    table = pa.table({"id": range(12_000), "s": [f"row {i % 50}" for i in range(12_000)]})
    dataset = lance.write_dataset(table, str(place), max_rows_per_file=11_000, enable_stable_row_ids=True)
    dataset.create_scalar_index("id", "BTREE")
    dataset.tags.create("here", 1)
    dataset.delete("id % 2 = 1 and id < 11000")
    dataset.delete("id = 11500")
    return place


@pytest.fixture
def table(master: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(master, tmp_path / "t.lance"))


def _use(uri: Path) -> int:
    dataset = ours.dataset(str(uri))
    rows = dataset.to_table(with_row_id=True, with_row_address=True)
    assert dataset.count_rows() >= 0
    dataset.versions()
    dataset.list_indices()
    dataset.read_transaction(dataset.version)
    return rows.num_rows


def _use_or_typed_error(uri: Path) -> BaseException | None:
    """Everything a reader does; anything but an error of ours is a failure of the test."""
    try:
        _use(uri)
    except ours.errors.InternalError:
        raise
    except ours.errors.TablewrightError as error:
        return error
    return None


def _damaged(data: bytes, seed: int) -> Iterator[bytes]:
    """Cut, emptied, grown, turned to noise, and with single bytes changed."""
    chance = random.Random(seed)
    lengths = {0, 1, 3, 4, 8, 15, 16, 17, len(data) - 1, len(data) - 4, len(data) - 16, len(data) - 20}
    lengths |= {chance.randrange(len(data)) for _ in range(12)}
    for length in sorted(length for length in lengths if 0 <= length < len(data)):
        yield data[:length]
    yield data + b"\0"
    yield b"\0" * len(data)
    yield bytes(chance.randrange(256) for _ in range(len(data)))
    yield data[::-1]
    yield b"LANC" * (len(data) // 4)


def _flipped(data: bytes, count: int) -> Iterator[bytes]:
    """Single bytes changed in nine ways, `count` of these spread over all of `data`."""
    changes = [
        (at, change) for at in range(len(data)) for change in (0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF)
    ]
    for at, change in sorted(random.Random(4).sample(changes, min(count, len(changes)))):
        yield data[:at] + bytes([data[at] ^ change]) + data[at + 1 :]


def test_damaged_manifest_is_named(table: Path) -> None:
    path = latest_manifest(table)
    whole = path.read_bytes()
    before = tree(table)
    for data in _damaged(whole, 1):
        path.write_bytes(data)
        error = _use_or_typed_error(table)
        assert isinstance(error, ours.errors.CorruptTable), f"{len(data)} bytes were read as a manifest"
        assert isinstance(error, OSError)
        assert path.name in str(error)
        with pytest.raises(ours.errors.TablewrightError):
            ours.write_dataset(pa.table({"id": [1], "s": ["a"]}), str(table), mode="append")
    path.write_bytes(whole)
    assert tree(table) == before
    assert _use(table) == 6499


@pytest.mark.slow
def test_changed_bytes_of_a_manifest(tmp_path: Path) -> None:
    place = tmp_path / "t.lance"
    dataset = lance.write_dataset(numbers(0, 6), str(place), max_rows_per_file=4, enable_stable_row_ids=True)
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id = 1")
    path = latest_manifest(place)
    whole = path.read_bytes()
    for data in _flipped(whole, deep(200, 5000)):
        path.write_bytes(data)
        _use_or_typed_error(place)
    path.write_bytes(whole)
    assert_same_dataset(place)


@pytest.mark.parametrize("kind", ["data", "deletion array", "deletion bitmap"])
def test_damaged_file_of_rows(table: Path, kind: str) -> None:
    files = {"data": "data/*.lance", "deletion array": "_deletions/*.arrow", "deletion bitmap": "_deletions/*.bin"}
    path = sorted(table.glob(files[kind]), key=lambda found: found.stat().st_size)[0]
    whole = path.read_bytes()
    for data in _damaged(whole, 2):
        path.write_bytes(data)
        error = _use_or_typed_error(table)
        if len(data) != len(whole) + 1:  # one byte more may go unseen
            assert isinstance(error, ours.errors.CorruptTable), f"{len(data)} bytes were read, {error!r}"
            assert path.name in str(error)
    path.unlink()
    assert isinstance(_use_or_typed_error(table), ours.errors.TablewrightError)
    path.write_bytes(whole)
    assert _use(table) == 6499


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["arrow", "bin"])
def test_changed_bytes_of_a_deletion_file(table: Path, tmp_path: Path, kind: str) -> None:
    """Each in a table of its own: a deletion file that was read once is not read again."""
    (path,) = table.glob(f"_deletions/*.{kind}")
    for number, data in enumerate(_flipped(path.read_bytes(), 80)):
        copy = shutil.copytree(table, tmp_path / f"{number}.lance", copy_function=os.link)
        target = copy / path.relative_to(table)
        target.unlink()
        target.write_bytes(data)
        _use_or_typed_error(copy)


@pytest.mark.slow
def test_changed_bytes_of_a_data_file(tmp_path: Path) -> None:
    place = tmp_path / "t.lance"
    lance.write_dataset(numbers(0, 50), str(place))
    (path,) = place.glob("data/*")
    whole = path.read_bytes()
    for data in _flipped(whole, 150):
        path.write_bytes(data)
        _use_or_typed_error(place)
    for tail in _flipped(whole[-40:], 40):  # a wrong count in the footer makes the codec ask for all memory there is
        path.write_bytes(whole[:-40] + tail)
        _use_or_typed_error(place)


@pytest.mark.parametrize("pattern", ["data/*.lance", "_deletions/*.arrow", "_deletions/*.bin"])
def test_validate_finds_missing_and_cut_files(table: Path, pattern: str) -> None:
    path = next(table.glob(pattern))
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(ours.errors.CorruptTable, match=path.name):
        ours.dataset(str(table)).validate()
    path.unlink()
    with pytest.raises(ours.errors.CorruptTable, match=path.name):
        ours.dataset(str(table)).validate()


def test_foreign_files_in_the_place_of_ours(table: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.parquet"
    pq.write_table(numbers(0, 5), foreign)
    other = lance.write_dataset(pa.table({"q": ["another table"]}), str(tmp_path / "other.lance"))
    strangers = [
        foreign,
        *(tmp_path / "other.lance").glob("data/*"),
        *(tmp_path / "other.lance").glob("_versions/*.manifest"),
    ]
    assert other.version == 1
    for path in [latest_manifest(table), *table.glob("data/*.lance"), *table.glob("_deletions/*")]:
        for number, stranger in enumerate(strangers):
            copy = shutil.copytree(table, tmp_path / f"{path.stem}-{number}")
            shutil.copy(stranger, copy / path.relative_to(table))
            error = _use_or_typed_error(copy)
            assert error is not None, f"{stranger.name} was read in the place of {path.name}"


def test_files_that_are_none_of_our_business_are_ignored(table: Path) -> None:
    for name in (
        "notes.txt",
        "x.manifest",
        "18446744073709551999.manifest",
        ".manifest",
        "7.manifest.bak",
        "d5.manifest.tmp",
    ):
        (table / "_versions" / name).write_text("junk")
    for name in (
        "_versions/latest_version_hint.json",
        "_transactions/1-junk.txn",
        "data/stray.lance",
        "_deletions/x.arrow",
    ):
        (table / name).write_bytes(b"\xff junk")
    (table / "data" / ".tmpABC").write_text("half a file")
    assert _use(table) == 6499
    ours.write_dataset(pa.table({"id": [1], "s": ["a"]}), str(table), mode="append")
    assert ours.dataset(str(table)).version == lance.dataset(str(table)).version == 5
    assert _use(table) == 6500


@pytest.mark.parametrize(
    "hint", [b"", b"{}", b'{"version":1}', b'{"version":999}', b'{"version":"x"}', b"\xff\xfe", None]
)
def test_any_hint_is_only_a_hint(table: Path, hint: bytes | None) -> None:
    path = table / "_versions/latest_version_hint.json"
    if hint is None:
        path.unlink()
    else:
        path.write_bytes(hint)
    stale = ours.dataset(str(table), version=3)
    assert _use(table) == 6499
    stale.insert(pa.table({"id": [1], "s": ["a"]}))
    assert stale.version == 5
    assert_same_dataset(table)


def test_damaged_transactions_stop_only_who_needs_them(table: Path) -> None:
    for path in table.glob("_transactions/*"):
        path.write_bytes(b"\xff garbage")
    stale = ours.dataset(str(table), version=3)
    assert _use(table) == 6499
    stale.insert(pa.table({"id": [1], "s": ["a"]}))  # the inline transaction tells the same
    assert_same_dataset(table)


def test_damaged_tags(table: Path) -> None:
    path = table / "_refs/tags/here.json"
    whole = path.read_bytes()
    for data in (b"", b"{", b"[]", b"null", b'{"version": "x"}', b"{}", b'{"version": -1}', b"\xff\xfe", whole[:-3]):
        path.write_bytes(data)
        for action in (lambda: ours.dataset(str(table), version="here"), lambda: ours.dataset(str(table)).tags.list()):
            _only_ours(action)
    path.write_bytes(whole)
    assert ours.dataset(str(table), version="here").version == 1


def _only_ours(action: Any) -> None:
    with pytest.raises(ours.errors.TablewrightError):
        action()

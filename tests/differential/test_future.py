"""Tables from the future: what we don't know survives our writes, and what we must know stops us.

Fields nobody knows yet are put into every message of a manifest, byte by byte; after our append they are still there.
Unknown feature flags refuse reading or writing with UnsupportedFeature, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .changes import fragment
from .referee import UNDER_TEST, assert_same_dataset, everything, lance, numbers, ours, tree
from .wire import ManifestBytes, find, future, latest_manifest, patch, put, varint

only_ours = pytest.mark.skipif(UNDER_TEST != "tablewright", reason="a promise of ours that pylance does not make")

MANIFEST = {  # where in the manifest message, and how many of them there are in the table below
    "manifest": (),
    "field": (1,),
    "fragment": (2,),
    "data file": (2, 2),
    "deletion file": (2, 3),
    "data format": (15,),
    "base path": (18,),
}


def _table(folder: Path) -> str:
    """A clone with a nested column, deletions, an index and config: every message of a manifest occurs."""
    root, uri = str(folder / "root.lance"), str(folder / "t.lance")
    table = numbers(0, 30).append_column("st", [[{"a": i, "b": [i]} for i in range(30)]])
    dataset = lance.write_dataset(table, root, max_rows_per_file=10)
    dataset.create_scalar_index("id", "BTREE")
    lance.dataset(root).shallow_clone(uri, 2)
    dataset = lance.dataset(uri)
    dataset.create_scalar_index("x", "BTREE")
    dataset.delete("id = 3 or id = 25")
    dataset.update_config({"a": "b"})
    return uri


def _rows(start: int, stop: int) -> Any:
    return numbers(start, stop).append_column("st", [[{"a": i, "b": [i]} for i in range(start, stop)]])


def _inject(uri: str) -> dict[str, int]:
    path = latest_manifest(uri)
    parts = ManifestBytes.read(path)
    counts = {}
    for name, place in reversed(MANIFEST.items()):
        counts[name] = len(find(parts.manifest, *place))
        parts.manifest = patch(parts.manifest, place, lambda message, name=name: message + future(name))
    assert parts.index is not None
    counts["index"], counts["index section"] = len(find(parts.index, 1)), 1
    parts.index = patch(parts.index, (1,), lambda message: message + future("index")) + future("index section")
    parts.write(path)
    return counts


def _survivors(uri: str) -> dict[str, int]:
    parts = ManifestBytes.read(latest_manifest(uri))

    def count(message: bytes, name: str, place: tuple[int, ...]) -> int:
        whole = [m for m in find(message, *place) if future(name) in m or _has_all(m, name)]
        return len(whole)

    found = {name: count(parts.manifest, name, place) for name, place in MANIFEST.items()}
    assert parts.index is not None
    return {
        **found,
        "index": count(parts.index, "index", (1,)),
        "index section": count(parts.index, "index section", ()),
    }


def _has_all(message: bytes, name: str) -> bool:
    return [find(message, n) for n in (1997, 1998, 1999, 2000)] == [[b"M"], [name.encode()], [b"abcd"], [b"12345678"]]


@only_ours
def test_unknown_fields_survive_our_append(tmp_path: Path) -> None:
    uri = _table(tmp_path)
    before = everything(lance.dataset(uri)).num_rows
    counts = _inject(uri)
    assert all(counts.values()), counts
    assert _survivors(uri) == counts
    assert_same_dataset(uri)
    ours.write_dataset(_rows(100, 104), uri, mode="append")
    assert _survivors(uri) == counts
    ours.dataset(uri).insert(_rows(104, 106))
    ours.dataset(uri).update_config({"c": "d"})
    assert _survivors(uri) == counts
    assert_same_dataset(uri)
    there = lance.dataset(uri)
    assert there.count_rows() == before + 6
    assert "ScalarIndexQuery" in there.scanner(filter="x = 2.0").explain_plan()
    assert there.to_table(filter="id = 8")["id"].to_pylist() == [8]


@only_ours
def test_unknown_fields_survive_deletes_and_restores_of_ours(tmp_path: Path) -> None:
    uri = _table(tmp_path)
    counts = _inject(uri)
    dataset = ours.dataset(uri)
    victim = lance.dataset(uri).get_fragment(1).delete("id = 12")
    operation = ours.LanceOperation.Delete([fragment(ours, victim)], [], "id = 12")
    ours.LanceDataset.commit(uri, operation, read_version=dataset.version)
    after = _survivors(uri)
    assert after["manifest"] == 1
    assert after["field"] == counts["field"]
    assert after["index"] == counts["index"]
    assert after["base path"] == counts["base path"]
    assert after["fragment"] >= counts["fragment"] - 1  # the other fragments, whatever JSON did to this one
    ours.dataset(uri, version=dataset.version).restore()
    assert _survivors(uri) == counts
    assert_same_dataset(uri)


def _flagged(folder: Path, reader: int, writer: int) -> str:
    uri = str(folder / "t.lance")
    lance.write_dataset(numbers(0, 5), uri)
    path = latest_manifest(uri)
    parts = ManifestBytes.read(path)
    parts.manifest = put(put(parts.manifest, 9, reader), 10, writer)
    parts.write(path)
    return uri


def _works(action: Callable[[], Any], refusal: type[BaseException] | tuple[type[BaseException], ...]) -> bool:
    try:
        action()
    except refusal:
        return False
    return True


BITS = [1 << n for n in (*range(3, 18), 32, 63)]


@pytest.mark.parametrize("place", ["reader", "writer", "both"])
@pytest.mark.parametrize("bit", BITS)
def test_flags_stop_us_where_they_stop_pylance(tmp_path: Path, bit: int, place: str) -> None:
    uri = _flagged(tmp_path, bit if place != "writer" else 0, bit if place != "reader" else 0)
    before = tree(uri)
    refusal = (Exception,)
    if UNDER_TEST == "tablewright":  # a flag that must stand in both places and stands in one is damage
        refusal = (ours.errors.UnsupportedFeature, ours.errors.CorruptTable)
    reads = _works(lambda: ours.dataset(uri).to_table(), refusal)
    assert tree(uri) == before
    writes = _works(lambda: ours.write_dataset(numbers(5, 6), uri, mode="append"), refusal)
    if not writes:
        assert tree(uri) == before
        assert not _works(lambda: ours.write_dataset(numbers(5, 6), uri, mode="overwrite"), refusal)
        assert tree(uri) == before
    else:
        assert_same_dataset(uri)
    other = _flagged(tmp_path / "other", bit if place != "writer" else 0, bit if place != "reader" else 0)
    if not _works(lambda: lance.dataset(other).to_table(), Exception):
        assert not reads, "pylance refuses to read this"
    if not _works(lambda: lance.write_dataset(numbers(5, 6), other, mode="append"), Exception):
        assert not writes, "pylance refuses to write this"


@only_ours
@pytest.mark.parametrize("bit", [512, 8192, 1 << 40])
def test_unknown_writer_flag_refuses_every_way_of_writing(tmp_path: Path, bit: int) -> None:
    uri = _flagged(tmp_path, 0, bit)
    dataset = ours.dataset(uri)
    assert dataset.count_rows() == 5
    fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    before = tree(uri)
    for write in (
        lambda: dataset.insert(numbers(5, 6)),
        lambda: ours.write_dataset(numbers(5, 6), dataset, mode="overwrite"),
        lambda: dataset.restore(),
        lambda: dataset.update_config({"a": "b"}),
        lambda: ours.LanceDataset.commit(uri, ours.LanceOperation.Append(fragments), read_version=1),
        lambda: ours.LanceDataset.commit(uri, ours.LanceOperation.Delete([], [0], "true"), read_version=1),
        lambda: ours.LanceDataset.commit(dataset, ours.LanceOperation.Overwrite(dataset.schema, []), read_version=1),
    ):
        with pytest.raises(ours.errors.UnsupportedFeature, match=f"cannot be written.*Flags: {bit}"):
            write()
        assert tree(uri) == before


@only_ours
@pytest.mark.parametrize("bit", [512, 8192, 1 << 40])
def test_unknown_reader_flag_refuses_with_pylances_words(tmp_path: Path, bit: int) -> None:
    uri = _flagged(tmp_path, bit, bit)
    with pytest.raises(ours.errors.UnsupportedFeature, match=f"cannot be read by this version.*Flags: {bit}"):
        ours.dataset(uri)
    with pytest.raises(ours.errors.UnsupportedFeature):
        ours.write_dataset(numbers(5, 6), uri, mode="append")


@only_ours
@pytest.mark.parametrize(("place", "number"), [((), 22), ((2,), 11), ((2,), 12), ((2,), 13), ((2,), 14)])
def test_structures_we_must_not_ignore_refuse_reading(tmp_path: Path, place: tuple[int, ...], number: int) -> None:
    """A fragment tree, overlays, spilled row lineage: a reader that skips them shows wrong rows."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(numbers(0, 5), uri)
    path = latest_manifest(uri)
    parts = ManifestBytes.read(path)
    content = varint(number << 3 | 2) + b"\x02\x0a\x00"
    parts.manifest = patch(parts.manifest, place, lambda message: message + content)
    parts.write(path)
    before = tree(uri)
    with pytest.raises(ours.errors.UnsupportedFeature):
        ours.dataset(uri).to_table()
    with pytest.raises(ours.errors.UnsupportedFeature):
        ours.write_dataset(numbers(5, 6), uri, mode="append")
    assert tree(uri) == before

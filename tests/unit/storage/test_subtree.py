from __future__ import annotations

import os
from pathlib import Path

from tablewright.storage import Location, SubtreeStore, delete_tree, open_store, related_store
from tablewright.storage.subtree import put_pieces, takes_pieces
from tablewright.testing import FaultyStore, memory_world


def test_a_subtree_is_the_store_at_that_address(tmp_path: Path) -> None:
    below = SubtreeStore(open_store(tmp_path), "tree/b")
    assert below.location.uri == f"{tmp_path}/tree/b"
    below.put("data/x", b"1")
    assert open_store(below.location.uri).get("data/x") == b"1"
    assert below.codec_location("data/x") == Location(f"{tmp_path}/tree/b/data/x")


def test_neighbours_are_reached_through_the_store_at_hand() -> None:
    root = FaultyStore(memory_world().store)
    branch = related_store(root, root.location.uri + "/tree/b")
    assert isinstance(branch, SubtreeStore) and branch.parent is root
    assert related_store(branch, root.location.uri) is root
    assert related_store(branch, branch.location.uri) is branch
    other = related_store(branch, root.location.uri + "/tree/c")
    other.put("x", b"1")
    assert [(call.method, call.path) for call in root.calls] == [("put", "tree/c/x")]


def test_encoded_neighbours() -> None:
    root = open_store("s3://bucket/a%20b")
    below = related_store(root, "s3://bucket/a b/tree/ü")
    assert isinstance(below, SubtreeStore) and below.prefix == "tree/ü"
    assert below.location.uri == "s3://bucket/a%20b/tree/%C3%BC"


def test_strangers_are_opened_with_the_same_options() -> None:
    root = open_store("s3://bucket/a", {"skip_signature": "true"})
    other = related_store(root, "s3://elsewhere/b")
    assert other.location == Location("s3://elsewhere/b", {"skip_signature": "true"})
    assert related_store(open_store("/data/t"), "/data/table").location.uri == "/data/table"


def test_delete_tree(tmp_path: Path) -> None:
    for store in (open_store(tmp_path), memory_world().store):
        for path in ("tree/a/_versions/1", "tree/a/data/x", "tree/ab/x"):
            store.put(path, b"")
        assert delete_tree(store, "tree/a") == 2
        assert [info.path for info in store.list("")] == ["tree/ab/x"]
        assert delete_tree(store, "tree/a") == 0
    assert os.listdir(tmp_path / "tree") == ["ab"]


def test_pieces_are_written_on_local_disks_also_below_a_store(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    below = SubtreeStore(store, "tree/b")
    assert takes_pieces(store) and takes_pieces(below) and not takes_pieces(open_store("memory://no-pieces"))
    put_pieces(below, "data/x", iter([b"one", b"", b" two"]))
    assert store.get("tree/b/data/x") == b"one two"

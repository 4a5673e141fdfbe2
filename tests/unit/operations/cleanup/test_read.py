"""What tasks read from manifests, and the index that is folded from them."""

from __future__ import annotations

import itertools
import pickle

import tablewright as tw
from tablewright.errors import CorruptTable
from tablewright.format.naming import manifest_path
from tablewright.operations.cleanup import read
from tablewright.operations.cleanup.read import NameIndex, ReadTask, list_manifests, plan_reads, run_read
from tablewright.testing import memory_world
from tablewright.world import World


def table(versions: int = 6) -> World:
    world = memory_world()
    ds = tw.write_dataset({"id": [0]}, world)
    for number in range(1, versions):
        ds.insert({"id": [number]})
    return world


def names_of(index: NameIndex, version: int) -> set[str]:
    return set(index.names_in(index.manifests["", manifest_path(version)].own))


def test_a_version_is_the_set_of_its_names() -> None:
    world = table()
    index = NameIndex()
    for task in plan_reads(list_manifests(world.store)):
        index.add(pickle.loads(pickle.dumps(run_read(task, world))))
    files = {info.path for info in world.store.list("") if not info.path.startswith("_versions")}
    assert set(index.numbers) == files
    sizes = [len(names_of(index, version)) for version in range(1, 7)]
    assert sizes == [2, 3, 4, 5, 6, 7]  # one transaction each
    data = [{name for name in names_of(index, version) if name.startswith("data")} for version in range(1, 7)]
    assert all(before < after for before, after in itertools.pairwise(data))


def test_chunks_give_the_same_as_one_task() -> None:
    world = table()
    whole, parts = NameIndex(), NameIndex()
    entries = sorted(list_manifests(world.store), key=lambda entry: entry.version)
    whole.add(run_read(ReadTask(tuple(entries)), world))
    for entry in reversed(entries):
        parts.add(run_read(ReadTask((entry,)), world))
    for version in range(1, 7):
        assert names_of(whole, version) == names_of(parts, version)


def test_each_distinct_fragment_is_decoded_once(monkeypatch: object) -> None:
    world = table(20)
    decoded: list[bytes] = []
    original = read.names_of_fragment

    def counted(data: bytes, path: str) -> object:
        decoded.append(data)
        return original(data, path)

    monkeypatch.setattr(read, "names_of_fragment", counted)  # type: ignore[attr-defined]
    (task,) = plan_reads(list_manifests(world.store))
    run_read(task, world)
    assert len(decoded) == len(set(decoded)) == 20


def test_a_manifest_that_is_gone_is_left_out_and_a_damaged_one_is_reported() -> None:
    world = table(3)
    entries = list_manifests(world.store)
    world.store.delete(manifest_path(1))
    world.store.put(manifest_path(2), b"junk")
    result = run_read(ReadTask(tuple(entries)), world)
    problems = {manifest.entry.version: type(manifest.problem) for manifest in result.manifests}
    assert problems == {2: CorruptTable, 3: type(None)}


def test_both_names_and_detached_versions_are_listed() -> None:
    world = table(2)
    world.store.put("_versions/1.manifest", world.store.get(manifest_path(1)))
    detached = (1 << 63) + 5
    world.store.put(f"_versions/d{detached}.manifest", b"x")
    world.store.put("_versions/junk.txt", b"x")
    found = sorted((entry.version, entry.is_detached) for entry in list_manifests(world.store))
    assert found == [(1, False), (1, False), (2, False), (detached, True)]

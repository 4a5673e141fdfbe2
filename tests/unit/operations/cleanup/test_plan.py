"""The decision about each file, from names and a listing."""

from __future__ import annotations

from uuid import UUID

import pytest
from pyroaring import BitMap

from tablewright.errors import CorruptTable
from tablewright.format.naming import index_dir, index_part_name
from tablewright.operations.cleanup.options import CleanupOptions
from tablewright.operations.cleanup.plan import plan_files, reach_of, without
from tablewright.operations.cleanup.read import ManifestEntry, ManifestNames, NameIndex
from tablewright.storage import ObjectInfo

DAY = 86_400 * 10**9
NOW = 100 * DAY


def entry(version: int, line: str = "") -> ManifestEntry:
    return ManifestEntry(
        path=f"_versions/{version}.manifest", version=version, is_detached=False, size=7, modified_ns=0, line=line
    )


def index(*manifests: tuple[ManifestEntry, list[str], list[str]]) -> NameIndex:
    names = NameIndex()
    for each, own, shared in manifests:
        names.manifests[each.key] = ManifestNames(
            entry=each, timestamp_ns=0, own=names.numbers_of(own), shared=names.numbers_of(shared)
        )
    return names


def listed(*paths: str, age_days: float = 0) -> list[ObjectInfo]:
    return [ObjectInfo(path, 10, int(NOW - age_days * DAY)) for path in paths]


def gone(
    names: NameIndex,
    removed: list[ManifestEntry],
    listing: list[ObjectInfo],
    interrupted: list[str] | None = None,
    **options: bool,
) -> dict[str, bool]:
    """The paths that go, and whether each is unverified."""
    reach = reach_of(names, removed, interrupted or [])
    plan = plan_files(names, reach, removed, listing, CleanupOptions(**options), now_ns=NOW)  # type: ignore[arg-type]
    return {file.path: file.unverified for file, _ in plan.files}


def test_named_by_removed_versions_only() -> None:
    names = index(
        (entry(1), ["data/a.lance", "data/b.lance"], []),
        (entry(2), ["data/b.lance"], []),
    )
    listing = listed("data/a.lance", "data/a/1.blob", "data/b.lance", "data/b/1.blob", "data/c.lance")
    assert gone(names, [entry(1)], listing) == {"data/a.lance": False, "data/a/1.blob": False}
    assert gone(names, [], listing) == {}


def test_a_branch_protects_what_it_shares_and_not_what_it_owns() -> None:
    names = index(
        (entry(1), ["data/a.lance", "data/b.lance"], []),
        (entry(1, "tree/x"), ["data/b.lance"], ["data/a.lance"]),
    )
    assert gone(names, [entry(1)], listed("data/a.lance", "data/b.lance")) == {"data/b.lance": False}


@pytest.mark.parametrize(("age", "goes"), [(0, False), (6.99, False), (7, True), (30, True), (-5, False)])
def test_what_no_version_names_waits_seven_days(age: float, goes: bool) -> None:
    listing = listed("data/x.lance", age_days=age)
    assert gone(index(), [], listing) == ({"data/x.lance": True} if goes else {})
    assert gone(index(), [], listing, delete_unverified=True) == {"data/x.lance": True}


def test_parts_of_a_build_wait_seven_days_in_an_index_that_is_kept() -> None:
    """A task that ran twice wrote one after the index was committed; other files of the index stay for ever."""
    directory = index_dir(UUID(int=1))
    part, other = f"{directory}/{index_part_name(UUID(int=2))}", f"{directory}/page_data.lance"
    names = index((entry(1), [directory], []), (entry(2), [directory], []))
    assert gone(names, [], listed(part, other, age_days=6.9)) == {}
    assert gone(names, [entry(1)], listed(part, other, age_days=7)) == {part: True}
    assert gone(names, [], listed(part, other), delete_unverified=True) == {part: True}
    dropped = index((entry(1), [directory], []), (entry(2), [], []))
    assert gone(dropped, [entry(1)], listed(part, other)) == {part: False, other: False}


def test_what_an_interrupted_cleanup_meant_to_remove_goes_unless_it_is_named() -> None:
    names = index((entry(2), ["data/b.lance"], []))
    listing = listed("data/a.lance", "data/b.lance")
    assert gone(names, [], listing, ["data/a.lance", "data/b.lance"]) == {"data/a.lance": False}


def test_what_is_counted_as_waiting_and_what_is_never_looked_at() -> None:
    reach = reach_of(index(), [], [])
    listing = listed("data/x.lance", "data/notes.txt", "data/inner/data/y.lance", "_transactions/1-x.txn")
    plan = plan_files(index(), reach, [], listing, CleanupOptions(), now_ns=NOW)
    assert (plan.waiting_files, plan.waiting_bytes, plan.files) == (2, 20, ())


def test_branches_inside_the_directory_of_a_branch_are_not_touched() -> None:
    reach = reach_of(index(), [], [])
    options = CleanupOptions(delete_unverified=True)
    listing = listed("data/1.blob/2.blob", "data/x.lance")
    plan = plan_files(index(), reach, [], listing, options, now_ns=NOW, nested=["data/1.blob"])
    assert [file.path for file, _ in plan.files] == ["data/x.lance"]


def test_a_manifest_that_stays_must_be_readable() -> None:
    names = index((entry(1), [], []), (entry(2), [], []))
    broken = ManifestNames(
        entry=entry(2), timestamp_ns=0, own=BitMap(), shared=BitMap(), problem=CorruptTable("x", ("broken",))
    )
    names.manifests[entry(2).key] = broken
    with pytest.raises(CorruptTable):
        reach_of(names, [entry(1)], [])
    assert not reach_of(names, [entry(2)], []).dead


def test_files_that_came_to_be_named_stay() -> None:
    names = index((entry(1), ["data/a.lance", "data/b.lance"], []))
    reach = reach_of(names, [entry(1)], [])
    listing = listed("data/a.lance", "data/b.lance", "data/old.lance", age_days=9)
    plan = plan_files(names, reach, [entry(1)], listing, CleanupOptions(), now_ns=NOW)
    left = without(plan, names, names.numbers_of(["data/a.lance", "data/old.lance"]))
    assert [file.path for file in left] == ["data/b.lance"]
    assert next(file.path for file in plan.all_files) == "_versions/1.manifest"

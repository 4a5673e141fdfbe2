"""Versions, time travel, restore, tags and branches: what one library names, the other finds."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import Any

import pytest

from .referee import assert_same_dataset, assert_same_rows, copy_of, everything, lance, numbers, ours, state_of

STABLE = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
MAKER = pytest.mark.parametrize("maker", [ours, lance], ids=["by ours", "by pylance"])


def _history(uri: str, stable: bool = False, v2: bool = True) -> None:
    """Five versions: create, append, delete, overwrite, append."""
    options = {"enable_stable_row_ids": stable, "enable_v2_manifest_paths": v2}
    lance.write_dataset(numbers(0, 6), uri, max_rows_per_file=4, **options)
    lance.write_dataset(numbers(6, 9), uri, mode="append")
    lance.dataset(uri).delete("id in (1, 7)")
    lance.write_dataset(numbers(20, 23, text=False), uri, mode="overwrite")
    lance.write_dataset(numbers(23, 25, text=False), uri, mode="append")


@STABLE
@pytest.mark.parametrize("v2", [True, False], ids=["v2names", "v1names"])
def test_every_version_by_number_and_time(tmp_path: Path, stable: bool, v2: bool) -> None:
    uri = str(tmp_path / "t.lance")
    _history(uri, stable, v2)
    here, there = ours.dataset(uri), lance.dataset(uri)
    for left, right in zip(here.versions(), there.versions(), strict=True):
        assert (left["version"], left["metadata"]) == (right["version"], right["metadata"])
        assert abs(left["timestamp"] - right["timestamp"]) <= dt.timedelta(
            microseconds=1
        )  # pylance's is a rounded float
    assert (here.version, here.latest_version) == (5, 5)
    for entry in there.versions():
        assert_same_dataset(uri, version=entry["version"])
        left = here.checkout_version(entry["version"])
        assert_same_rows(everything(left), everything(there.checkout_version(entry["version"])))
        assert (left.version, left.latest_version, here.version) == (entry["version"], 5, 5)
        for moment in (entry["timestamp"] + dt.timedelta(microseconds=n) for n in (2, 500)):
            assert ours.dataset(uri, asof=moment).version == lance.dataset(uri, asof=moment).version
    late = dt.datetime.now() + dt.timedelta(days=1)
    assert ours.dataset(uri, asof=late).version == 5
    words = f"{late:%Y-%m-%d %H:%M:%S}"
    assert ours.dataset(uri, asof=words).version == lance.dataset(uri, asof=words).version == 5


@STABLE
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_restore_is_pylances_restore(tmp_path: Path, stable: bool, version: int) -> None:
    uri = str(tmp_path / "t.lance")
    _history(uri, stable)
    other = copy_of(uri, "copy.lance")
    for library, place in ((ours, uri), (lance, other)):
        dataset = library.dataset(place, version=version)
        dataset.restore()
        assert dataset.version == 6
    assert state_of(uri, names=True) == state_of(other, names=True)
    assert_same_dataset(uri)
    for library in (ours, lance):  # ids go on where they were, whoever writes next
        for place in (uri, other):
            library.write_dataset(numbers(90, 92, text=version <= 3), place, mode="append")
        assert state_of(uri)["rows"] == state_of(other)["rows"]


@MAKER
def test_tags(tmp_path: Path, maker: Any) -> None:
    uri = str(tmp_path / "t.lance")
    _history(uri)
    tags = maker.dataset(uri).tags
    tags.create("first", 1)
    tags.create("v1.0-rc_1", 2)
    tags.create("here")
    tags.update("first", 3)
    tags.create("gone", 4)
    tags.delete("gone")
    for library in (ours, lance):
        dataset = library.dataset(uri)
        assert {name: tag["version"] for name, tag in dataset.tags.list().items()} == {
            "first": 3,
            "v1.0-rc_1": 2,
            "here": 5,
        }
        assert dataset.tags.get_version("first") == 3
        assert dataset.checkout_version("v1.0-rc_1").version == 2
        assert library.dataset(uri, version="first").version == 3
    assert ours.dataset(uri).tags.list() == lance.dataset(uri).tags.list()
    assert [name for name, _ in ours.dataset(uri).tags.list_ordered()] == [
        name for name, _ in lance.dataset(uri).tags.list_ordered()
    ]
    assert_same_dataset(uri, version="first")
    removed = lance.dataset(uri).cleanup_old_versions(dt.timedelta(0), error_if_tagged_old_versions=False)
    assert removed.old_versions == 2  # pylance respects the tags, whoever made them
    assert_same_dataset(uri, version="first")


@MAKER
def test_tags_refuse_what_pylance_refuses(tmp_path: Path, maker: Any) -> None:
    uri = str(tmp_path / "t.lance")
    _history(uri)
    tags = maker.dataset(uri).tags
    tags.create("a", 1)
    for wrong in (
        lambda: tags.create("a", 2),
        lambda: tags.create("b", 99),
        lambda: tags.update("none", 1),
        lambda: tags.delete("none"),
        lambda: tags.get_version("none"),
        lambda: tags.create("with/slash", 1),
        lambda: tags.create("with space", 1),
        lambda: tags.create(".hidden", 1),
        lambda: tags.create("x..y", 1),
        lambda: tags.create("x.lock", 1),
        lambda: tags.create("", 1),
    ):
        with pytest.raises((ValueError, OSError)):
            wrong()
    assert set(lance.dataset(uri).tags.list()) == {"a"}


@STABLE
@MAKER
def test_branches(tmp_path: Path, maker: Any, stable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    _history(uri, stable)
    branch = maker.dataset(uri).create_branch("dev", 3)
    assert branch.version == 3
    assert branch.count_rows() == 7
    for number, library in enumerate((ours, lance, ours)):
        at = library.dataset(uri).checkout_version(("dev", None))
        assert at.version == 3 + number
        library.write_dataset(numbers(50 + number, 51 + number), at, mode="append")
        here, there = (which.dataset(uri).checkout_version(("dev", None)) for which in (ours, lance))
        there.validate()
        assert_same_rows(everything(here), everything(there))
        assert here.count_rows() == 8 + number
    assert ours.dataset(uri).branches.list() == lance.dataset(uri).branches.list()
    assert ours.dataset(uri).count_rows() == lance.dataset(uri).count_rows() == 5
    old = ours.dataset(uri).checkout_version(("dev", 4))
    assert_same_rows(old.to_table(), lance.dataset(uri).checkout_version(("dev", 4)).to_table())
    assert_same_dataset(uri)
    assert_same_dataset(f"{uri}/tree/dev")
    maker.dataset(uri).branches.delete("dev")
    assert ours.dataset(uri).branches.list() == lance.dataset(uri).branches.list() == {}


def test_a_shallow_clone_by_pylance_reads_and_grows_here(tmp_path: Path) -> None:
    uri, clone = str(tmp_path / "t.lance"), str(tmp_path / "clone.lance")
    _history(uri, stable=True)
    lance.dataset(uri).shallow_clone(clone, 3)
    assert_same_dataset(clone)
    ours.write_dataset(numbers(70, 73), clone, mode="append")
    assert_same_dataset(clone)
    lance.dataset(clone).delete("id in (0, 71)")
    assert_same_dataset(clone)
    assert_same_dataset(uri)


@MAKER
def test_transactions_are_told_by_both(tmp_path: Path, maker: Any) -> None:
    uri = str(tmp_path / "t.lance")
    maker.write_dataset(numbers(0, 3), uri, commit_message="made")
    maker.write_dataset(numbers(3, 5), uri, mode="append", transaction_properties={"k": "v"})
    maker.dataset(uri, version=1).restore()
    for library in (ours, lance):
        dataset = library.dataset(uri)
        found = [dataset.read_transaction(version) for version in (1, 2, 3)]
        assert [type(each.operation).__name__ for each in found] == ["Overwrite", "Append", "Restore"]
        assert [each.read_version for each in found] == [0, 1, 2]
        assert found[1].transaction_properties["k"] == "v"
        assert found[0].transaction_properties["__lance_commit_message"] == "made"
        assert [each.uuid for each in dataset.get_transactions()] == [each.uuid for each in reversed(found)]


def test_opening_by_time_follows_the_clock_of_the_commits(tmp_path: Path) -> None:
    uri, between = str(tmp_path / "t.lance"), []
    for number in range(4):
        (ours if number % 2 else lance).write_dataset(numbers(number, number + 1), uri, mode="append")
        time.sleep(0.005)
        between.append(dt.datetime.now())
        time.sleep(0.005)
    assert [ours.dataset(uri, asof=moment).version for moment in between] == [1, 2, 3, 4]
    assert [lance.dataset(uri, asof=moment).version for moment in between] == [1, 2, 3, 4]

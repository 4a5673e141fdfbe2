from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tablewright.errors import InvalidRequest, WrongType
from tablewright.format import naming
from tablewright.format.fragment import DeletionFile, DeletionFileType

DETACHED = (1 << 63) + 12345


@pytest.mark.parametrize("version", [1, 2, 999, (1 << 63) - 1])
@pytest.mark.parametrize("v2", [True, False])
def test_manifest_names_come_back(version: int, v2: bool) -> None:
    path = naming.manifest_path(version, v2)
    assert naming.parse_manifest_name(path) == (version, "v2" if v2 else "v1")


def test_newer_versions_sort_first() -> None:
    names = [naming.manifest_path(version) for version in range(1, 200)]
    assert sorted(names) == names[::-1]


_V2 = [naming.manifest_path(version).rpartition("/")[2] for version in (3, 5, 70)]
_OTHERS = {
    "V2 alone": [],
    "the hint": ["latest_version_hint.json"],
    "V1, lower": ["4.manifest"],
    "V1, higher": ["71.manifest", "9.manifest"],
    "a detached one": [f"d{DETACHED}.manifest"],
    "unfinished": [f"{_V2[2]}#12", ".hidden", "18446744073709551000.manifest#1"],
    "of that length, no number": ["1844674407370955161x.manifest", "0" * 29],
    "of that length, no version": ["00000000000000000001.manifest"],
}


@pytest.mark.parametrize("v2", [[], _V2[:1], _V2, _V2[::-1]], ids=["none", "one", "up", "down"])
@pytest.mark.parametrize("others", _OTHERS.values(), ids=_OTHERS)
def test_the_newest_of_many_names(v2: list[str], others: list[str]) -> None:
    parsed = [(naming.parse_manifest_name(name), name) for name in [*others, *v2]]
    every = [(found[0], f"_versions/{name}", found[1] == "v2") for found, name in parsed if found]
    expected = max((each for each in every if each[0] < DETACHED - 20_000), default=None)
    assert naming.newest_manifest(iter([*others, *v2])) == expected
    assert naming.newest_manifest([*v2, *others]) == expected


def test_a_detached_version_has_its_own_name() -> None:
    path = naming.manifest_path(DETACHED)
    assert path == naming.detached_path(DETACHED) == f"_versions/d{DETACHED}.manifest"
    assert naming.parse_manifest_name(path) == (DETACHED, "detached")
    assert naming.is_detached(DETACHED)
    assert not naming.is_detached(5)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".manifest",
        "0.manifest",
        "01.manifest",
        "-1.manifest",
        "1.manifest#1",
        "x1.manifest",
        "1.manifest.tmp",
        ".tmpabc",
        "d7.manifest",
        "١.manifest",
        f"{(1 << 64) - 1}.manifest",
        "99999999999999999999.manifest",
        "latest_version_hint.json",
    ],
)
def test_what_is_no_manifest(name: str) -> None:
    assert naming.parse_manifest_name(name) is None


def test_paths() -> None:
    uuid = UUID("12345678-1234-5678-1234-567812345678")
    array = DeletionFile(file_type=DeletionFileType.ARROW_ARRAY, read_version=4, id=9, num_deleted_rows=1)
    bitmap = DeletionFile(file_type=DeletionFileType.BITMAP, read_version=4, id=9, num_deleted_rows=1)
    assert naming.deletion_path(3, array) == "_deletions/3-4-9.arrow"
    assert naming.deletion_path(3, bitmap) == "_deletions/3-4-9.bin"
    assert naming.transaction_path(3, uuid) == f"_transactions/3-{uuid}.txn"
    assert naming.transaction_file_path(naming.transaction_name(3, uuid)) == naming.transaction_path(3, str(uuid))
    assert naming.index_dir(uuid) == f"_indices/{uuid}"
    assert naming.data_path("a.lance") == "data/a.lance"
    assert naming.tag_path("v1.0") == "_refs/tags/v1.0.json"
    assert naming.tag_path("ä") == "_refs/tags/%C3%A4.json"
    assert naming.branch_path("a/b") == "_refs/branches/a%2Fb.json"
    assert naming.branch_root("a/b") == "tree/a/b"


def test_a_data_file_name_holds_all_bits_of_its_uuid() -> None:
    name = naming.new_data_file_name(UUID("a1b2c3d4-e5f6-4789-8abc-def012345678"))
    assert name == "101000011011001011000011d4e5f647898abcdef012345678.lance"
    assert int(name[:24], 2).to_bytes(3, "big").hex() + name[24:50] == "a1b2c3d4e5f647898abcdef012345678"


@pytest.mark.parametrize("tag", ["a", "A.b-c_1", "ä", "-a", "_", "main"])
def test_good_tags(tag: str) -> None:
    naming.check_tag_name(tag)


@pytest.mark.parametrize("tag", ["", ".a", "a.", "a..b", "a.lock", "a/b", "a b", "a@", "a%2F", "a\\b", "a\n"])
def test_bad_tags(tag: str) -> None:
    with pytest.raises(InvalidRequest, match="Ref is invalid: Ref "):
        naming.check_tag_name(tag)


@pytest.mark.parametrize("branch", ["a", "A.b-c_1", ".a", "a.", "a/b", "ä", "a/main", "MAIN"])
def test_good_branches(branch: str) -> None:
    naming.check_branch_name(branch)


@pytest.mark.parametrize(
    "branch", ["", "a..b", "a.lock", "/a", "a/", "a//b", "a b", "main", "a/b.lock", "a\\b", "../a", ".", "a/./b"]
)
def test_bad_branches(branch: str) -> None:
    with pytest.raises(InvalidRequest, match="Ref is invalid: "):
        naming.check_branch_name(branch)


def test_the_hint() -> None:
    assert naming.encode_hint(12) == b'{"version":12}'
    assert naming.decode_hint(naming.encode_hint(12)) == 12
    assert naming.decode_hint(b'{"version": 3, "more": 1}') == 3
    for junk in (b"", b"7", b"[]", b"null", b"{}", b'{"version":"7"}', b'{"version":0}', b'{"version":-1}', b"\xff"):
        assert naming.decode_hint(junk) is None
    for junk in (b'{"version":true}', b'{"version":1.5}', b'{"version":18446744073709551616}', b"[" * 100_000):
        assert naming.decode_hint(junk) is None


@pytest.mark.parametrize("name", [3, b"x", None, ["x"]])
def test_names_are_texts(name: Any) -> None:
    for check in (naming.check_tag_name, naming.check_branch_name):
        with pytest.raises(WrongType, match="must be text"):
            check(name)

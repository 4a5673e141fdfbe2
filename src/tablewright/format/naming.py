"""The paths of all files of a table, relative to its root.

A version number becomes a manifest name in one of two ways: V1 is the plain number, V2 counts down from 2**64 - 1 in
twenty digits, so that a lexicographic listing shows the newest first. A detached version (bit 63 set) has its own name
and is never the latest.

Format: ``docs/format/table.md#directory-layout``, ``docs/format/table.md#manifest-names``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import compress
from typing import Literal
from urllib.parse import quote
from uuid import UUID

from tablewright.checks import check_text
from tablewright.errors import InvalidRequest
from tablewright.format.fragment.value import DeletionFile, DeletionFileType, Fragment

__all__ = [
    "DATA_DIR",
    "DELETIONS_DIR",
    "HINT_PATH",
    "INDICES_DIR",
    "TRANSACTIONS_DIR",
    "VERSIONS_DIR",
    "branch_path",
    "branch_root",
    "check_branch_name",
    "check_tag_name",
    "data_path",
    "data_paths",
    "decode_hint",
    "deletion_file_path",
    "deletion_path",
    "detached_path",
    "encode_hint",
    "index_dir",
    "index_part_name",
    "is_detached",
    "is_index_part",
    "manifest_path",
    "new_data_file_name",
    "newest_manifest",
    "parse_manifest_name",
    "tag_path",
    "transaction_file_path",
    "transaction_name",
    "transaction_path",
]

VERSIONS_DIR = "_versions"
TRANSACTIONS_DIR = "_transactions"
DELETIONS_DIR = "_deletions"
INDICES_DIR = "_indices"
DATA_DIR = "data"
HINT_PATH = f"{VERSIONS_DIR}/latest_version_hint.json"

Scheme = Literal["v1", "v2", "detached"]

_U64_MAX = (1 << 64) - 1
_DETACHED_FROM = 1 << 63
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_INDEX_PART = re.compile(rf"{INDICES_DIR}/{_UUID}/part-{_UUID}\.lance")
_MANIFEST_NAME = re.compile(r"(d?)(0|[1-9][0-9]{0,18}|[0-9]{20})\.manifest")
_V2_DIGITS = 20
_V2_NAME_LENGTH = _V2_DIGITS + len(".manifest")
_DELETION_SUFFIX: dict[int, str] = {DeletionFileType.ARROW_ARRAY: "arrow", DeletionFileType.BITMAP: "bin"}


def is_detached(version: int) -> bool:
    """Whether this is the number of a detached version, which is not part of the table's history."""
    return version >= _DETACHED_FROM


def manifest_path(version: int, v2: bool = True) -> str:
    """Where the manifest of a version is kept.

    >>> manifest_path(1)
    '_versions/18446744073709551614.manifest'
    >>> manifest_path(1, v2=False)
    '_versions/1.manifest'
    """
    if is_detached(version):
        return detached_path(version)
    name = f"{_U64_MAX - version:020d}" if v2 else str(version)
    return f"{VERSIONS_DIR}/{name}.manifest"


def detached_path(version: int) -> str:
    """Where the manifest of a detached version is kept."""
    return f"{VERSIONS_DIR}/d{version}.manifest"


def parse_manifest_name(name: str) -> tuple[int, Scheme] | None:
    """Version and scheme of a file in ``_versions``; ``None`` if it is no manifest. Takes a name or a path.

    >>> parse_manifest_name("18446744073709551610.manifest")
    (5, 'v2')
    >>> parse_manifest_name("latest_version_hint.json") is None
    True
    """
    match = _MANIFEST_NAME.fullmatch(name.rsplit("/", 1)[-1])
    if not match:
        return None
    number = int(match[2])
    if match[1]:
        return (number, "detached") if _DETACHED_FROM <= number <= _U64_MAX else None
    version, scheme = (_U64_MAX - number, "v2") if len(match[2]) == _V2_DIGITS else (number, "v1")
    if not 0 < version < _DETACHED_FROM:
        return None
    return version, "v2" if scheme == "v2" else "v1"


def newest_manifest(names: Iterable[str]) -> tuple[int, str, bool] | None:
    """The highest version among file names of ``_versions``: its number, path, and whether the name is V2.

    V2 names have one length and sort newest first, so of these only the smallest is parsed. A commit calls it with the
    names of all versions, so these are sorted out without a step of Python for each.

    >>> newest_manifest(["18446744073709551610.manifest", "18446744073709551611.manifest", "4.manifest", "x.json"])
    (5, '_versions/18446744073709551610.manifest', True)
    """
    named = tuple(names)
    others = list(compress(named, map(_V2_NAME_LENGTH.__ne__, map(len, named))))
    long = [min(named, default="")]
    if not _is_v2(long[0]):
        long = [name for name in named if len(name) == _V2_NAME_LENGTH]
        smallest = min(long, default="")
        long = [smallest] if _is_v2(smallest) else long
    parsed = ((parse_manifest_name(name), name) for name in (*others, *long))
    entries = [(found[0], found[1] == "v2", name) for found, name in parsed if found and found[1] != "detached"]
    if not entries:
        return None
    version, v2, name = max(entries)
    return version, f"{VERSIONS_DIR}/{name}", v2


def _is_v2(name: str) -> bool:
    parsed = parse_manifest_name(name) if len(name) == _V2_NAME_LENGTH else None
    return parsed is not None and parsed[1] == "v2"


def transaction_name(read_version: int, uuid: str | UUID) -> str:
    """The file name that ``Manifest.transaction_file`` holds."""
    return f"{read_version}-{uuid}.txn"


def transaction_path(read_version: int, uuid: str | UUID) -> str:
    """Where a transaction is kept."""
    return transaction_file_path(transaction_name(read_version, uuid))


def transaction_file_path(name: str) -> str:
    """Where the transaction file of this name is kept."""
    return f"{TRANSACTIONS_DIR}/{name}"


def deletion_path(fragment_id: int, deletion: DeletionFile) -> str:
    """Where the deleted offsets of a fragment are kept."""
    return deletion_file_path(fragment_id, deletion.read_version, deletion.id, deletion.file_type)


def deletion_file_path(fragment_id: int, read_version: int, file_id: int, file_type: int) -> str:
    """Where a deletion file is kept, from its numbers.

    >>> deletion_file_path(3, 7, 42, DeletionFileType.BITMAP)
    '_deletions/3-7-42.bin'
    """
    return f"{DELETIONS_DIR}/{fragment_id}-{read_version}-{file_id}.{_DELETION_SUFFIX[file_type]}"


def data_path(name: str) -> str:
    """Where the data file of this name is kept; ``DataFile.path`` holds the name."""
    return f"{DATA_DIR}/{name}"


def data_paths(fragments: Iterable[Fragment]) -> tuple[str, ...]:
    """Where the data files of these fragments are kept."""
    return tuple([data_path(file.path) for fragment in fragments for file in fragment.files])


def new_data_file_name(uuid: UUID) -> str:
    """A data file's name: 24 binary digits, which spread files over an object store's partitions, then 26 hex digits.

    >>> new_data_file_name(UUID("00000000-0000-0000-0000-000000000001"))
    '00000000000000000000000000000000000000000000000001.lance'
    """
    return f"{int.from_bytes(uuid.bytes[:3], 'big'):024b}{uuid.bytes[3:].hex()}.lance"


def index_dir(uuid: UUID) -> str:
    """The directory with the files of an index."""
    return f"{INDICES_DIR}/{uuid}"


def index_part_name(uuid: UUID) -> str:
    """The name of a file that tasks of a build write in the directory of an index, and that is no part of the index."""
    return f"part-{uuid}.lance"


def is_index_part(path: str) -> bool:
    """Whether a path below the table's root is that of such a file.

    >>> index = index_dir(UUID(int=1))
    >>> is_index_part(f"{index}/{index_part_name(UUID(int=2))}"), is_index_part(f"{index}/page_data.lance")
    (True, False)
    """
    return _INDEX_PART.fullmatch(path) is not None


def tag_path(tag: str) -> str:
    """Where a tag is kept, in the root of the table."""
    return f"_refs/tags/{quote(tag, safe='')}.json"


def branch_path(branch: str) -> str:
    """Where a branch is described, in the root of the table.

    >>> branch_path("team/try")
    '_refs/branches/team%2Ftry.json'
    """
    return f"_refs/branches/{quote(branch, safe='')}.json"


def branch_root(branch: str) -> str:
    """The directory that is the branch's own table."""
    return f"tree/{branch}"


def check_tag_name(tag: str) -> None:
    """Raise :class:`InvalidRequest` for a name that no tag can have."""
    check_text(tag, "the name of a tag")
    if not tag:
        _refuse("Ref cannot be empty")
    if not _is_plain(tag):
        _refuse("Ref characters must be either alphanumeric, '.', '-' or '_'")
    if tag.startswith("."):
        _refuse("Ref cannot begin with a dot")
    if tag.endswith("."):
        _refuse("Ref cannot end with a dot")
    if tag.endswith(".lock"):
        _refuse("Ref cannot end with .lock")
    if ".." in tag:
        _refuse("Ref cannot have two consecutive dots")


def check_branch_name(branch: str) -> None:
    """Raise :class:`InvalidRequest` for a name that no branch can have. Parts may be separated by ``/``."""
    check_text(branch, "the name of a branch")
    if not branch:
        _refuse("Branch name cannot be empty")
    if branch.startswith("/") or branch.endswith("/"):
        _refuse("Branch name cannot start or end with a '/'")
    if "//" in branch:
        _refuse("Branch name cannot contain consecutive '/'")
    if ".." in branch or "\\" in branch:
        _refuse("Branch name cannot contain '..' or '\\'")
    for part in branch.split("/"):
        if not _is_plain(part) or part == ".":
            _refuse(
                f"Branch segment '{part}' contains invalid characters. Only alphanumeric, '.', '-', '_' are allowed."
            )
    if branch.endswith(".lock"):
        _refuse("Branch name cannot end with '.lock'")
    if branch == "main":
        _refuse('"main" is reserved for the default branch; use a different branch name')


def _is_plain(name: str) -> bool:
    return all(letter.isalnum() or letter in ".-_" for letter in name)


def _refuse(reason: str) -> None:
    raise InvalidRequest(f"Ref is invalid: {reason}")


def encode_hint(version: int) -> bytes:
    """The advisory file that names the latest version.

    >>> encode_hint(7)
    b'{"version":7}'
    """
    return b'{"version":%d}' % version


def decode_hint(data: bytes) -> int | None:
    """The version that the hint names, or ``None`` for junk: it is only a hint."""
    try:
        version = json.loads(data)["version"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    is_version = isinstance(version, int) and not isinstance(version, bool) and 0 < version < _DETACHED_FROM
    return version if is_version else None

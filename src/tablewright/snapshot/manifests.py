"""The manifest of each table that this process has decoded or written last, found again by its bytes.

Whoever opens a table once per request, or appends to it by its address, reads the same manifest, or the one that it has
just written. Reading the bytes is quick, decoding and checking them is not. One manifest is kept for each directory of
versions, so a loop of commits leaves one behind; it is used only if name and all bytes are the same, because the name
alone may come again, where a table was dropped and created again.

A manifest whose row ids lie in other files (as early releases left them) is not kept: its bytes are not all of it.

Tests: ``tests/unit/snapshot/test_manifests.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tablewright.cache import CacheKind
from tablewright.format.envelope import ManifestFile, decode_manifest_file
from tablewright.format.fragment import SequenceFile

__all__ = ["decoded_manifest", "keep_manifest"]

_ENTRY_OVERHEAD_BYTES = 4096
_COPIES = 4  # the file, its fragments one by one, and the columns over them


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """A manifest, and the name and bytes of its file."""

    where: str
    data: bytes
    file: ManifestFile


_manifests = CacheKind[_Kept]("manifests")


def decoded_manifest(where: str, data: bytes, external: Callable[[SequenceFile], bytes]) -> ManifestFile:
    """The manifest in the bytes of the file at ``where``. Errors are those of :func:`decode_manifest_file`."""
    kept = _manifests.find(_directory(where))
    if kept is not None and kept.where == where and kept.data == data:
        return kept.file
    elsewhere: list[SequenceFile] = []

    def noted(place: SequenceFile) -> bytes:
        elsewhere.append(place)
        return external(place)

    file = decode_manifest_file(data, where, noted)
    if not elsewhere:
        keep_manifest(where, data, file)
    return file


def keep_manifest(where: str, data: bytes, file: ManifestFile) -> None:
    """Note what the bytes mean that were read from ``where``, or just written there."""
    _manifests.keep(_directory(where), _Kept(where, data, file), len(data) * _COPIES + _ENTRY_OVERHEAD_BYTES)


def _directory(where: str) -> str:
    return where.rpartition("/")[0]

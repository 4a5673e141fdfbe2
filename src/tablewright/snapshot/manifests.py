"""Manifests that this process has decoded or written, found again by their bytes.

Whoever opens a table once per request, or appends to it by its address, reads the same manifest, or the one that it has
just written. Reading the bytes is quick, decoding and checking them is not. The key is the address together with all
bytes: the name alone may come again, where a table was dropped and created again.

A manifest whose row ids lie in other files (as early releases left them) is not kept: its bytes are not all of it.

Tests: ``tests/unit/snapshot/test_manifests.py``.
"""

from __future__ import annotations

from collections.abc import Callable

from tablewright.cache import CacheKind
from tablewright.format.envelope import ManifestFile, decode_manifest_file
from tablewright.format.fragment import SequenceFile

__all__ = ["decoded_manifest", "keep_manifest"]

_ENTRY_OVERHEAD_BYTES = 4096
_COPIES = 4  # the file, its fragments one by one, and the columns over them

_manifests = CacheKind[ManifestFile]("manifests")


class _Incomplete(Exception):
    """What was decoded depends on other files."""

    def __init__(self, file: ManifestFile) -> None:
        self.file = file


def decoded_manifest(where: str, data: bytes, external: Callable[[SequenceFile], bytes]) -> ManifestFile:
    """The manifest in the bytes of the file at ``where``. Errors are those of :func:`decode_manifest_file`."""
    read: list[SequenceFile] = []

    def noted(place: SequenceFile) -> bytes:
        read.append(place)
        return external(place)

    def load() -> tuple[ManifestFile, int]:
        file = decode_manifest_file(data, where, noted)
        if read:
            raise _Incomplete(file)
        return file, _size(data)

    try:
        return _manifests.get((where, data), load)
    except _Incomplete as found:
        return found.file


def keep_manifest(where: str, data: bytes, file: ManifestFile) -> None:
    """Note what the bytes mean that were just written to ``where``."""
    _manifests.keep((where, data), file, _size(data))


def _size(data: bytes) -> int:
    return len(data) * _COPIES + _ENTRY_OVERHEAD_BYTES

"""The kind of a file: by its name where that is enough, else by its first and last bytes.

Two kinds have neither a name nor a magic number of their own, since Paimon calls both ``index-<uuid>-<n>``: a
deletion-vectors file is recognised by a walk over its bins, checksums included; any other is a file of key hashes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tablewright.describe import lance_files, paimon_files
from tablewright.describe.report import Report
from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.paimon.format.avro import decode_records

__all__ = ["KINDS", "describe_file", "kind_of"]


@dataclass(frozen=True, slots=True)
class _Kind:
    describe: Callable[[bytes, str], Report]
    name: re.Pattern[str] | None = None
    fields: frozenset[str] = frozenset()  # of an Avro record
    head: bytes | None = None
    tail: bytes | None = None


KINDS: dict[str, _Kind] = {
    "lance-manifest": _Kind(lance_files.describe_manifest, re.compile(r"\.manifest$"), tail=b"LANC"),
    "lance-transaction": _Kind(lance_files.describe_transaction, re.compile(r"\.txn$")),
    "lance-deletion-array": _Kind(
        lance_files.describe_deletion_array, re.compile(r"_deletions/[^/]*\.arrow$"), head=b"ARROW1"
    ),
    "lance-deletion-bitmap": _Kind(lance_files.describe_deletion_bitmap, re.compile(r"_deletions/[^/]*\.bin$")),
    "lance-data": _Kind(lance_files.describe_data_bytes, re.compile(r"\.lance$")),
    "paimon-snapshot": _Kind(paimon_files.describe_snapshot, re.compile(r"^snapshot-\d+$|/snapshot-\d+$")),
    "paimon-schema": _Kind(paimon_files.describe_schema, re.compile(r"^schema-\d+$|/schema-\d+$")),
    "paimon-index-manifest": _Kind(paimon_files.describe_index_manifest, fields=frozenset({"_INDEX_TYPE"})),
    "paimon-manifest": _Kind(paimon_files.describe_manifest, fields=frozenset({"_FILE"})),
    "paimon-manifest-list": _Kind(paimon_files.describe_manifest_list, fields=frozenset({"_NUM_ADDED_FILES"})),
    "puffin": _Kind(paimon_files.describe_puffin, re.compile(r"\.puffin$"), head=b"PFA1", tail=b"PFA1"),
    "delta-vectors": _Kind(paimon_files.describe_delta_vectors, re.compile(r"deletion_vector_[^/]*\.bin$")),
    "paimon-vectors": _Kind(paimon_files.describe_vectors),
    "paimon-hashes": _Kind(paimon_files.describe_hashes),
}
"""What can be described, by the name that ``--as`` takes."""


_FOREIGN = (b"PAR1", b"ORC", b"ARROW1", b"PK", b"\x1f\x8b", b"{", b"[", b"<", b"SQLite", b"\x7fELF", b"#!")
"""How files begin that other programs write."""
_TEXT_BYTES_MIN = 16


def describe_file(data: bytes, path: str, kind: str | None = None) -> Report:
    """What is in a file; ``path`` is its name, ``kind`` one of :data:`KINDS` if you know better.

    >>> from tablewright.paimon.format.hash_file import encode_hashes
    >>> describe_file(encode_hashes([7, -1]), "index-0", "paimon-hashes").facts
    (('bytes', 8), ('hashes', 2), ('first', '-1, 7'))
    """
    if kind is not None and kind not in KINDS:
        raise InvalidRequest(f"There is no kind of file {kind!r}; there are {', '.join(KINDS)}.")
    return KINDS[kind or kind_of(data, path)].describe(data, path)


def kind_of(data: bytes, path: str) -> str:
    """The kind of a file; :class:`InvalidRequest` if it is none of ours.

    >>> kind_of(b"", "table.lance/_transactions/1-x.txn")
    'lance-transaction'
    """
    for name, kind in KINDS.items():
        if kind.name is not None and kind.name.search(path):
            return name
    if data.startswith(b"Obj\x01"):
        names = {field["name"] for field in decode_records(data, path).schema.get("fields", ())}
        found = (name for name, kind in KINDS.items() if kind.fields and kind.fields <= names)
        return _known(next(found, None), path)
    for name, kind in KINDS.items():
        marks = [mark for mark in (kind.head, kind.tail) if mark is not None]
        if marks and data.startswith(kind.head or b"") and data.endswith(kind.tail or b""):
            return name
    if data.startswith(_FOREIGN) or (len(data) >= _TEXT_BYTES_MIN and data.isascii() and data.decode().isprintable()):
        return _known(None, path)
    if data.startswith(b"\x01"):
        try:
            paimon_files.describe_vectors(data, path)
        except CorruptTable:
            if len(data) % 4:
                raise
        else:
            return "paimon-vectors"
    return _known("paimon-hashes" if len(data) % 4 == 0 else None, path)


def _known(kind: str | None, path: str) -> str:
    if kind is None:
        raise InvalidRequest(f"{path} is no file that we know; `--as` names its kind if it is one after all.")
    return kind

"""The files of a version, read and written: manifest, transaction, deletion vectors, hint.

Each function does one thing with one file. A manifest is fetched whole, in one request: its index and transaction
sections lie at the front and are needed too. Deletion files never change, so their contents are cached per process, for
all tables; those of stores in memory and of tests are not.

Format: ``docs/format/table.md#directory-layout``, ``docs/format/table.md#deletion-files``.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

from tablewright.cache import CacheKind
from tablewright.errors import CorruptTable, TablewrightError
from tablewright.format.deletion_vectors.lance import decode_deletion_vector, encode_deletion_vector
from tablewright.format.deletion_vectors.problems import problems_of_deletions
from tablewright.format.envelope import ManifestFile
from tablewright.format.fragment import DeletionFile, DeletionFileType, Fragment, SequenceFile
from tablewright.format.inside import stays_inside
from tablewright.format.manifest import BasePath
from tablewright.format.naming import (
    HINT_PATH,
    deletion_path,
    encode_hint,
    transaction_file_path,
    transaction_name,
)
from tablewright.format.row_set import RowSet
from tablewright.format.transaction import Transaction, decode_transaction, encode_transaction
from tablewright.snapshot.locate import VersionEntry, uses_hint
from tablewright.snapshot.manifests import decoded_manifest
from tablewright.storage.address import join_uri
from tablewright.storage.base import Location, ObjectNotFound, Store
from tablewright.storage.identity import (
    FileIdentity,
    is_local,
    is_settled,
    local_identity,
    place_of,
    trust_written,
)
from tablewright.storage.subtree import replace_advice
from tablewright.storage.uncommitted import discard_files

__all__ = [
    "read_deletion_vector",
    "read_manifest",
    "read_transaction",
    "table_place",
    "write_deletion_vector",
    "write_hint",
    "write_transaction",
]

_ENTRY_OVERHEAD_BYTES = 500
_FILE_BYTES_MAX = 2**63 - 1
_MANIFEST_BYTES_MAX = 3 * 2**31  # manifest, indices and transaction, each a protobuf message of at most 2 GiB
_UNCOUNTED_ROWS_MAX = 1 << 26  # deleted rows of a fragment that says neither how many rows it has nor how many are gone

_vectors = CacheKind[RowSet]("deletion vectors")


# -------------------------------------------------------------------------------------------------------- versions
def read_manifest(store: Store, entry: VersionEntry) -> ManifestFile:
    """What the manifest file of a version holds.

    ``ObjectNotFound`` if it is gone, :class:`CorruptTable` if it is damaged, :class:`UnsupportedFeature` if it needs a
    newer reader.
    """
    where = join_uri(store.location.uri, entry.path)
    if entry.size > _MANIFEST_BYTES_MAX:
        raise CorruptTable(where, (f"it has {entry.size} bytes, and a manifest at most {_MANIFEST_BYTES_MAX}",))
    return decoded_manifest(where, store.get(entry.path), partial(_read_sequence, store))


def _read_sequence(store: Store, place: SequenceFile) -> bytes:
    where = join_uri(store.location.uri, place.path)
    if not stays_inside(place.path) or place.offset + place.size > _FILE_BYTES_MAX:
        raise CorruptTable(where, (f"row ids or row versions can't be {place.size} bytes from {place.offset} on here",))
    try:
        data = store.get_range(place.path, place.offset, place.offset + place.size)
    except ObjectNotFound:
        raise CorruptTable(where, ("the file with row ids or row versions is missing",)) from None
    if len(data) != place.size:
        raise CorruptTable(where, (f"{place.size} bytes from {place.offset} on were expected, {len(data)} are there",))
    return data


def read_transaction(store: Store, file: ManifestFile) -> Transaction | None:
    """The commit that made a version: the inline one, else its own file; ``None`` if there is neither.

    If the inline transaction can't be decoded, the file is tried (pylance fails here).
    """
    if file.transaction is not None:
        return file.transaction
    name = file.manifest.transaction_file
    if name:
        if not stays_inside(name):
            raise CorruptTable(file.path, (f"{name!r} is not the name of a transaction file",))
        path = transaction_file_path(name)
        try:
            return decode_transaction(store.get(path), join_uri(store.location.uri, path))
        except ObjectNotFound:
            pass
    if file.transaction_error is not None:
        raise CorruptTable(file.path, (f"the inline transaction can't be read: {file.transaction_error}",))
    return None


def write_transaction(store: Store, transaction: Transaction) -> str:
    """Write the transaction's own file. Returns its name, for ``Manifest.transaction_file``."""
    name = transaction_name(transaction.read_version, transaction.uuid)
    store.put(transaction_file_path(name), encode_transaction(transaction))
    return name


def write_hint(store: Store, version: int) -> None:
    """Write the version hint. It is advisory, so a failure is ignored, and one that is missing only costs a listing."""
    if not uses_hint(store):
        return
    try:
        replace_advice(store, HINT_PATH, encode_hint(version))
    except TablewrightError:
        return


# ------------------------------------------------------------------------------------------------------- deletions
def read_deletion_vector(store: Store, fragment: Fragment, *, fresh: bool = False) -> RowSet:
    """The deleted offsets of a fragment that has a deletion file, which lies in ``store``.

    ``fresh`` reads the file even if this process has read it before.
    """
    deletion = fragment.deletion
    if deletion is None:
        return RowSet()
    path = deletion_path(fragment.id, deletion)
    where = join_uri(store.location.uri, path)
    rows_max = fragment.physical_rows or deletion.num_deleted_rows or _UNCOUNTED_ROWS_MAX

    def load() -> tuple[RowSet, int]:
        try:
            data = store.get(path)
        except ObjectNotFound:
            raise CorruptTable(where, ("the deletion file is missing",)) from None
        return decode_deletion_vector(data, deletion.file_type, where, rows_max), len(data) + _ENTRY_OVERHEAD_BYTES

    location = None if fresh else store.codec_location(path)
    key = None if location is None else _settled_key(location, deletion.num_deleted_rows)
    vector = load()[0] if key is None else _vectors.get(key, load)
    # Zero stands for "not counted" in what old releases wrote.
    problems = problems_of_deletions(vector, fragment.physical_rows, deletion.num_deleted_rows or None)
    if problems and fragment.physical_rows:
        raise CorruptTable(where, problems)
    return vector


def write_deletion_vector(
    store: Store,
    fragment_id: int,
    vector: RowSet,
    read_version: int,
    file_id: int,
    file_type: DeletionFileType,
) -> tuple[DeletionFile, int]:
    """Write a deletion file under a unique name (``file_id`` is random).

    Returns what a fragment keeps, and how many bytes the file has.
    """
    deletion = DeletionFile(file_type=file_type, read_version=read_version, id=file_id, num_deleted_rows=len(vector))
    path = deletion_path(fragment_id, deletion)
    data = encode_deletion_vector(vector, file_type)
    try:
        store.put(path, data)
    except TablewrightError:
        discard_files(store, [path])  # what a put without a reply may have written; nothing refers to it
        raise
    location = store.codec_location(path)
    key = None if location is None else _vector_key(location, trust_written(location), len(vector))
    if key is not None:
        _vectors.keep(key, vector, len(data) + _ENTRY_OVERHEAD_BYTES)
    return deletion, len(data)


# ----------------------------------------------------------------------------------------------------------- caching
def table_place(store: Store, base_paths: tuple[BasePath, ...]) -> Hashable | None:
    """What tells the files of a table from those of others, as a key; ``None`` if they can't be cached."""
    location = store.codec_location(HINT_PATH)
    if location is None:
        return None
    return place_of(location), tuple((base.id, base.path, base.is_dataset_root) for base in base_paths)


def _settled_key(location: Location, rows: int) -> Hashable | None:
    """The key of a deletion file; ``None`` if it can't be cached, or if it changed just now."""
    identity = local_identity(location.uri) if is_local(location) else None
    if identity is not None and not is_settled(identity):
        return None
    return _vector_key(location, identity, rows)


def _vector_key(location: Location, identity: FileIdentity | None, rows: int) -> Hashable | None:
    """The key of a deletion file; ``None`` for a local one without an identity: it is not there."""
    if is_local(location):
        return None if identity is None else (location.uri, identity)
    return place_of(location), rows

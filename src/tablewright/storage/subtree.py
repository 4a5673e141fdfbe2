"""Stores of related directories: branches below a table, the table above a branch, base paths.

A branch is stored in ``tree/{branch}/`` of its table and shares the table's files, so code that holds the store of one
often needs that of the other. It is derived from the store at hand where possible, so a wrapper (a fault-injecting
store, say) sees those calls as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import unquote

from tablewright.errors import TablewrightError
from tablewright.storage.address import join_uri, parse_address
from tablewright.storage.base import Location, ObjectInfo, Store, delete_each
from tablewright.storage.local import LocalStore
from tablewright.storage.open import open_store
from tablewright.storage.together import answers_slowly

__all__ = [
    "SubtreeStore",
    "delete_empty_directories",
    "delete_files",
    "delete_tree",
    "is_link",
    "local_file_names",
    "prepare_file",
    "put_advice",
    "put_pieces",
    "related_store",
    "replace_advice",
    "sync_file",
    "takes_pieces",
    "unfinished_files",
]


class SubtreeStore:
    """A directory of another store, as a store of its own."""

    __slots__ = ("_location", "parent", "prefix")

    def __init__(self, parent: Store, prefix: str) -> None:
        self.parent = parent
        self.prefix = prefix.strip("/")
        self._location = Location(join_uri(parent.location.uri, self.prefix), parent.location.storage_options)

    def __repr__(self) -> str:
        return f"SubtreeStore({self.parent!r}, {self.prefix!r})"

    @property
    def location(self) -> Location:
        return self._location

    @property
    def lists_in_order(self) -> bool:
        return bool(getattr(self.parent, "lists_in_order", False))

    @property
    def answers_slowly(self) -> bool:
        return answers_slowly(self.parent)

    def get(self, path: str) -> bytes:
        return self.parent.get(self._up(path))

    def get_range(self, path: str, start: int, end: int) -> bytes:
        return self.parent.get_range(self._up(path), start, end)

    def head(self, path: str) -> ObjectInfo:
        return self._down(self.parent.head(self._up(path)))

    def put(self, path: str, data: bytes) -> None:
        self.parent.put(self._up(path), data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return self.parent.put_if_absent(self._up(path), data)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        return (self._down(info) for info in self.parent.list(self._up(prefix).rstrip("/")))

    def delete(self, path: str) -> None:
        self.parent.delete(self._up(path))

    def codec_location(self, path: str) -> Location | None:
        return self.parent.codec_location(self._up(path))

    def put_advice(self, path: str, data: bytes) -> None:
        put_advice(self.parent, self._up(path), data)

    def replace_advice(self, path: str, data: bytes) -> None:
        replace_advice(self.parent, self._up(path), data)

    def prepare(self, path: str) -> None:
        prepare_file(self.parent, self._up(path))

    def sync(self, path: str, size: int) -> None:
        sync_file(self.parent, self._up(path), size)

    def delete_tree(self, prefix: str, keep: Collection[str] = (), last: str | None = None) -> int:
        return delete_tree(self.parent, self._up(prefix), [self._up(path) for path in keep], last)

    def delete_files(self, paths: Sequence[str]) -> dict[str, TablewrightError]:
        failed = delete_files(self.parent, [self._up(path) for path in paths])
        return {path.removeprefix(self.prefix + "/"): error for path, error in failed.items()}

    def prune(self, prefix: str) -> None:
        delete_empty_directories(self.parent, self._up(prefix))

    def _up(self, path: str) -> str:
        return f"{self.prefix}/{path}"

    def _down(self, info: ObjectInfo) -> ObjectInfo:
        return ObjectInfo(info.path.removeprefix(self.prefix + "/"), info.size, info.modified_ns)


def related_store(store: Store, uri: str) -> Store:
    """The store at ``uri``: ``store`` itself, a part of it, or one above it; otherwise a new one."""
    target = parse_address(uri).uri
    own = store.location.uri
    if target == own:
        return store
    if target.startswith(own.rstrip("/") + "/"):
        rest = target[len(own.rstrip("/")) + 1 :]
        return SubtreeStore(store, unquote(rest) if "://" in own and not own.startswith("memory://") else rest)
    if isinstance(store, SubtreeStore):
        return related_store(store.parent, target)
    return open_store(target, store.location.storage_options)


def local_file_names(store: Store, directory: str) -> Sequence[str] | None:
    """The names in a directory of a local disk; ``None`` for other stores, which have no quicker way than ``list``."""
    if isinstance(store, SubtreeStore):
        return local_file_names(store.parent, f"{store.prefix}/{directory}")
    return store.file_names(directory) if isinstance(store, LocalStore) else None


def unfinished_files(store: Store, prefix: str) -> Iterator[ObjectInfo]:
    """Files on a local disk that a writer has not finished, or left when it was killed. Other stores have none."""
    if isinstance(store, SubtreeStore):
        inside = f"{store.prefix}/"
        for info in unfinished_files(store.parent, inside + prefix):
            yield replace(info, path=info.path.removeprefix(inside))
    elif (unfinished := getattr(store, "unfinished", None)) is not None:
        yield from unfinished(prefix)


def delete_tree(store: Store, prefix: str, keep: Collection[str] = (), last: str | None = None) -> int:
    """Delete every object below ``prefix`` except those below ``keep`` (directories). How many objects.

    What is in directories called ``last`` goes after all else, names in descending order: so the newest V2 manifest of
    a table goes last, and a drop that was interrupted never shows an older version. On a file system directories and
    links go too, and no link is followed.
    """
    remove = getattr(store, "delete_tree", None)
    if remove is not None:
        return int(remove(prefix, keep, last))
    kept = tuple(f"{directory.rstrip('/')}/" for directory in keep)
    paths = sorted((info.path for info in store.list(prefix) if not info.path.startswith(kept)), reverse=True)
    paths.sort(key=lambda path: last is not None and f"/{last}/" in f"/{path}")
    for path in paths:
        store.delete(path)
    delete_empty_directories(store, prefix)
    return len(paths)


def delete_files(store: Store, paths: Sequence[str]) -> Mapping[str, TablewrightError]:
    """Delete objects, in few requests where the store can, and return those that are left, with the error.

    Absent ones are fine. On a file system no link is followed.
    """
    delete = getattr(store, "delete_files", None)
    failed: Mapping[str, TablewrightError] = delete_each(store, paths) if delete is None else delete(paths)
    return failed


def is_link(store: Store, path: str) -> bool:
    """Whether a name is a symbolic link on a local disk."""
    if isinstance(store, SubtreeStore):
        return is_link(store.parent, f"{store.prefix}/{path}")
    return isinstance(store, LocalStore) and store.is_link(path)


def put_advice(store: Store, path: str, data: bytes) -> None:
    """Write a file that nothing depends on, without ``fsync`` where the store has it."""
    getattr(store, "put_advice", store.put)(path, data)


def takes_pieces(store: Store) -> bool:
    """Whether an object can be written piece by piece (:func:`put_pieces`): on local disks only."""
    return takes_pieces(store.parent) if isinstance(store, SubtreeStore) else isinstance(store, LocalStore)


def put_pieces(store: Store, path: str, pieces: Iterable[bytes]) -> None:
    """Write an object from pieces, one of which is in memory at a time. If it fails, no part of the object is left.

    Precondition: the store :func:`takes_pieces`.
    """
    if isinstance(store, SubtreeStore):
        put_pieces(store.parent, f"{store.prefix}/{path}", pieces)
        return
    assert isinstance(store, LocalStore), f"{store!r} can't write an object piece by piece"
    store.put_pieces(path, pieces)


def replace_advice(store: Store, path: str, data: bytes) -> None:
    """The same for a file that may be missing for a moment, and is replaced often."""
    replace = getattr(store, "replace_advice", None)
    if replace is None:
        put_advice(store, path, data)
    else:
        replace(path, data)


def prepare_file(store: Store, path: str) -> None:
    """Before the codec writes ``path``: make its directory, where the store has directories."""
    prepare = getattr(store, "prepare", None)
    if prepare is not None:
        prepare(path)


def sync_file(store: Store, path: str, size: int) -> None:
    """After the codec has written ``path``: raise if it has not ``size`` bytes, return when these are durable."""
    sync = getattr(store, "sync", None)
    if sync is not None:
        sync(path, size)


def delete_empty_directories(store: Store, prefix: str) -> None:
    """Remove directories without files at and below ``prefix``, where the store has directories."""
    prune = getattr(store, "prune", None)
    if prune is not None:
        prune(prefix)

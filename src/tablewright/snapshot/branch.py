"""Branches: tables in ``tree/{branch}/`` that begin as a version of another and share its files.

Making one copies no data. Its first manifest has the number of the version it came from; every inherited file gets a
``base_id`` that names the source as a base path, and later commits count on from there. Steps:

1. Write a ``Clone`` transaction and, by put-if-absent, the first manifest into ``tree/{branch}/``. No reader looks
   there yet.
2. Put-if-absent the branch's description in ``_refs/branches/``: from now on the branch exists.

If the process dies between the two, the next creation of the same branch from the same version adopts the manifest, and
deleting the branch removes it. Deleting is the reverse: description first, then the files, until none is left. A
commit looks for the description after it has published its version, so a late one takes it back and fails
(:mod:`tablewright.transaction.commit`).

Format: ``docs/format/table.md#tags-and-branches``.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from tablewright._version import __version__
from tablewright.checks import whole_number
from tablewright.errors import (
    InvalidRequest,
    StorageError,
    TableNotFound,
    TablewrightError,
    VersionNotFound,
    WrongType,
)
from tablewright.format.envelope import ManifestFile, encode_manifest_file
from tablewright.format.fragment import DataFile, DeletionFile, Fragment, FragmentList
from tablewright.format.index import IndexMetadata
from tablewright.format.manifest import BasePath, Manifest, WriterVersion
from tablewright.format.naming import (
    branch_path,
    branch_root,
    check_branch_name,
    is_detached,
    manifest_path,
    transaction_file_path,
)
from tablewright.format.transaction import Clone, Transaction, encode_transaction
from tablewright.snapshot.files import read_manifest, read_transaction, write_hint, write_transaction
from tablewright.snapshot.locate import VersionEntry, find_version, latest_version
from tablewright.snapshot.ref_files import Branch, encode_branch
from tablewright.snapshot.refs import branch_world, list_branches, list_tags, main_world, read_branch, read_tag
from tablewright.snapshot.snapshot import Snapshot, missing_version, open_snapshot
from tablewright.snapshot.standing import Standing, replaced, standing
from tablewright.storage.base import Store
from tablewright.storage.subtree import delete_tree
from tablewright.world import World

__all__ = [
    "Reference",
    "create_branch",
    "delete_branch",
    "open_reference",
    "plan_branch",
    "resolve_reference",
]

Reference = int | str | tuple[str | None, int | None]
"""A version number on the branch at hand, a tag, or (branch, version), where ``None`` means main, and the latest."""

_MAIN = "main"
_ROUNDS_MAX = 5
F = TypeVar("F", DataFile, DeletionFile, IndexMetadata)


# ------------------------------------------------------------------------------------------------------ references
def resolve_reference(snapshot: Snapshot, reference: Reference | None) -> tuple[str | None, int]:
    """Branch and version that ``reference`` means, relative to ``snapshot``; ``None`` is that version."""
    match reference:
        case None:
            return snapshot.branch, snapshot.version
        case str():
            tag = read_tag(main_world(snapshot.world, snapshot.branch).store, reference)
            return tag.branch, tag.version
        case (None | str() as branch, version):
            branch = None if branch == _MAIN else branch
            return branch, _latest_of(snapshot, branch) if version is None else _number(version, reference)
    return snapshot.branch, _number(reference, reference)


def _number(version: Any, reference: Any) -> int:
    try:
        return whole_number(version, "version", minimum=None)
    except WrongType:
        raise WrongType(
            f"Version must be an int, a str or a (branch, version) tuple, not {reference!r}. "
            "In a tuple None means main, and the latest version."
        ) from None


def open_reference(snapshot: Snapshot, reference: Reference) -> Snapshot:
    """The version that ``reference`` means, relative to ``snapshot``."""
    branch, version = resolve_reference(snapshot, reference)
    if branch == snapshot.branch:
        return snapshot if version == snapshot.version else open_snapshot(snapshot.world, version)
    main = main_world(snapshot.world, snapshot.branch)
    try:
        return open_snapshot(branch_world(main, branch), version)
    except TableNotFound:
        raise _no_branch(main, branch) from None


def _latest_of(snapshot: Snapshot, branch: str | None) -> int:
    main = main_world(snapshot.world, snapshot.branch)
    entry = latest_version(branch_world(main, branch).store)
    if entry is None:
        raise _no_branch(main, branch)
    return entry.version


def _no_branch(main: World, branch: str | None) -> VersionNotFound:
    return VersionNotFound(
        main.store.location.uri, f"Branch {branch}", f"Ref not found error: branch {branch} does not exist."
    )


# -------------------------------------------------------------------------------------------------------- creating
def create_branch(source: Snapshot, name: str) -> Snapshot:
    """Make the branch ``name`` from the version ``source``. Returns the branch's first version."""
    check_branch_name(name)
    main = main_world(source.world, source.branch)
    if is_detached(source.version):
        raise InvalidRequest(f"A branch can't begin from version {source.version}, which is detached.")
    if name in list_branches(main.store):
        raise _exists(name)
    if find_version(source.world.store, source.version) is None:
        raise missing_version(source.world, source.version)
    if standing(source.world, source) is Standing.REPLACED:
        raise replaced(source)
    _check_free(branch_world(main, name).store, source, name)
    identifier = () if source.branch is None else read_branch(main.store, source.branch).identifier
    branch = Branch(
        parent_branch=source.branch,
        identifier=(*identifier, (source.version, main.ids.uuid().hex)),
        parent_version=source.version,
        created_at_s=main.clock.now_ns() // 1_000_000_000,
        manifest_size=source.entry.size,
    )
    first = _write_first_version(branch_world(main, name), source, name)
    path, data = branch_path(name), encode_branch(branch)
    if not main.store.put_if_absent(path, data) and main.store.get(path) != data:
        raise _exists(name)
    return first


def _check_free(store: Store, source: Snapshot, name: str) -> None:
    """Refuse a directory that holds versions though no such branch exists: they would become versions of the new one.

    A late writer, or a process that died while it created or deleted the branch, leaves them. A version with the number
    that the new branch begins with may be its first one, see `_adopted`.
    """
    latest = latest_version(store)
    if latest is not None and latest.version != source.version:
        raise InvalidRequest(
            f"Ref conflict error: branch {name} does not exist, but {branch_root(name)} holds version "
            f"{latest.version}: creating or deleting the branch was interrupted, or a writer was late. Remove it with "
            f"branches.delete({name!r}), or choose another name."
        )


def _write_first_version(world: World, source: Snapshot, name: str) -> Snapshot:
    clone = Clone(
        is_shallow=True,
        ref_name=source.branch,
        ref_version=source.version,
        ref_path=source.location.uri,
        branch_name=name,
    )
    transaction = Transaction(read_version=source.version, uuid=str(world.ids.uuid()), operation=clone)
    file_name = write_transaction(world.store, transaction)
    manifest = plan_branch(source.manifest, clone, transaction_file=file_name, timestamp_ns=world.clock.now_ns())
    path = manifest_path(manifest.version, v2=True)
    transaction_bytes = encode_transaction(transaction)
    data = encode_manifest_file(manifest, transaction_bytes)
    entry = VersionEntry(
        version=manifest.version, path=path, v2=True, size=len(data), modified_ns=manifest.timestamp_ns
    )
    file = ManifestFile(manifest=manifest, transaction_bytes=transaction_bytes, path=path)
    try:
        created = world.store.put_if_absent(path, data)
    except StorageError as error:
        if error.nothing_written:  # no manifest refers to the transaction
            with suppress(TablewrightError):
                world.store.delete(transaction_file_path(file_name))
        raise
    if not created:
        file = _adopted(world.store, entry, clone)
    write_hint(world.store, manifest.version)
    return Snapshot(world=world, entry=entry, file=file)


def _adopted(store: Store, entry: VersionEntry, clone: Clone) -> ManifestFile:
    """The first version that an interrupted creation of the same branch from the same version left."""
    file = read_manifest(store, entry)
    transaction = read_transaction(store, file)
    latest = latest_version(store)
    if transaction is None or transaction.operation != clone or latest is None or latest.version != entry.version:
        raise _exists(clone.branch_name or "")
    return file


def plan_branch(source: Manifest, clone: Clone, *, transaction_file: str, timestamp_ns: int) -> Manifest:
    """The first manifest of a branch: ``source`` with every file of its own reached through a base path."""
    base_id = max((base.id for base in source.base_paths), default=-1) + 1
    base = BasePath(id=base_id, path=clone.ref_path, name=clone.ref_name, is_dataset_root=True)
    return replace(
        source,
        fragments=FragmentList.of(_inherited_fragment(fragment, base_id) for fragment in source.fragments),
        indices=tuple(_inherited(index, base_id) for index in source.indices),
        base_paths=(*source.base_paths, base),
        branch=clone.branch_name,
        timestamp_ns=timestamp_ns,
        transaction_file=transaction_file,
        writer=WriterVersion(library="tablewright", version=__version__),
    )


def _inherited_fragment(fragment: Fragment, base_id: int) -> Fragment:
    deletion = fragment.deletion
    return replace(
        fragment,
        files=tuple(_inherited(file, base_id) for file in fragment.files),
        deletion=None if deletion is None else _inherited(deletion, base_id),
    )


def _inherited(file: F, base_id: int) -> F:
    return replace(file, base_id=base_id) if file.base_id is None else file


def _exists(name: str) -> InvalidRequest:
    return InvalidRequest(
        f"Ref conflict error: branch {name} already exists. Choose another name, or delete the branch first."
    )


# -------------------------------------------------------------------------------------------------------- deleting
def delete_branch(main: World, name: str) -> None:
    """Remove a branch that no other branch and no tag depends on, with its files."""
    check_branch_name(name)
    branches = list_branches(main.store)
    root = branch_root(name)
    if name not in branches and next(iter(main.store.list(root)), None) is None:
        raise VersionNotFound(
            main.store.location.uri, f"Branch {name}", f"Ref not found error: Branch {name} does not exist."
        )
    _check_unused(main.store, name, branches)
    main.store.delete(branch_path(name))
    nested = [branch_root(other) for other in branches if other.startswith(f"{name}/")]
    for _ in range(_ROUNDS_MAX):  # a writer that read the description before it was removed may still add files
        if not delete_tree(main.store, root, keep=nested):
            break


def _check_unused(store: Store, name: str, branches: dict[str, Branch]) -> None:
    own = branches[name].identifier[-1:] if name in branches else ()
    children = {
        other: branch.parent_version
        for other, branch in branches.items()
        if other != name and (branch.parent_branch == name or set(own) & set(branch.identifier))
    }
    if children:
        raise InvalidRequest(
            f"Ref conflict error: Branch {name} is referenced by {_listed(children)} versions, can not delete. "
            "Delete these branches first."
        )
    tags = {tag: found.version for tag, found in list_tags(store).items() if found.branch == name}
    if tags:
        raise InvalidRequest(
            f"Ref conflict error: Branch {name} is referenced by tags {_listed(tags)}, can not delete. "
            "Delete these tags first."
        )


def _listed(versions: dict[str, int]) -> str:
    return "[" + ", ".join(f'("{name}", {version})' for name, version in versions.items()) + "]"

"""Branches: tables in ``tree/{branch}/`` that begin as a version of another and share its files.

Creating one copies no data. Its first manifest has the number of the version it came from; every inherited file gets a
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

from tablewright.errors import InvalidRequest, StorageError, VersionNotFound
from tablewright.format.envelope import ManifestFile, encode_manifest_file
from tablewright.format.naming import (
    branch_path,
    branch_root,
    check_branch_name,
    is_detached,
    manifest_path,
    transaction_file_path,
)
from tablewright.format.transaction import Clone, Transaction, encode_transaction
from tablewright.operations.branch import plan_branch
from tablewright.snapshot.files import read_manifest, read_transaction, write_hint, write_transaction
from tablewright.snapshot.locate import VersionEntry, find_version, latest_version
from tablewright.snapshot.ref_files import Branch, encode_branch
from tablewright.snapshot.refs import branch_world, list_branches, list_tags, main_world, read_branch
from tablewright.snapshot.removals import check_stays
from tablewright.snapshot.snapshot import Snapshot, missing_version
from tablewright.snapshot.standing import Standing, replaced, standing
from tablewright.storage.base import Store
from tablewright.storage.subtree import delete_tree
from tablewright.storage.uncommitted import discard_files
from tablewright.transaction.committer import Published, publish
from tablewright.transaction.settle import put_once
from tablewright.world import World

__all__ = ["create_branch", "delete_branch"]

_ROUNDS_MAX = 5


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
    if not put_once(main, path, data, lambda found: found == data, version=source.version, name=name):
        raise _exists(name)
    try:
        check_stays(source.world.store, source.version)
    except VersionNotFound:  # cleaned up meanwhile, and its files may be, too
        delete_branch(main, name)
        raise
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
        published = publish(world, path, data, transaction, manifest.version)
    except StorageError as error:
        if error.nothing_written:  # no manifest refers to the transaction
            discard_files(world.store, [transaction_file_path(file_name)])
        raise
    if published is Published.THEIRS:
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
    try:
        for _ in range(_ROUNDS_MAX):  # a writer that read the description before it was removed may still add files
            if not delete_tree(main.store, root, keep=nested):
                break
    except StorageError as error:
        error.nothing_written = False
        error.add(f"Branch {name} is deleted already; the same call again removes the files that are left of it.")
        raise


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

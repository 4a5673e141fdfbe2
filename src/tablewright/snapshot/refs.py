"""Tags and the descriptions of branches: small JSON files in ``_refs/`` of the table's root.

A tag is a name for one version on main or on a branch. A branch is a table of its own in ``tree/{branch}/``
(:mod:`tablewright.snapshot.branch` makes them), and its description says where it began. Both are created by
put-if-absent, so of two creations of one name the second fails. Keys that we don't know survive a change.

All functions here take the world or store of the *main* table; :func:`main_world` leads there from a branch.

Format: ``docs/format/table.md#tags-and-branches``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar
from urllib.parse import unquote

from tablewright.errors import InvalidRequest, VersionNotFound
from tablewright.format.naming import branch_path, branch_root, check_branch_name, check_tag_name, tag_path
from tablewright.snapshot.locate import VersionEntry, find_version
from tablewright.snapshot.ref_files import Branch, Tag, decode_branch, decode_tag, encode_branch, encode_tag, texts
from tablewright.snapshot.removals import check_stays
from tablewright.storage.address import join_uri, parse_address
from tablewright.storage.base import ObjectNotFound, Store
from tablewright.storage.subtree import related_store
from tablewright.world import World

__all__ = [
    "Branch",
    "Tag",
    "branch_world",
    "create_tag",
    "delete_tag",
    "in_order",
    "list_branches",
    "list_tags",
    "main_world",
    "read_branch",
    "read_tag",
    "replace_branch_metadata",
    "replace_tag_metadata",
    "update_tag",
    "version_on",
]

T = TypeVar("T")
R = TypeVar("R", Tag, Branch)
_TAGS_DIR, _BRANCHES_DIR = "_refs/tags", "_refs/branches"
_MAIN = "main"


# ------------------------------------------------------------------------------------------------------ neighbours
def branch_world(main: World, branch: str | None) -> World:
    """The world of a branch of the table in ``main``; ``None`` and ``"main"`` give ``main`` itself."""
    if branch in (None, _MAIN):
        return main
    assert branch is not None
    check_branch_name(branch)
    return replace(main, store=related_store(main.store, join_uri(main.store.location.uri, branch_root(branch))))


def main_world(world: World, branch: str | None) -> World:
    """The world of the main table, from that of one of its branches (the manifest says which)."""
    if branch is None:
        return world
    address = parse_address(world.store.location.uri)
    root, suffix = f"/{address.key}", f"/{branch_root(branch)}"
    if not root.endswith(suffix):
        raise InvalidRequest(
            f"Can not find the root location of branch {branch} by uri {address.uri}: a branch lies in "
            f"{branch_root(branch)} of its table, and this one was moved."
        )
    return replace(
        world, store=related_store(world.store, replace(address, key=root.removesuffix(suffix).strip("/")).uri)
    )


def version_on(main: World, branch: str | None, version: int) -> VersionEntry:
    """The manifest of a version on a branch, or :class:`VersionNotFound`."""
    entry = find_version(branch_world(main, branch).store, version)
    if entry is None:
        name = branch or _MAIN
        raise VersionNotFound(
            main.store.location.uri,
            f"Version {version} on {name}",
            f"Version not found error: version {name}:{version} does not exist.",
        )
    return entry


# ------------------------------------------------------------------------------------------------------------ tags
def list_tags(store: Store) -> dict[str, Tag]:
    """Every tag of the table, by name."""
    return dict(_list(store, _TAGS_DIR, decode_tag))


def read_tag(store: Store, name: str) -> Tag:
    """One tag, or :class:`VersionNotFound`."""
    check_tag_name(name)
    return _read(store, "tag", name, tag_path(name), decode_tag)


def create_tag(main: World, name: str, version: int, branch: str | None = None) -> Tag:
    """Give ``version`` on ``branch`` a name that is not in use."""
    check_tag_name(name)
    branch = None if branch == _MAIN else branch
    entry = version_on(main, branch, version)
    now_ns = main.clock.now_ns()
    tag = Tag(
        branch=branch, version=entry.version, created_at_ns=now_ns, updated_at_ns=now_ns, manifest_size=entry.size
    )
    path, data = tag_path(name), encode_tag(tag)
    if not main.store.put_if_absent(path, data) and main.store.get(path) != data:
        raise InvalidRequest(f"Ref conflict error: tag {name} already exists. Update it, or choose another name.")
    _confirm_tagged(main, name, tag, None)
    return tag


def update_tag(main: World, name: str, version: int, branch: str | None = None) -> Tag:
    """Move an existing tag to ``version`` on ``branch``."""
    tag = read_tag(main.store, name)
    branch = None if branch == _MAIN else branch
    entry = version_on(main, branch, version)
    moved = replace(
        tag, branch=branch, version=entry.version, updated_at_ns=main.clock.now_ns(), manifest_size=entry.size
    )
    main.store.put(tag_path(name), encode_tag(moved))
    _confirm_tagged(main, name, moved, tag)
    return moved


def _confirm_tagged(main: World, name: str, tag: Tag, before: Tag | None) -> None:
    """The version may have been cleaned up while the tag was written: then the tag becomes what it was."""
    try:
        check_stays(branch_world(main, tag.branch).store, tag.version)
    except VersionNotFound:
        if main.store.get(tag_path(name)) == encode_tag(tag):  # otherwise it was moved since
            if before is None:
                main.store.delete(tag_path(name))
            else:
                main.store.put(tag_path(name), encode_tag(before))
        raise


def replace_tag_metadata(main: World, name: str, metadata: Mapping[str, str]) -> Tag:
    """Exchange the texts attached to a tag. What it names stays, and so does the time of its last move."""
    tag = replace(read_tag(main.store, name), metadata=texts(metadata))
    main.store.put(tag_path(name), encode_tag(tag))
    return tag


def delete_tag(main: World, name: str) -> None:
    """Remove a tag, even one whose file is damaged; the version it named stays."""
    check_tag_name(name)
    try:
        main.store.head(tag_path(name))
    except ObjectNotFound:
        raise _missing(main.store, "tag", name) from None
    main.store.delete(tag_path(name))


# -------------------------------------------------------------------------------------------- branches, as described
def list_branches(store: Store) -> dict[str, Branch]:
    """Every branch of the table, by name; main is not among them."""
    return dict(_list(store, _BRANCHES_DIR, decode_branch))


def read_branch(store: Store, name: str) -> Branch:
    """The description of one branch, or :class:`VersionNotFound`."""
    check_branch_name(name)
    return _read(store, "branch", name, branch_path(name), decode_branch)


def replace_branch_metadata(main: World, name: str, metadata: Mapping[str, str]) -> Branch:
    """Exchange the texts attached to a branch."""
    branch = replace(read_branch(main.store, name), metadata=texts(metadata))
    main.store.put(branch_path(name), encode_branch(branch))
    return branch


# ----------------------------------------------------------------------------------------------------------- order
def in_order(refs: Mapping[str, R], order: str | None = None) -> list[tuple[str, R]]:
    """Tags by version, branches by the version they began from: newest first unless ``"asc"``; ties by name."""
    if order not in (None, "asc", "desc"):
        raise InvalidRequest(f"Invalid sort order {order!r}. Valid values are: asc, desc")
    by_name = sorted(refs.items(), key=lambda item: item[0].encode())
    return sorted(by_name, key=lambda item: _version_of(item[1]), reverse=order != "asc")


def _version_of(ref: Tag | Branch) -> int:
    return ref.version if isinstance(ref, Tag) else ref.parent_version


# ----------------------------------------------------------------------------------------------------------- files
def _read(store: Store, kind: str, name: str, path: str, decode: Callable[[bytes, str], T]) -> T:
    try:
        data = store.get(path)
    except ObjectNotFound:
        raise _missing(store, kind, name) from None
    return decode(data, join_uri(store.location.uri, path))


def _missing(store: Store, kind: str, name: str) -> VersionNotFound:
    text = f"Ref not found error: {kind} {name} does not exist."
    return VersionNotFound(store.location.uri, f"{kind.capitalize()} {name}", text)


def _list(store: Store, directory: str, decode: Callable[[bytes, str], T]) -> Iterator[tuple[str, T]]:
    for path in _json_files(store, directory):
        try:
            data = store.get(path)
        except ObjectNotFound:
            continue  # deleted while we were reading
        name = unquote(path.rpartition("/")[2].removesuffix(".json"))
        yield name, decode(data, join_uri(store.location.uri, path))


def _json_files(store: Store, directory: str) -> Iterable[str]:
    return sorted(info.path for info in store.list(directory) if info.path.endswith(".json"))

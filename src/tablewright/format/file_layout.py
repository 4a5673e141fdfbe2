"""Which nodes of a schema are columns of a data file, and what a file version can't hold.

A data file lists one field id per physical column. In version 2.0 every node is a column. From 2.1 on only the leaves
are: a struct or list is stored in the columns of the leaves below it. A packed struct and a blob v2 are one column in
all versions, an empty struct is its own leaf.

The limits were found by writing each type with Lance 14.0.2 in each version and reading it back (the tests do it
again). Lance writes several of them and then panics, or reads other rows than were written; we refuse before writing:

=====================================  ====================================================================
fixed-size list of structs             2.0 and 2.1 fail; 2.2 and 2.3 can't be read beside another column
fixed-size list of text or dictionary  the encoder panics, or has no encoding
map                                    from 2.2 on
empty struct                           in 2.1 and 2.2 the columns after it read as null, in 2.3 nothing reads
packed struct                          fixed-width members (text and binary from 2.2 on); never bool,
                                       dictionary, null or list; fixed-size list not in 2.1; struct from 2.3
``packed`` spelled other than "true"   written packed, then not readable
fixed_size_binary(0)                   readable in 2.2 only
blob column                            from 2.2 on Lance rewrites it into another layout, which we do not write
=====================================  ====================================================================

Format: ``docs/format/data-files.md#columns-of-a-file``, ``docs/format/data-files.md#limits-of-file-versions``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tablewright.errors import InvalidRequest
from tablewright.format.field import (
    BLOB,
    TOP_LEVEL,
    Children,
    Field,
    children_by_parent,
    is_blob_v1,
    is_blob_v2,
    is_one_column,
    is_packed,
    packed_spelling,
)
from tablewright.format.logical_types import MAP, STRUCT, fixed_list_of_structs, is_list

__all__ = ["FILE_VERSIONS", "RESERVED_NAMES", "file_fields", "problems_for_version"]

FILE_VERSIONS = ("2.0", "2.1", "2.2", "2.3")
RESERVED_NAMES = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}
)

_VARIABLE = frozenset({"string", "large_string", "binary", "large_binary", "json"})


def file_fields(fields: Sequence[Field], version: str) -> tuple[int, ...]:
    """The ids of the nodes that are columns of a data file of ``version``, in the order of the columns."""
    _check_version(version)
    children = children_by_parent(fields)
    return tuple(_columns(children[TOP_LEVEL], children, version == "2.0"))


def _columns(nodes: Sequence[Field], children: Children, with_parents: bool) -> Iterator[int]:
    for node in nodes:
        below = () if is_one_column(node) else children.get(node.id, ())
        if with_parents and fixed_list_of_structs(node.logical_type):
            below = ()
        if with_parents or not below:
            yield node.id
        yield from _columns(below, children, with_parents)


def _check_version(version: str) -> None:
    if version not in FILE_VERSIONS:
        raise InvalidRequest(f"Unknown data storage version '{version}'. Use one of {', '.join(FILE_VERSIONS)}.")


# ------------------------------------------------------------------------------------------------------------ limits
def problems_for_version(fields: Sequence[Field], version: str) -> tuple[str, ...]:
    """One sentence per node that data files of ``version`` can't hold, or that no table may have."""
    _check_version(version)
    children = children_by_parent(fields)
    last_column = next(iter(reversed(file_fields(fields, version))), None)
    problems = [
        f"The column {node.name} is a reserved name and cannot be used in a Lance dataset"
        for node in children[TOP_LEVEL]
        if node.name in RESERVED_NAMES
    ]
    for path, node, in_list in _walk(children[TOP_LEVEL], children, "", False):
        reason = (
            _problem_of_name(node)
            or _problem_of_type(node, version)
            or _problem_of_packing(node, children, version)
            or _problem_of_empty_struct(node, children, version, in_list, node.id == last_column)
        )
        if reason:
            problems.append(f"column `{path}`: {reason}")
    return tuple(problems)


def _walk(nodes: Sequence[Field], children: Children, prefix: str, in_list: bool) -> Iterator[tuple[str, Field, bool]]:
    for node in nodes:
        yield prefix + node.name, node, in_list
        repeated = in_list or is_list(node.logical_type) or node.logical_type == MAP
        yield from _walk(children.get(node.id, ()), children, f"{prefix}{node.name}.", repeated)


def _problem_of_name(node: Field) -> str | None:
    """Arrow's C interface, through which data files are written, ends a name at its first NUL."""
    return "a name can't have a NUL character" if "\0" in node.name else None


def _problem_of_type(node: Field, version: str) -> str | None:
    kind = node.logical_type
    if kind == MAP and version in ("2.0", "2.1"):
        return f"maps need data storage version 2.2 or later, not {version}"
    if kind.startswith("fixed_size_list:"):
        inner = kind.removeprefix("fixed_size_list:").rpartition(":")[0]
        while inner.startswith("fixed_size_list:"):
            inner = inner.removeprefix("fixed_size_list:").rpartition(":")[0]
        if inner == STRUCT or inner in _VARIABLE or inner.startswith("dict:"):
            return f"a fixed-size list can't hold values of type {inner}; use a list of variable size"
    if "fixed_size_binary:0" in (kind, kind.removeprefix("fixed_size_list:").rpartition(":")[0]) and version != "2.2":
        return f"binary values of size 0 can't be read back from data storage version {version}; use null or 2.2"
    if is_blob_v2(node) or (is_blob_v1(node) and version not in ("2.0", "2.1")):
        return (
            f"this release does not write blob columns in data storage version {version}: write the table with "
            "pylance, the column as large_binary without the blob mark, or a marked one in version 2.1"
        )
    if BLOB in node.metadata and not is_blob_v1(node):
        return f"only large_binary can be marked as a blob, not {kind}; remove the mark {BLOB}"
    return None


def _problem_of_packing(node: Field, children: Children, version: str) -> str | None:
    spelling = packed_spelling(node)
    if spelling is None or not (is_packed(node) or is_list(node.logical_type) or node.logical_type == MAP):
        return None
    if not is_packed(node):
        return "only a struct can be packed; remove the packed metadata"
    if spelling.lower() != "true":
        return f"a packed struct is spelled 'true', not '{spelling}': Lance can't read it back"
    members = children.get(node.id, ())
    unfit = [f"`{member.name}` ({member.logical_type})" for member in members if not _packs(member, version)]
    if unfit or not members:
        return f"a packed struct can't hold {', '.join(unfit) or 'nothing'} in data storage version {version}"
    return None


def _packs(member: Field, version: str) -> bool:
    kind = member.logical_type
    if kind == STRUCT:
        return version == "2.3"
    if kind.startswith("fixed_size_list:"):
        return version != "2.1" and ":bool:" not in kind and ":null:" not in kind
    if kind in _VARIABLE:
        return version in ("2.2", "2.3")
    return kind not in ("bool", "null", MAP) and not kind.startswith("dict:") and not is_list(kind)


def _problem_of_empty_struct(node: Field, children: Children, version: str, in_list: bool, is_last: bool) -> str | None:
    if node.logical_type != STRUCT or children.get(node.id) or version == "2.0" or is_blob_v2(node):
        return None
    if version == "2.3" or in_list or not is_last:
        return (
            f"in data storage version {version} Lance can't read a struct without members, or what follows it; "
            f"add a member, {'' if version == '2.3' else 'put the column last, '}or use version 2.0"
        )
    return None

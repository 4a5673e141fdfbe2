"""Data files that are not what the manifest says: of another size, or with columns of other types.

A field keeps its type as long as it keeps its id (a cast gives it a new one), so what a file holds for a field is of
the table's type. Where it isn't, the file was replaced under its name, and its values would be read as if they
were the table's: cast where Arrow can, null where the nesting differs.

The size is compared where it costs no request, on local disks. Elsewhere the codec reads the end of the file anyway.
"""

from __future__ import annotations

from tablewright.data.layout import FileMap
from tablewright.errors import CorruptTable
from tablewright.format.field import EXTENSION_NAME, TOP_LEVEL, Field, is_one_column
from tablewright.format.logical_types import is_list
from tablewright.format.schema import Schema
from tablewright.storage.address import join_uri
from tablewright.storage.base import Store
from tablewright.storage.local_files import stat_regular

__all__ = ["check_size", "check_types"]

_BLOB = "lance-encoding:blob"
_VARIABLE = frozenset({"string", "large_string", "binary", "large_binary", "json"})
_SHOWN_MAX = 5


def check_size(store: Store, path: str, size_bytes: int) -> None:
    """Raise :class:`CorruptTable` if a local file has another size than the manifest says; 0 is not known."""
    location = store.codec_location(path)
    if not size_bytes or location is None or "://" in location.uri:
        return
    try:
        found = stat_regular(location.uri).st_size
    except OSError:
        return  # opening it says what is wrong with it
    if found != size_bytes:
        where = join_uri(store.location.uri, path)
        raise CorruptTable(where, (f"the data file has {found} bytes, the manifest says {size_bytes}",))


def check_types(mapped: FileMap, table: Schema, where: str) -> None:
    """Raise :class:`CorruptTable` if a file holds a field of the table with another type."""
    problems = []
    for table_id, node in mapped.nodes.items():
        wanted, found = table.by_id(table_id), mapped.layout.schema.by_id(node)
        if _is_blob(wanted) or _is_blob(found):
            continue
        if _kind(wanted) != _kind(found):
            problems.append(f"`{table.path(table_id)}` is {wanted.logical_type} in the table, but {found.logical_type}")
        elif found.parent_id != mapped.nodes.get(wanted.parent_id, TOP_LEVEL):
            problems.append(f"`{table.path(table_id)}` is nested otherwise in the table, but of the same type")
    if problems:
        more = [f"{len(problems) - _SHOWN_MAX} other columns differ too"] if len(problems) > _SHOWN_MAX else []
        raise CorruptTable(where, (*problems[:_SHOWN_MAX], *more))


def _kind(field: Field) -> str:
    """What must be equal: texts and bytes of any size are stored alike, and so are lists of structs and of others."""
    kind = field.logical_type
    if kind in _VARIABLE:
        return "variable"
    if is_list(kind):
        return "list"
    return "dictionary" if kind.startswith("dict:") else kind


def _is_blob(field: Field) -> bool:
    return _BLOB in field.metadata or (is_one_column(field) and EXTENSION_NAME in field.arrow_metadata)

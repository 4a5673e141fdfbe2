"""Columns that change: another name, another nullability, another type. What the schema becomes, and who is touched.

A name or a nullability is a matter of the schema alone. A new type needs new values: the column gets new field ids and,
fragment by fragment, a new data file with all of its top-level column; members that keep their type keep their id and
move along, so that no struct is spread over several files.

Deliberate differences from Lance: a cast keeps the field's metadata (Lance forgets that it was a primary key); a cast
to the type that the column has changes nothing; a field that is cast can't be altered twice in a call (Lance panics).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tablewright.errors import UnsupportedFeature
from tablewright.expressions.casts import castable, lance_name
from tablewright.format.blobs import as_bytes
from tablewright.format.field import EXTENSION_METADATA, EXTENSION_NAME, TOP_LEVEL, is_blob_v2
from tablewright.format.file_layout import RESERVED_NAMES
from tablewright.format.limits import FIELD_ID_MAX, check_limit
from tablewright.format.manifest import Manifest
from tablewright.format.schema import Field, Schema, check_file_version
from tablewright.operations.columns.cast import CastColumns
from tablewright.operations.columns.plan import ColumnsPlan, plan_columns
from tablewright.operations.columns.schema import InvalidColumns, as_column_errors, check_names, rebuilt
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["Alter", "Alteration", "Altered", "alter_schema"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """What becomes of the field at ``path``; ``None`` leaves it as it is."""

    path: str
    name: str | None = None
    nullable: bool | None = None
    data_type: pa.DataType | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Altered:
    """The schema afterwards; the top-level columns to be written again, as (old id, new id); fields that may no longer
    be null."""

    after: Schema
    casts: tuple[tuple[int, int], ...]
    made_strict: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Alter:
    """Alterations with casts among them, as a request for column files."""

    alterations: tuple[Alteration, ...]

    def plan(self, snapshot: Snapshot) -> ColumnsPlan:
        """Decide them on a version of the table."""
        with as_column_errors():
            table = snapshot.schema
            altered = alter_schema(snapshot.manifest, self.alterations)
            if altered.made_strict:
                raise InvalidColumns(
                    "Invalid user input: nothing is left to cast, and a column that may hold nulls would be made "
                    "non-nullable unseen. Run alter_columns again."
                )
            written = altered.after.project_ids(altered.after.descendants(*(new for _, new in altered.casts)))
            sources = {new: table.by_id(old).name for old, new in altered.casts}
            names = tuple(sources[field.id] for field in written.top_level)
            computation = CastColumns(names, written.to_arrow().remove_metadata()) if names else None
            return plan_columns(snapshot, "AlterColumns", altered.after, written, computation)


def alter_schema(manifest: Manifest, alterations: Sequence[Alteration]) -> Altered:
    """What the schema of a table becomes; :class:`InvalidColumns` if it can't."""
    table = manifest.schema
    fields = [(_resolve(table, each.path), each) for each in _combined(alterations)]
    _check_once(table, fields)
    _check_blobs(table, fields)
    renamed = {field.id: _changed(field, each) for field, each in fields}
    after = replace(table, fields=tuple(renamed.get(field.id, field) for field in table.fields))
    replaced: dict[int, tuple[Field, ...]] = {}
    number = manifest.max_field_id + 1
    for field, each in fields:
        nodes = None if each.data_type is None else _cast(table, field, renamed[field.id], each, number)
        if nodes is not None:
            replaced[field.id] = nodes
            number += len(nodes)
    check_limit("field id", number - 1, FIELD_ID_MAX)
    after = rebuilt(after, replaced)
    made_strict = tuple(f.id for f, each in fields if each.nullable is False and f.nullable)
    if replaced and made_strict:
        raise InvalidColumns(
            "Invalid user input: cannot make a column non-nullable and cast columns in the same call: apply the cast "
            "first, then the nullability change."
        )
    _check_indices(manifest, table, replaced)
    _check_result(manifest, after)
    return Altered(after=after, casts=_columns(table, replaced), made_strict=made_strict)


def _combined(alterations: Sequence[Alteration]) -> list[Alteration]:
    """One alteration per path: a name and a nullability may come apart, a cast may not."""
    by_path: dict[str, Alteration] = {}
    for each in alterations:
        known = by_path.get(each.path)
        if known is None:
            by_path[each.path] = each
            continue
        both = ("name", "nullable") if known.data_type is each.data_type is None else ()
        if not both or any(getattr(known, key) is not None and getattr(each, key) is not None for key in both):
            raise InvalidColumns(
                f"Invalid user input: {each.path!r} is altered twice. Put all of it into one alteration."
            )
        by_path[each.path] = replace(
            known,
            name=known.name if each.name is None else each.name,
            nullable=known.nullable if each.nullable is None else each.nullable,
        )
    return list(by_path.values())


def _resolve(table: Schema, path: str) -> Field:
    try:
        return table.resolve(path)
    except ValueError as error:
        raise InvalidColumns(f'Invalid user input: Column "{path}" does not exist in the dataset. {error}') from error


def _check_once(table: Schema, fields: Sequence[tuple[Field, Alteration]]) -> None:
    seen: set[int] = set()
    for field, each in fields:
        touched = table.descendants(field.id) if each.data_type is not None else (field.id,)
        if not seen.isdisjoint(touched):
            raise InvalidColumns(f"Invalid user input: one of the fields below {each.path!r} is altered twice.")
        seen.update(touched)


def _check_blobs(table: Schema, fields: Sequence[tuple[Field, Alteration]]) -> None:
    """Members of a blob v2 belong to it, and a cast would have to write the blobs of its column again."""
    for field, each in fields:
        line = [table.by_id(id) for id in (*table.ancestors(field.id), field.id)]
        below = [] if each.data_type is None else [table.by_id(id) for id in table.descendants(line[0].id)]
        for blob in filter(is_blob_v2, [*line[:-1], *below]):
            raise UnsupportedFeature(
                f'Column "{each.path}" can\'t be altered like this: `{table.path(blob.id)}` is a blob column '
                "(lance.blob.v2). Name and nullability of the blob itself can be changed."
            )


def _changed(field: Field, alteration: Alteration) -> Field:
    name = field.name if alteration.name is None else alteration.name
    return replace(field, name=name, nullable=field.nullable if alteration.nullable is None else alteration.nullable)


def _cast(table: Schema, own: Field, changed: Field, alteration: Alteration, number: int) -> tuple[Field, ...] | None:
    """The nodes of a field of another type; ``None`` if the type is what it was."""
    assert alteration.data_type is not None, "an alteration that gives no type casts nothing"
    known = table.arrow_field(own.id).type
    nodes = Schema.from_arrow(pa.schema([pa.field("x", alteration.data_type, changed.nullable)]), number)
    wanted = nodes.to_arrow().field(0).type
    if known == wanted:
        return None
    if isinstance(known, pa.BaseExtensionType) or not castable(known, wanted):
        raise InvalidColumns(
            f'Invalid user input: Cannot cast column "{alteration.path}" from {lance_name(known)} to '
            f"{lance_name(alteration.data_type)}. Add a column with the values that you want, and drop this one."
        )
    kept = {key: value for key, value in own.metadata.items() if key not in (EXTENSION_NAME, EXTENSION_METADATA)}
    top, *below = nodes.fields
    top = replace(top, name=changed.name, parent_id=own.parent_id).with_metadata({**kept, **top.metadata})
    return (top, *below)


def _columns(table: Schema, replaced: dict[int, tuple[Field, ...]]) -> tuple[tuple[int, int], ...]:
    """The top-level columns with a cast in them: the id of each before and after."""
    tops = dict.fromkeys((*table.ancestors(id), id)[0] for id in replaced)
    return tuple((id, replaced[id][0].id if id in replaced else id) for id in tops)


def _check_indices(manifest: Manifest, table: Schema, casts: Iterable[int]) -> None:
    touched = {id: set(table.descendants(id)) for id in casts}
    hit = {table.path(id): [i.name for i in manifest.indices if ids & set(i.fields)] for id, ids in touched.items()}
    names = [name for found in hit.values() for name in found]
    if names:
        paths = ", ".join(path for path, found in hit.items() if found)
        raise InvalidColumns(
            f"Invalid user input: Cannot cast column(s) [{paths}] to a new type: they have {len(names)} index(es) "
            f"attached: [{', '.join(names)}]. Drop them first, and create them again after the cast."
        )


def _check_result(manifest: Manifest, after: Schema) -> None:
    """Names that are free and can be read back, types that the table's files can hold, a primary key without nulls."""
    for parent in (TOP_LEVEL, *(field.id for field in after.fields)):
        names = [f.name for f in (after.top_level if parent == TOP_LEVEL else after.children(parent))]
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        if twice:
            where = "schema" if parent == TOP_LEVEL else f"struct {after.path(parent)}"
            raise InvalidColumns(f'Invalid user input: Duplicate field name "{twice[0]}" in {where}.')
    before = {field.id: field.name for field in manifest.schema.fields}
    for field in after.top_level:
        if before.get(field.id) != field.name and field.name in RESERVED_NAMES:
            raise InvalidColumns(
                f"Invalid user input: The column {field.name} is a reserved name and cannot be used in a Lance dataset."
            )
        if before.get(field.id) != field.name and "." in field.name:
            raise InvalidColumns(f"Invalid user input: Top level field {field.name} cannot contain `.`.")
    changed = [field.id for field in after.top_level if before.get(field.id) != field.name]
    check_names(after.project_ids(changed))
    _check_primary_key(after)
    problems = check_file_version(as_bytes(after), manifest.data_storage_version)
    known = check_file_version(as_bytes(manifest.schema), manifest.data_storage_version)
    if set(problems) - set(known):
        raise InvalidColumns(f"Invalid user input: {'; '.join(problems)}")


def _check_primary_key(after: Schema) -> None:
    for field in after.fields:
        line = (after.by_id(id) for id in (*after.ancestors(field.id), field.id))
        if field.unenforced_primary_key and any(each.nullable for each in line):
            raise InvalidColumns(
                f"Invalid user input: Primary key column and all its ancestors must not be nullable: `{field.name}`."
            )

"""The next manifest: a pure fold, manifest + transaction → manifest, with one function per kind of operation.

Fragment ids, row ids, version runs and index coverage are assigned here only. Restore is given the old manifest.

1. the operation's own function changes fragments, schema, indices, maps;
2. new fragments get ids above the highest ever used, and row lineage on tables with stable row ids;
3. data files without a live column leave the fragments that changed;
4. the number of a stream's batch goes from the transaction's properties to the config (:mod:`.stream_state`);
5. version, time and the transaction's name are set. Feature flags are derived when the manifest is encoded.

Format: ``docs/format/transactions.md#what-each-operation-does``, ``docs/format/row-ids.md#assignment``.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tablewright._version import __version__
from tablewright.errors import InvalidRequest, UnsupportedFeature
from tablewright.format.fragment import DataFile, Fragment, FragmentList
from tablewright.format.limits import FIELD_ID_MAX, FRAGMENT_ID_MAX, NEXT_ROW_ID_MAX, VERSION_MAX, check_limit
from tablewright.format.manifest import Manifest, WriterVersion
from tablewright.format.naming import is_detached
from tablewright.format.schema import Field, Schema
from tablewright.format.transaction import (
    Append,
    CreateIndex,
    DataReplacement,
    Delete,
    MapUpdate,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    Transaction,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMode,
)
from tablewright.transaction import coverage, lineage
from tablewright.transaction.lineage import moved_rows, with_updated_rows, without_lineage
from tablewright.transaction.new_fragments import check_new, current, highest_id, new_fragments, without_dead_files
from tablewright.transaction.row_id_switch import enables_row_ids, switched_on
from tablewright.transaction.stream_state import stream_config
from tablewright.values import evolve

__all__ = ["WRITER", "Creation", "apply"]

WRITER = WriterVersion(library="tablewright", version=__version__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """Choices that can be made only when a table is created."""

    stable_row_ids: bool = False
    data_storage_version: str = "2.2"
    config: Mapping[str, str] | None = None


def apply(
    manifest: Manifest | None,
    transaction: Transaction,
    *,
    timestamp_ns: int,
    transaction_file: str,
    creation: Creation | None = None,
    restored: Manifest | None = None,
) -> Manifest:
    """The manifest that follows ``manifest`` (``None``: there is no table yet) when ``transaction`` is committed."""
    operation = transaction.operation
    if manifest is None:
        after = _create(operation, creation or Creation())
    elif isinstance(operation, Restore):
        after = _restore(manifest, operation, restored)
    elif enables_row_ids(transaction):
        after = switched_on(manifest)
    else:
        after = _changed(manifest, operation)
        if after.next_row_id > manifest.next_row_id:
            lineage.check_next_row_id(manifest.fragments, manifest.next_row_id)
    version = 1 if manifest is None else manifest.version + 1
    _check_limits(after, version)
    marked, batch = after.max_allocated_field_id, stream_config(transaction.properties)
    return evolve(
        after,
        version=version,
        config={**after.config, **batch} if batch else after.config,
        max_allocated_field_id=None if marked is None else max(marked, after.schema.max_field_id),
        timestamp_ns=timestamp_ns,
        transaction_file=transaction_file,
        writer=WRITER,
    )


def _check_limits(after: Manifest, version: int) -> None:
    """No assigned number exceeds the limits of the format."""
    if not is_detached(version - 1):  # what comes after a detached version is detached too, and gets a number later
        check_limit("version", version, VERSION_MAX)
    check_limit("fragment id", highest_id(after), FRAGMENT_ID_MAX)
    check_limit("row id", after.next_row_id, NEXT_ROW_ID_MAX)
    check_limit("field id", after.schema.max_field_id, FIELD_ID_MAX)


def _changed(manifest: Manifest, operation: Operation) -> Manifest:
    match operation:
        case Append():
            return _with_new_fragments(manifest, operation.fragments)
        case Delete():
            return _delete(manifest, operation)
        case Update():
            return _update(manifest, operation)
        case Overwrite():
            return _overwrite(manifest, operation)
        case CreateIndex():
            removed = {index.uuid for index in operation.removed_indices}
            kept = tuple(index for index in manifest.indices if index.uuid not in removed)
            return evolve(manifest, indices=kept + operation.new_indices)
        case Rewrite():
            return _rewrite(manifest, operation)
        case Merge():
            return _merge(manifest, operation)
        case Project():
            return _project(manifest, operation)
        case ReserveFragments():
            return evolve(manifest, max_fragment_id=highest_id(manifest) + operation.num_fragments)
        case UpdateConfig():
            return _update_config(manifest, operation)
        case DataReplacement():
            return _replace_data(manifest, operation)
        case UpdateBases():
            return evolve(manifest, base_paths=manifest.base_paths + operation.new_bases)
        case _:
            raise UnsupportedFeature(f"This release does not write {type(operation).__name__} transactions.")


def _check_types(before: Schema, after: Schema) -> None:
    """A field keeps its type as long as it keeps its id: the data files still hold what they held."""
    if not after.fields:
        raise InvalidRequest("A table needs at least one column.")
    types = {field.id: field.logical_type for field in before.fields}
    changed = [field.name for field in after.fields if types.get(field.id, field.logical_type) != field.logical_type]
    if changed:
        raise InvalidRequest(
            f"The schema changes the type of {changed} without rewriting it: a cast needs new field ids."
        )


def _with_new_fragments(manifest: Manifest, fragments: Sequence[Fragment]) -> Manifest:
    marked, numbered = new_fragments(manifest, fragments)
    return evolve(marked, fragments=marked.fragments.appended(numbered))


# ---- creation, overwrite, restore --------------------------------------------------------------------------------


def _create(operation: Operation, creation: Creation) -> Manifest:
    if not isinstance(operation, Overwrite):
        raise InvalidRequest(f"A table can't begin with {type(operation).__name__}: there is no table yet.")
    empty = Manifest(
        schema=operation.schema,
        fragments=FragmentList.of(()),
        version=0,
        stable_row_ids=creation.stable_row_ids,
        data_storage_version=_storage_version(operation.fragments, creation.data_storage_version),
        config=dict(creation.config or {}),
    )
    return _overwrite(empty, operation)


def _storage_version(fragments: Sequence[Fragment], default: str) -> str:
    for fragment in fragments:
        for file in fragment.files:
            return f"{file.file_major_version}.{file.file_minor_version}"
    return default


def _overwrite(manifest: Manifest, operation: Overwrite) -> Manifest:
    emptied = evolve(
        manifest,
        schema=operation.schema,
        fragments=FragmentList.of(()),
        indices=(),
        config={**manifest.config, **operation.config_upsert_values},
        base_paths=manifest.base_paths + operation.initial_bases,
        data_storage_version=_storage_version(operation.fragments, manifest.data_storage_version),
    )
    return _with_new_fragments(emptied, operation.fragments)


def _restore(manifest: Manifest, operation: Restore, restored: Manifest | None) -> Manifest:
    if restored is None or restored.version != operation.version:
        raise InvalidRequest(f"Restore needs the manifest of version {operation.version}.")
    highest = max(highest_id(manifest), highest_id(restored))
    return evolve(
        restored,
        version=manifest.version,
        max_fragment_id=highest if highest >= 0 else None,
        next_row_id=max(manifest.next_row_id, restored.next_row_id),
        base_paths=manifest.base_paths,
        branch=manifest.branch,
    )


# ---- changes of fragments ----------------------------------------------------------------------------------------


def _delete(manifest: Manifest, operation: Delete) -> Manifest:
    updated = current(manifest, (fragment.id for fragment in operation.updated_fragments), operation)
    current(manifest, operation.deleted_fragment_ids, operation)
    tombstoned = {
        fragment.id: evolve(updated[fragment.id], deletion=fragment.deletion)
        for fragment in operation.updated_fragments
    }
    return evolve(manifest, fragments=manifest.fragments.replaced(tombstoned, operation.deleted_fragment_ids))


def _update(manifest: Manifest, operation: Update) -> Manifest:
    """Rows that moved, columns that changed in place, or both: an update in place may move rows of other fragments."""
    in_place = operation.update_mode == UpdateMode.REWRITE_COLUMNS
    updated_ids = tuple(fragment.id for fragment in operation.updated_fragments)
    touched = current(manifest, (*updated_ids, *operation.removed_fragment_ids), operation)
    changed = {
        fragment.id: _patched(manifest, operation, touched[fragment.id], fragment)
        if in_place
        else evolve(touched[fragment.id], deletion=fragment.deletion)
        for fragment in operation.updated_fragments
    }
    kept_rows = {id for id, fragment in changed.items() if fragment.deletion == touched[id].deletion}
    moved_only = [
        position
        for position, fragment in enumerate(operation.new_fragments)
        if moved_rows(fragment) == fragment.physical_rows
    ]
    marked, new = new_fragments(manifest, operation.new_fragments, tuple(touched.values()))
    rewritten = [id for id in updated_ids if not in_place or changed[id].files != touched[id].files]
    indices = coverage.without_rewritten_columns(marked.indices, operation.fields_modified, rewritten)
    if marked.stable_row_ids and new:
        indices = coverage.extended_to_moved_rows(
            indices,
            operation.fields_for_preserving_frag_bitmap,
            touched.keys() - kept_rows,
            [new[position] for position in moved_only],
        )
    fragments = marked.fragments.replaced(changed, operation.removed_fragment_ids).appended(new)
    return evolve(marked, fragments=fragments, indices=indices)


def _patched(manifest: Manifest, operation: Update, current: Fragment, fragment: Fragment) -> Fragment:
    """A fragment whose columns changed in place, with its lineage; the rows that changed were updated now."""
    alive = manifest.schema.ids
    patched = evolve(
        without_dead_files(fragment, alive),
        row_ids=current.row_ids,
        created_at=current.created_at,
        last_updated_at=current.last_updated_at,
    )
    offsets = operation.updated_fragment_offsets.get(fragment.id)
    if not manifest.stable_row_ids or offsets is None:
        return patched
    return with_updated_rows(patched, offsets, manifest.version + 1)


def _rewrite(manifest: Manifest, operation: Rewrite) -> Manifest:
    """Old fragments go, new ones come with the deletions of others since; outputs without live rows are left out."""
    operation = _with_fresh_ids(manifest, operation)
    for group in operation.groups:
        _check_rewritten_rows(manifest, group)
    check_new(manifest.schema, [f for group in operation.groups for f in group.new_fragments], hidden_rows=True)
    alive = manifest.schema.ids
    new = [without_dead_files(f, alive) for group in operation.groups for f in group.new_fragments if f.live_rows]
    if not manifest.stable_row_ids:
        new = [without_lineage(fragment) for fragment in new]
    elif any(fragment.row_ids is None for fragment in new):
        raise InvalidRequest("Rewrite of a table with stable row ids must carry the row ids of the new fragments.")
    listed_old = [fragment.id for group in operation.groups for fragment in group.old_fragments]
    old = [id for id, place in zip(listed_old, manifest.fragments.positions(listed_old), strict=True) if place >= 0]
    fragments = manifest.fragments.replaced({}, old).appended(new).sorted_by_id()
    listed = [fragment.id for group in operation.groups for fragment in group.new_fragments]
    highest = max([highest_id(manifest), *listed])
    check_limit("fragment id", highest, FRAGMENT_ID_MAX)
    return evolve(
        manifest,
        fragments=fragments,
        max_fragment_id=highest if highest >= 0 else None,
        indices=coverage.past_rewrite(
            manifest.indices, operation, stable_row_ids=manifest.stable_row_ids, version=manifest.version
        ),
    )


def _check_rewritten_rows(manifest: Manifest, group: RewriteGroup) -> None:
    """A group has as many live rows before as after, so none is lost or doubled. Fragments that are gone have none."""
    places = manifest.fragments.positions([fragment.id for fragment in group.old_fragments])
    before = int(manifest.fragments.live_rows[places[places >= 0]].sum())
    after = sum(fragment.live_rows for fragment in group.new_fragments)
    if before != after:
        names = [fragment.id for fragment in group.old_fragments]
        raise InvalidRequest(
            f"Rewrite replaces fragments {names}, which have {before} rows in version {manifest.version}, by fragments "
            f"with {after} rows."
        )


def _with_fresh_ids(manifest: Manifest, operation: Rewrite) -> Rewrite:
    """Ids that were reserved are kept; new fragments without one (0), or with one in use, get the next."""
    free = itertools.count(highest_id(manifest) + 1)
    seen: set[int] = set()

    def numbered(fragment: Fragment) -> Fragment:
        if fragment.id == 0 or fragment.id in seen or manifest.fragments.has(fragment.id):
            fragment = evolve(fragment, id=next(free))
        seen.add(fragment.id)
        return fragment

    groups = tuple(
        evolve(group, new_fragments=tuple(numbered(fragment) for fragment in group.new_fragments))
        for group in operation.groups
    )
    return evolve(operation, groups=groups)


def _replace_data(manifest: Manifest, operation: DataReplacement) -> Manifest:
    indices, changed = manifest.indices, dict[int, Fragment]()
    for group in operation.replacements:
        known = current(manifest, (group.fragment_id,), operation)[group.fragment_id]
        fragment = _with_data_file(changed.get(group.fragment_id, known), group.new_file)
        if manifest.stable_row_ids:
            fragment = with_updated_rows(fragment, None, manifest.version + 1)
        changed[group.fragment_id] = fragment
        indices = coverage.without_rewritten_columns(indices, group.new_file.fields, (group.fragment_id,))
    return evolve(manifest, fragments=manifest.fragments.replaced(changed, ()), indices=indices)


def _with_data_file(fragment: Fragment, new_file: DataFile) -> Fragment:
    """``new_file`` takes the place of the file with the same fields, or joins files that hold none of them."""
    same = [file for file in fragment.files if file.fields == new_file.fields]
    if same:
        files = tuple(new_file if file is same[0] else file for file in fragment.files)
    elif not frozenset(new_file.fields) & {field for file in fragment.files for field in file.fields}:
        files = (*fragment.files, new_file)
    else:
        raise InvalidRequest(
            f"The new data file holds fields {list(new_file.fields)}; fragment {fragment.id} has no file with exactly "
            f"these: {[list(file.fields) for file in fragment.files]}."
        )
    return evolve(fragment, files=files)


# ---- changes of the schema ---------------------------------------------------------------------------------------


def _merge(manifest: Manifest, operation: Merge) -> Manifest:
    _check_merge(manifest, operation)
    highest = max([highest_id(manifest), *(fragment.id for fragment in operation.fragments)])
    return evolve(
        manifest,
        schema=operation.schema,
        fragments=FragmentList.of(_merged(manifest, fragment) for fragment in operation.fragments),
        max_fragment_id=highest if highest >= 0 else None,
        indices=coverage.of_schema(manifest.indices, operation.schema),
    )


def _check_merge(manifest: Manifest, operation: Merge) -> None:
    """A merge adds columns: every fragment and row stays."""
    _check_types(manifest.schema, operation.schema)
    given = {fragment.id: fragment.physical_rows for fragment in operation.fragments}
    rows = dict(zip(manifest.fragments.ids.tolist(), manifest.fragments.physical_rows.tolist(), strict=True))
    if given.keys() != rows.keys():
        raise InvalidRequest(
            f"Merge operation changed the fragments from {sorted(rows)} to {sorted(given)}: it has to list every one."
        )
    changed = [id for id in rows if rows[id] and given[id] != rows[id]]
    if changed:
        raise InvalidRequest(f"Merge operation changed the number of rows of fragments {changed}.")
    added = operation.schema.ids - manifest.schema.ids
    strict = [f for f in operation.schema.top_level if f.id in added and not f.nullable]
    for field in strict:
        ids = frozenset(operation.schema.descendants(field.id))
        if any(not ids & {id for file in fragment.files for id in file.fields} for fragment in operation.fragments):
            raise InvalidRequest(f"Column {field.name!r} may not be null, and some fragments have no file with it.")


def _merged(manifest: Manifest, fragment: Fragment) -> Fragment:
    """A fragment of a merge; where its data files changed, all its rows were updated now."""
    fragment = without_dead_files(fragment)
    if not manifest.stable_row_ids or not manifest.fragments.has(fragment.id):
        return fragment
    same_files = manifest.fragments.by_id(fragment.id).files == fragment.files
    return fragment if same_files else with_updated_rows(fragment, None, manifest.version + 1)


def _project(manifest: Manifest, operation: Project) -> Manifest:
    _check_types(manifest.schema, operation.schema)
    alive = operation.schema.ids
    fragments = manifest.fragments
    if not alive.issuperset(manifest.schema.ids):
        changed = {f.id: kept for f in fragments if (kept := without_dead_files(f, alive)) is not f}
        fragments = fragments.replaced(changed, ())
    indices = coverage.of_schema(manifest.indices, operation.schema)
    return evolve(manifest, schema=operation.schema, fragments=fragments, indices=indices)


# ---- maps ----------------------------------------------------------------------------------------------------------


def _changed_texts(values: Mapping[str, str], update: MapUpdate | None) -> dict[str, str]:
    return dict(values) if update is None else update.applied(values)


def _changed_bytes(values: Mapping[str, bytes], update: MapUpdate | None) -> dict[str, bytes]:
    """Schema and field metadata are bytes in the format, texts in the change; untouched values stay as they are."""
    if update is None:
        return dict(values)
    kept = {} if update.replace else {key: value for key, value in values.items() if key not in update.entries}
    return kept | {key: value.encode() for key, value in update.entries.items() if value is not None}


def _update_config(manifest: Manifest, operation: UpdateConfig) -> Manifest:
    unknown = set(operation.field_metadata_updates) - manifest.schema.ids
    if unknown:
        raise InvalidRequest(f"Field ids {sorted(unknown)} do not exist in the schema.")

    def updated(field: Field) -> Field:
        update = operation.field_metadata_updates.get(field.id)
        return field if update is None else field.with_metadata(_changed_bytes(field.metadata, update))

    schema = Schema(
        fields=tuple(updated(field) for field in manifest.schema.fields),
        metadata=_changed_bytes(manifest.schema.metadata, operation.schema_metadata_updates),
    )
    return evolve(
        manifest,
        schema=schema,
        config=_changed_texts(manifest.config, operation.config_updates),
        table_metadata=_changed_texts(manifest.table_metadata, operation.table_metadata_updates),
    )

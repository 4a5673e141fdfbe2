"""``validate``: a version against its files. Every problem is collected, none is mended.

Per fragment: all data files can be opened, have as many rows as the manifest says and hold the columns it names, and
each column that may not be null is in one of them; the deletion file can be read, says what the manifest says and stays
within the rows; row lineage has one entry per row, and no version above the table's. Over the table: no live row id
twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tablewright.data.encoder import DataFileReader
from tablewright.errors import CorruptTable, ForkedProcess, StorageError, TablewrightError
from tablewright.format.deletion_vectors.problems import problems_of_deletions
from tablewright.format.fragment import DataFile, Fragment, problems_of_fragment
from tablewright.format.row_ids import decode_row_ids, decode_versions
from tablewright.snapshot.files import read_deletion_vector
from tablewright.snapshot.snapshot import Snapshot
from tablewright.snapshot.standing import while_it_stands
from tablewright.storage.base import ObjectNotFound

__all__ = ["validate"]

Map = Callable[..., Sequence[Any]]


def validate(snapshot: Snapshot, map: Map) -> None:
    """Check every fragment (``map``, that of an engine, runs them in parallel) and raise with all problems."""
    checked = map(lambda fragment, world: problems_of(snapshot, fragment), snapshot.fragments, snapshot.world)
    found = [problem for problems in checked for problem in problems]
    found = found or _repeated_row_ids(snapshot)  # row ids are compared only where the counts of rows are right
    if found:
        with while_it_stands(snapshot):
            raise CorruptTable(snapshot.entry.path, tuple(found))


def problems_of(snapshot: Snapshot, fragment: Fragment) -> list[str]:
    """All that is wrong with one fragment. A store that fails says nothing about it, and is no problem of the table."""
    found = [*problems_of_fragment(fragment)]
    for check in (_file_problems, _deletion_problems, _lineage_problems):
        try:
            found += check(snapshot, fragment)
        except ObjectNotFound as error:
            found.append(f"file missing: {error}")
        except CorruptTable as error:
            found += [f"{error.path}: {problem}" for problem in error.problems]
    return [f"fragment {fragment.id}: {problem}" for problem in found]


def _file_problems(snapshot: Snapshot, fragment: Fragment) -> Iterable[str]:
    for column in snapshot.schema.top_level:
        if not column.nullable and fragment.live_fields.isdisjoint(snapshot.schema.descendants(column.id)):
            yield f"no data file holds the column `{column.name}`, which may not be null"
    for file in fragment.files:
        yield from _problems_of_file(snapshot, fragment, file)


def _problems_of_file(snapshot: Snapshot, fragment: Fragment, file: DataFile) -> Iterable[str]:
    store, path = snapshot.data_place(file)
    size = store.head(path).size
    if file.file_size_bytes and size != file.file_size_bytes:
        yield f"{path} has {size} bytes, the manifest says {file.file_size_bytes}"
    try:
        reader = DataFileReader(store, path)
    except (ForkedProcess, StorageError):  # says nothing about the file
        raise
    except TablewrightError as error:
        yield f"{path} can't be opened: {error}"
        return
    if reader.num_rows != fragment.physical_rows:
        yield f"{path} has {reader.num_rows} rows, the manifest says {fragment.physical_rows}"
    outside = [column for column in file.column_indices if column >= reader.num_columns]
    if outside:
        yield f"{path} has {reader.num_columns} columns, the manifest names columns {outside}"


def _deletion_problems(snapshot: Snapshot, fragment: Fragment) -> Iterable[str]:
    if fragment.deletion is None:
        return
    vector = read_deletion_vector(snapshot.store_of(fragment.deletion.base_id), fragment, fresh=True)
    yield from problems_of_deletions(vector, fragment.physical_rows, fragment.deletion.num_deleted_rows)


def _lineage_problems(snapshot: Snapshot, fragment: Fragment) -> Iterable[str]:
    place = snapshot.entry.path
    if snapshot.manifest.stable_row_ids and fragment.row_ids is None:
        yield "it has no row ids, although the table has stable row ids"
    if (
        fragment.row_ids is not None
        and (rows := len(decode_row_ids(fragment.row_ids, place))) != fragment.physical_rows
    ):
        yield f"{rows} row ids for {fragment.physical_rows} rows"
    for name, data in (("created-at", fragment.created_at), ("last-updated-at", fragment.last_updated_at)):
        versions = None if data is None else decode_versions(data, place)
        if versions is not None and len(versions) != fragment.physical_rows:
            yield f"{len(versions)} {name} versions for {fragment.physical_rows} rows"
        if versions is not None and (latest := int(versions.versions.max(initial=0))) > snapshot.version:
            yield f"rows have the {name} version {latest}, and the table is at version {snapshot.version}"


def _repeated_row_ids(snapshot: Snapshot) -> list[str]:
    if not snapshot.manifest.stable_row_ids:
        return []
    live = [_live_row_ids(snapshot, fragment) for fragment in snapshot.fragments if fragment.row_ids is not None]
    ids = np.sort(np.concatenate(live)) if live else np.empty(0, np.uint64)
    twice = np.unique(ids[1:][ids[1:] == ids[:-1]])
    found = [f"row ids of several live rows: {twice[:5].tolist()}"] if len(twice) else []
    if len(ids) and int(ids[-1]) >= snapshot.manifest.next_row_id:
        found.append(f"row id {int(ids[-1])} is not below next_row_id {snapshot.manifest.next_row_id}")
    return found


def _live_row_ids(snapshot: Snapshot, fragment: Fragment) -> Any:
    ids = snapshot.row_ids(fragment)
    assert ids is not None
    values = ids.to_numpy()
    vector = snapshot.deletion_vector(fragment)
    return values if vector is None else values[vector.absent_mask(len(values))]

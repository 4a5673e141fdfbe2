"""One table and a catalogue of changes to it, each ready to be committed by either library through `commit()`.

pylance writes every file that a change needs, once, into the base table; copies of it then get the same change from one
library or the other. What one library knows as metadata reaches the other as JSON.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from lance.file import LanceFileWriter
from lance.fragment import write_fragments

from .referee import copy_of, lance, numbers

__all__ = ["Base", "Change", "base_table", "fragment", "index_of"]

Change = Callable[[Any], Any]
"""From a library to its operation object."""


def fragment(library: Any, metadata: Any) -> Any:
    """The library's own FragmentMetadata, from pylance's by way of JSON."""
    facts = metadata if isinstance(metadata, dict) else metadata.to_json()
    return library.fragment.FragmentMetadata.from_json(json.dumps(facts))


def index_of(library: Any, index: Any) -> Any:
    """The library's own Index, from pylance's."""
    facts = {name: getattr(index, name) for name in ("uuid", "name", "fields", "dataset_version", "index_version")}
    files = [library.IndexFile(file.path, file.size_bytes) for file in index.files]
    return library.Index(
        **facts,
        fragment_ids=set(index.fragment_ids),
        created_at=index.created_at,
        files=files,
        index_details=index.index_details,
    )


def lance_schema(library: Any, schema: pa.Schema) -> Any:
    """The library's LanceSchema with field ids from 0 on, in the order of the fields."""
    return importlib.import_module(f"{library.__name__}.schema").LanceSchema.from_pyarrow(schema)


@dataclass
class Base:
    """The base table, the version that the changes start from, and the changes by name."""

    uri: str
    version: int
    changes: dict[str, Change] = field(default_factory=dict)


def base_table(folder: Path, *, stable: bool) -> Base:
    """Four fragments of eight rows, two files each (`extra` in its own), deletions on one, indices on `id` and `s`."""
    uri = str(folder / "base.lance")
    dataset = lance.write_dataset(numbers(0, 32), uri, max_rows_per_file=8, enable_stable_row_ids=stable)
    dataset.add_columns({"extra": "id * 10"})
    dataset.delete("id in (17, 18)")
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("s", "BITMAP")
    dataset.update_config({"owner": "base"})
    base = Base(uri, lance.dataset(uri).version)
    for part in (_rows, _columns, _schemas, _others):
        base.changes.update(part(base))
    assert lance.dataset(uri).version == base.version
    return base


def _written(base: Base, start: int, stop: int) -> list[Any]:
    table = numbers(start, stop).append_column("extra", pa.array([7 * i for i in range(start, stop)], pa.int64()))
    return write_fragments(table, base.uri, schema=lance.dataset(base.uri).schema, max_rows_per_file=5)


def _deleting(base: Base, id: int, predicate: str) -> Any:
    return lance.dataset(base.uri).get_fragment(id).delete(predicate)


def _rows(base: Base) -> dict[str, Change]:
    """Changes of rows: appended, deleted, moved, replaced, rewritten, brought back."""
    new, other = _written(base, 100, 107), _written(base, 200, 203)
    fresh = write_fragments(numbers(500, 503), base.uri, schema=numbers(0, 0).schema, mode="overwrite")
    first, second = _deleting(base, 0, "id in (1, 2)"), _deleting(base, 1, "id = 9")
    same = _deleting(base, 0, "id in (5, 6)")
    more = _deleting(base, 2, "id = 20")
    moved = [item.to_json() for item in _written(base, 1, 3)]
    if lance.dataset(base.uri).has_stable_row_ids:  # rows 1 and 2 move and keep their ids
        moved[0]["row_id_meta"] = {"Inline": [10, 6, 10, 4, 8, 1, 16, 3]}
    old = [f.metadata for f in lance.dataset(base.uri).get_fragments()]

    def update(library: Any, updated: list[Any], new_fragments: list[Any], **rest: Any) -> Any:
        return library.LanceOperation.Update(
            updated_fragments=[fragment(library, item) for item in updated],
            new_fragments=[fragment(library, item) for item in new_fragments],
            update_mode="rewrite_rows",
            **rest,
        )

    def delete(library: Any, updated: list[Any], ids: list[int], predicate: str = "p") -> Any:
        return library.LanceOperation.Delete([fragment(library, item) for item in updated], ids, predicate)

    return {
        "Append": lambda lib: lib.LanceOperation.Append([fragment(lib, item) for item in new]),
        "Append nothing": lambda lib: lib.LanceOperation.Append([]),
        "Overwrite": lambda lib: lib.LanceOperation.Overwrite(
            numbers(0, 0).schema, [fragment(lib, item) for item in fresh]
        ),
        "Overwrite with nothing": lambda lib: lib.LanceOperation.Overwrite(pa.schema([("a", pa.int32())]), []),
        "Delete rows of 0": lambda lib: delete(lib, [first], []),
        "Delete other rows of 0": lambda lib: delete(lib, [same], []),
        "Delete rows of 1": lambda lib: delete(lib, [second], []),
        "Delete more rows of 2": lambda lib: delete(lib, [more], []),
        "Delete fragment 0": lambda lib: delete(lib, [], [0]),
        "Delete rows and a fragment": lambda lib: delete(lib, [first, more], [3]),
        "Update rows of 0": lambda lib: update(lib, [first], moved, fields_for_preserving_frag_bitmap=[1]),
        "Update rows of 1": lambda lib: update(lib, [second], other, fields_for_preserving_frag_bitmap=[0, 1, 2, 3]),
        "Update that removes 3": lambda lib: update(
            lib, [], other, removed_fragment_ids=[3], fields_for_preserving_frag_bitmap=[0, 1, 2, 3]
        ),
        "Restore": lambda lib: lib.LanceOperation.Restore(1),
        **_rewrites(old),
    }


def _rewrites(old: list[Any]) -> dict[str, Change]:
    def rewrite(library: Any, ids: list[int]) -> Any:
        """The same files under a new fragment id, which nobody else gets: a compaction that copies nothing."""
        groups = []
        for id in ids:
            facts = old[id].to_json()
            new = {**facts, "id": 10 + id}
            group = library.LanceOperation.RewriteGroup([fragment(library, facts)], [fragment(library, new)])
            groups.append(group)
        return library.LanceOperation.Rewrite(groups, [])

    return {"Rewrite 0": lambda lib: rewrite(lib, [0]), "Rewrite 1 and 3": lambda lib: rewrite(lib, [1, 3])}


def _columns(base: Base) -> dict[str, Change]:
    """Changes of columns in place."""
    dataset = lance.dataset(base.uri)
    patches = {}
    for id, ids in ((0, [1, 3]), (1, [9])):
        source = pa.table({"id": pa.array(ids, pa.int64()), "x": pa.array([-1.0] * len(ids))})
        patches[id] = dataset.get_fragment(id).update_columns(source, left_on="id", with_offsets=True)

    def columns(library: Any, id: int) -> Any:
        metadata, fields, offsets = patches[id]
        return library.LanceOperation.Update(
            updated_fragments=[fragment(library, metadata)],
            fields_modified=list(fields),
            update_mode="rewrite_columns",
            updated_fragment_offsets={id: offsets},
        )

    def replacement(library: Any, id: int) -> Any:
        file = library.fragment.DataFile(**files[id])
        return library.LanceOperation.DataReplacement([library.LanceOperation.DataReplacementGroup(id, file)])

    files = {id: _column_file(base, id, 3, "extra", list(range(8))) for id in (0, 1)}
    return {
        "Update columns of 0": lambda lib: columns(lib, 0),
        "Update columns of 1": lambda lib: columns(lib, 1),
        "DataReplacement of 0": lambda lib: replacement(lib, 0),
        "DataReplacement of 1": lambda lib: replacement(lib, 1),
    }


def _column_file(base: Base, id: int, field_id: int, name: str, values: list[int]) -> dict[str, Any]:
    path = Path(base.uri, "data", f"replacement-{id}.lance")
    schema = pa.schema([pa.field(name, pa.int64())])
    with LanceFileWriter(str(path), schema, version="2.2") as writer:
        writer.write_batch(pa.record_batch([pa.array(values, pa.int64())], schema=schema))
    facts = {"path": path.name, "fields": [field_id], "column_indices": [0], "file_size_bytes": path.stat().st_size}
    return {**facts, "file_major_version": 2, "file_minor_version": 2}


def _schemas(base: Base) -> dict[str, Change]:
    """Changes of the schema: added, dropped, renamed columns, nullability."""
    dataset = lance.dataset(base.uri)
    merged = [f.merge_columns({"added": "id + 1"}) for f in dataset.get_fragments()]
    schema = merged[0][1].to_pyarrow()
    strict = pa.schema([dataset.schema.field(0).with_nullable(False), *list(dataset.schema)[1:]])
    renamed = dataset.schema.set(1, dataset.schema.field(1).with_name("y"))

    def project(library: Any, schema: pa.Schema, keeps: bool) -> Any:
        return library.LanceOperation.Project(lance_schema(library, schema), preserves_nullability=keeps)

    return {
        "Merge": lambda lib: lib.LanceOperation.Merge([fragment(lib, item) for item, _ in merged], schema),
        "Project drop": lambda lib: project(lib, pa.schema(list(dataset.schema)[:3]), True),
        "Project drop indexed": lambda lib: project(lib, pa.schema(list(dataset.schema)[:2]), True),
        "Project rename": lambda lib: project(lib, renamed, True),
        "Project nullability": lambda lib: project(lib, strict, False),
    }


def _others(base: Base) -> dict[str, Change]:
    """Changes that touch no rows: indices, config and metadata."""
    indices = {}
    for name, column, kind in (("new_x", "x", "BTREE"), ("new_extra", "extra", "BTREE"), ("new_id", "id", "BITMAP")):
        aside = copy_of(base.uri, f"aside-{name}.lance")
        dataset = lance.dataset(aside)
        dataset.create_scalar_index(column, kind, name=name)
        indices[name] = dataset.read_transaction(dataset.version).operation.new_indices[0]
        made = Path(aside, "_indices", str(indices[name].uuid))
        made.rename(Path(base.uri, "_indices", made.name))
    present = _present_indices(base)

    def create(library: Any, new: list[str], removed: Sequence[Any] = ()) -> Any:
        return library.LanceOperation.CreateIndex(
            [index_of(library, indices[name]) for name in new], [index_of(library, index) for index in removed]
        )

    def config(library: Any, **maps: dict[str, Any]) -> Any:
        operation = library.LanceOperation
        return operation.UpdateConfig(
            **{f"{name}_updates": operation.UpdateMap(update) for name, update in maps.items()}
        )

    def fields(library: Any, id: int) -> Any:
        operation = library.LanceOperation
        return operation.UpdateConfig(field_metadata_updates={id: operation.UpdateMap({"note": str(id)})})

    return {
        "CreateIndex x": lambda lib: create(lib, ["new_x"]),
        "CreateIndex extra": lambda lib: create(lib, ["new_extra"]),
        "CreateIndex id": lambda lib: create(lib, ["new_id"]),
        "CreateIndex drop": lambda lib: create(lib, [], present[:1]),
        "Config a": lambda lib: config(lib, config={"a": "1", "owner": None}),
        "Config b": lambda lib: config(lib, config={"b": "2"}),
        "Table metadata": lambda lib: config(lib, table_metadata={"note": "t"}),
        "Schema metadata": lambda lib: config(lib, schema_metadata={"note": "s"}),
        "Field metadata 0": lambda lib: fields(lib, 0),
        "Field metadata 1": lambda lib: fields(lib, 1),
    }


def _present_indices(base: Base) -> list[Any]:
    dataset = lance.dataset(base.uri)
    found = []
    for version in range(1, base.version + 1):
        operation = dataset.read_transaction(version).operation
        if type(operation).__name__ == "CreateIndex":
            found += operation.new_indices
    return found

"""The referee's side: runs in pypaimon's own environment, takes one JSON request per line, answers with one.

Tables travel as Arrow IPC files. Nothing is imported from pypaimon unless this file is run.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any


def serve(warehouse: str) -> None:
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever pypaimon prints goes to stderr
    side = Side(warehouse)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {"result": getattr(side, request.pop("do"))(**request)}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


class Side:
    """One catalog, and what tests ask of it. Names of tables are `database.table`."""

    def __init__(self, warehouse: str) -> None:
        from pypaimon import CatalogFactory

        self.catalog = CatalogFactory.create({"warehouse": warehouse})

    def create_database(self, name: str) -> None:
        self.catalog.create_database(name, True)

    def create(self, name: str, schema: str, partition_keys: Any, primary_keys: Any, options: Any) -> None:
        from pypaimon import Schema

        given = Schema.from_pyarrow_schema(
            load(schema).schema, partition_keys=partition_keys, primary_keys=primary_keys, options=options
        )
        self.catalog.create_table(name, given, False)

    def append(self, name: str, data: str, level: int | None = None) -> list[str]:
        """Commit rows; with `level` the new files are said to lie there. The names of the new files."""
        builder = self.catalog.get_table(name).new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        write.write_arrow(load(data))
        messages = write.prepare_commit()
        files = [file for message in messages for file in message.new_files]
        for file in files:
            file.level = file.level if level is None else level
        commit.commit(messages)
        write.close()
        commit.close()
        return [file.file_name for file in files]

    def read(self, name: str, snapshot: int | None, out: str, columns: list[str] | None = None) -> None:
        table = self.catalog.get_table(name)
        if snapshot is not None:
            table = table.copy({"scan.snapshot-id": str(snapshot)})
        builder = table.new_read_builder()
        if columns is not None:
            builder = builder.with_projection(columns)
        save(builder.new_read().to_arrow(builder.new_scan().plan().splits()), out)

    def alter(self, name: str, changes: list[list[Any]]) -> None:
        from pypaimon.schema.data_types import AtomicType
        from pypaimon.schema.schema_change import SchemaChange

        made = []
        for verb, *arguments in changes:
            if verb in ("add_column", "update_column_type"):
                arguments[1] = AtomicType(arguments[1])
            made.append(getattr(SchemaChange, verb)(*arguments))
        self.catalog.alter_table(name, made)

    def delete_by_row_id(self, name: str, row_ids: list[int]) -> None:
        builder = self.catalog.get_table(name).new_batch_write_builder()
        commit = builder.new_commit()
        commit.commit(builder.new_update().delete_by_row_id(row_ids))
        commit.close()

    def update_column(self, name: str, data: str, columns: list[str]) -> None:
        """Overlay some columns of a data-evolution table; `data` has `_ROW_ID` as well."""
        builder = self.catalog.get_table(name).new_batch_write_builder()
        commit = builder.new_commit()
        commit.commit(builder.new_update().with_update_type(columns).update_by_arrow_with_row_id(load(data)))
        commit.close()

    def put_vector(
        self, name: str, data_file: str, file: str, bucket: int, offset: int, length: int, size: int
    ) -> None:
        """Commit a vector that another program wrote."""
        from pypaimon.index.deletion_vector_meta import DeletionVectorMeta
        from pypaimon.index.index_file_meta import IndexFileMeta
        from pypaimon.manifest.index_manifest_entry import IndexManifestEntry
        from pypaimon.table.row.generic_row import GenericRow
        from pypaimon.write.commit_message import CommitMessage

        ranges = {data_file: DeletionVectorMeta(data_file, offset, length, None)}
        meta = IndexFileMeta("DELETION_VECTORS", file, size, 1, ranges)
        commit = self.catalog.get_table(name).new_batch_write_builder().new_commit()
        entry = IndexManifestEntry(0, GenericRow([], []), bucket, meta)
        commit.commit([CommitMessage(partition=(), bucket=bucket, new_files=[], index_adds=[entry])])
        commit.close()


def load(path: str) -> Any:
    import pyarrow as pa

    with pa.OSFile(path) as file:
        return pa.ipc.open_file(file).read_all()


def save(table: Any, path: str) -> None:
    import pyarrow as pa

    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


if __name__ == "__main__":
    serve(sys.argv[1])

"""Changes of rows and columns as ``LanceDataset`` offers them: pylance's names and arguments.

Each moves the dataset to the version it made, and then cleans up if the table's config asks for it
(``lance.auto_cleanup.*``), unless ``skip_auto_cleanup=True``. ``prepare_…`` returns the same change to be explained,
run, or run without a commit.

Tests: ``tests/unit/api/test_changes.py``, ``tests/differential/test_update.py``, ``tests/differential/test_delete.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablewright.api import columns as column_verbs
from tablewright.api.auto_cleanup import commits
from tablewright.api.merge_insert import MergeInsertBuilder
from tablewright.api.pinned import Pinned
from tablewright.api.prepared import PreparedColumns, PreparedDelete, PreparedUpdate, retry_options
from tablewright.operations.update import UpdateOptions

__all__ = ["ChangeVerbs"]

_RETRY_TIMEOUT = timedelta(seconds=30)


class ChangeVerbs(Pinned):
    """The part of a dataset that changes rows and columns."""

    # ---- rows

    @commits
    def delete(
        self,
        predicate: str | pc.Expression,
        *,
        conflict_retries: int = 10,
        retry_timeout: timedelta = _RETRY_TIMEOUT,
        isolation: str = "snapshot",
        skip_auto_cleanup: bool = False,
        use_scalar_index: bool | None = None,
    ) -> dict[str, int]:
        """Delete the rows that match; this dataset moves to the new version.

        Other writers don't matter, unless one of them moved or changed a row that matches: then it is looked for again
        on the newest version, ``conflict_retries`` times at most and not longer than ``retry_timeout``. Rows that
        others insert meanwhile stay; with ``isolation="serializable"`` it runs again whenever rows came or changed.

        ``use_scalar_index`` ``True`` asks every index that can answer a part of the predicate, ``False`` none,
        ``None`` those that are cheaper than a scan.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2, 3]}, "memory://delete-example")
        >>> ds.delete("id > 1"), ds.count_rows()
        ({'num_deleted_rows': 2}, 1)
        """
        return self.prepare_delete(
            predicate,
            conflict_retries=conflict_retries,
            retry_timeout=retry_timeout,
            isolation=isolation,
            use_scalar_index=use_scalar_index,
        ).execute()

    def prepare_delete(
        self,
        predicate: str | pc.Expression,
        *,
        conflict_retries: int = 10,
        retry_timeout: timedelta = _RETRY_TIMEOUT,
        isolation: str = "snapshot",
        use_scalar_index: bool | None = None,
    ) -> PreparedDelete:
        """A delete to be run: ``execute``, ``execute_uncommitted``, ``explain_plan``, ``analyze_plan``.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2, 3]}, "memory://prepare-delete-example")
        >>> print(ds.prepare_delete("id > 1").explain_plan().splitlines()[0])
        Delete: write deletion files, predicate=id > 1
        """
        retries = retry_options(conflict_retries, retry_timeout)
        return PreparedDelete(self, predicate, retries, isolation, use_scalar_index)

    @commits
    def update(
        self,
        updates: Mapping[str, str],
        where: str | pc.Expression | None = None,
        conflict_retries: int = 10,
        retry_timeout: timedelta = _RETRY_TIMEOUT,
        data_storage_version: str | None = None,
        *,
        write_mode: str = "auto",
        isolation: str = "snapshot",
        skip_auto_cleanup: bool = False,
        use_scalar_index: bool | None = None,
    ) -> dict[str, int]:
        """Give columns new values, by SQL expressions, in the rows that match (without ``where``: in all).

        A fragment is written in the way that costs fewer bytes: its matching rows move to a new fragment
        (``"rewrite_rows"``), or the columns that change are written again in place (``"rewrite_columns"``);
        ``write_mode`` insists on one of them. This dataset moves to the new version. ``isolation`` and
        ``use_scalar_index``: see :meth:`delete`.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2, 3], "n": [0, 0, 0]}, "memory://update-example")
        >>> ds.update({"n": "id * 10"}, where="id > 1")
        {'num_rows_updated': 2}
        >>> ds.to_table(order_by=["id"]).to_pydict()
        {'id': [1, 2, 3], 'n': [0, 20, 30]}
        """
        return self.prepare_update(
            updates,
            where,
            conflict_retries=conflict_retries,
            retry_timeout=retry_timeout,
            data_storage_version=data_storage_version,
            write_mode=write_mode,
            isolation=isolation,
            use_scalar_index=use_scalar_index,
        ).execute()

    def prepare_update(
        self,
        updates: Mapping[str, str],
        where: str | pc.Expression | None = None,
        *,
        conflict_retries: int = 10,
        retry_timeout: timedelta = _RETRY_TIMEOUT,
        data_storage_version: str | None = None,
        write_mode: str = "auto",
        isolation: str = "snapshot",
        use_scalar_index: bool | None = None,
    ) -> PreparedUpdate:
        """An update to be run: ``execute``, ``execute_uncommitted``, ``explain_plan``, ``analyze_plan``.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2, 3], "n": [0, 0, 0]}, "memory://prepare-update-example")
        >>> print(ds.prepare_update({"n": "id * 10"}, where="id > 1").explain_plan().splitlines()[-2].strip())
        fragment 0: matched_rows=2, bytes_rows=32, bytes_columns=24 -> rewrite_columns
        """
        options = UpdateOptions(
            write_mode=write_mode, data_storage_version=data_storage_version, use_scalar_index=use_scalar_index
        )
        retries = retry_options(conflict_retries, retry_timeout)
        return PreparedUpdate(self, updates, where, retries, options, isolation)

    def merge_insert(
        self, on: str | Iterable[str] | None = None, *, dedupe: str | None = None, schema_evolution: bool = False
    ) -> MergeInsertBuilder:
        """A merge to be configured: rows of a source update, delete or join the rows of the table with the same key.

        ``on`` is the key: a column, several, or fields of structs (``"s.a"``); without it, the declared primary key.
        ``dedupe`` (``"first"`` or ``"last"``) says which of several source rows with one key counts, which is an error
        otherwise; ``schema_evolution`` adds columns that the table does not have. Two writers that merge one new key
        make one row.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2], "n": [0, 0]}, "memory://merge-insert-example")
        >>> upsert = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        >>> result = upsert.execute({"id": [2, 3], "n": [5, 6]})
        >>> result["num_updated_rows"], result["num_inserted_rows"]
        (1, 1)
        >>> ds.to_table(order_by=["id"]).to_pydict()
        {'id': [1, 2, 3], 'n': [0, 5, 6]}
        """
        return MergeInsertBuilder(self, on, dedupe=dedupe, schema_evolution=schema_evolution)

    @commits
    def truncate_table(self, *, skip_auto_cleanup: bool = False) -> None:
        """Delete all rows; schema, settings and earlier versions stay.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2, 3]}, "memory://truncate-example")
        >>> ds.truncate_table()
        >>> ds.count_rows()
        0
        """
        self.delete("true")

    # ---- columns

    @commits
    def add_columns(
        self,
        transforms: Any,
        read_columns: Sequence[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
        *,
        skip_auto_cleanup: bool = False,
    ) -> None:
        """Add columns; existing data stay as they are, each fragment gets one more data file.

        ``transforms`` is a dict of SQL expressions; a function over record batches (see :func:`batch_udf`), which gets
        ``read_columns`` in batches of ``batch_size``; a reader (or anything that becomes one) with one row per row of
        the table, in its order; or a field or schema of columns that are null everywhere. Other writers don't matter:
        what is computed stays computed.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2]}, "memory://add-columns-example")
        >>> ds.add_columns({"double": "id * 2"})
        >>> ds.to_table().to_pydict()
        {'id': [1, 2], 'double': [2, 4]}
        """
        self.prepare_add_columns(transforms, read_columns, reader_schema, batch_size).execute()

    def prepare_add_columns(
        self,
        transforms: Any,
        read_columns: Sequence[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
    ) -> PreparedColumns:
        """New columns to be made: ``execute``, ``execute_uncommitted``, ``explain_plan``, ``analyze_plan``.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2]}, "memory://prepare-add-columns-example")
        >>> print(ds.prepare_add_columns({"double": "id * 2"}).explain_plan().splitlines()[0])
        AddColumns: columns=[double], uri=memory://prepare-add-columns-example, version=1
        """
        return column_verbs.add_columns(self, transforms, read_columns, reader_schema, batch_size)

    @commits
    def alter_columns(self, *alterations: Mapping[str, Any], skip_auto_cleanup: bool = False) -> None:
        """Change columns. Each alteration is a dict: ``path``, and ``name``, ``nullable`` or ``data_type``.

        Names and nullability are metadata only. A new type within the same family (integers, floats, texts, lists of
        these…) writes the column again; a value that it can't hold is an error. All happen in one version.

        >>> import pyarrow as pa
        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2]}, "memory://alter-columns-example")
        >>> ds.alter_columns({"path": "id", "name": "key", "data_type": pa.int32()})
        >>> ds.schema.field("key").type
        DataType(int32)
        """
        column_verbs.alter_columns(self, alterations)

    @commits
    def drop_columns(self, columns: Sequence[str], *, skip_auto_cleanup: bool = False) -> None:
        """Forget columns, or members of structs by their path. Data files are not touched.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2], "text": ["a", "b"]}, "memory://drop-columns-example")
        >>> ds.drop_columns(["text"])
        >>> ds.schema.names
        ['id']
        """
        column_verbs.drop_columns(self, columns)

    @commits
    def merge(
        self,
        data_obj: Any,
        left_on: str,
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        skip_auto_cleanup: bool = False,
    ) -> None:
        """Add the columns of other data, which is looked up by a key: a left join.

        Rows without a partner get null. Of several partners the last counts. The key has one type on both sides;
        ``_rowid`` and ``_rowaddr`` are keys too.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2]}, "memory://merge-example")
        >>> ds.merge({"id": [2], "text": ["two"]}, "id")
        >>> ds.to_table().to_pydict()
        {'id': [1, 2], 'text': [None, 'two']}
        """
        column_verbs.merge(self, data_obj, left_on, right_on, schema)

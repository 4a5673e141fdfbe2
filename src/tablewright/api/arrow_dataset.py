"""What pyarrow's C++ code sees of a table: the base class that makes a ``LanceDataset`` a ``pyarrow.dataset.Dataset``.

``Scanner.from_dataset``, unions, joins and Acero call the C++ dataset behind the Python object and none of its Python
methods. A Python subclass of ``pyarrow.dataset.Dataset`` has no C++ dataset (its pointer is null, and C++ code that
follows it ends the process), so this class derives from ``UnionDataset``, which can be given one:

1. The table is a union of one ``FileSystemDataset`` of Arrow IPC files on a read-only filesystem of ours.
2. A file is a range of rows by position. It exists in no storage: it is scanned and encoded when C++ opens it.
3. A dataset that moves to another version gets a new C++ dataset. Scans under way keep the one they began with.

C++ applies projections and filters after a file is read, so ``LanceDataset.scanner`` is the faster way; DuckDB, Polars
and DataFusion use it. A file holds at most 1 GiB; a larger table, and a dataset with default scan options (which C++
would leave out), are refused when a file is opened.

Scanners and fragments of pyarrow can't be given a C++ part at all. Ours are classes of their own that pass for them in
``isinstance`` checks; a C++ function that is given one raises ``TypeError``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs

from tablewright.api.pinned import Pinned, table_of
from tablewright.errors import InvalidRequest, TablewrightError, UnsupportedFeature
from tablewright.jobs.table import Table
from tablewright.operations.scan import ScanOptions, plan_scan, scan_table
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["ARROW_ONLY", "ArrowDataset", "passes_for"]

ARROW_ONLY = frozenset(["use_threads", "cache_metadata", "memory_pool", "fragment_scan_options"])
"""Scan options that only pyarrow has."""

_ARROW_OPTIONS = ARROW_ONLY | {"columns", "filter", "batch_size", "batch_readahead", "fragment_readahead"}
_PART_ROWS_MIN, _PARTS_OF_ROWS_MAX = 128 * 1024, 4  # each part costs microseconds whenever a dataset moves
_PART_BYTES, _PARTS_MAX, _PART_BYTES_MAX = 32 * 1024**2, 64, 1024**3
_FORMAT = pads.IpcFileFormat()


class ArrowDataset(Pinned, pads.UnionDataset):
    """A ``pyarrow.dataset.Dataset`` of the rows of one version.

    >>> import pyarrow.dataset as pads, tablewright as tw
    >>> ds = tw.write_dataset({"id": [1, 2, 3]}, "memory://arrow-dataset-example")
    >>> pads.Scanner.from_dataset(ds, filter=pads.field("id") > 1).to_table().to_pydict()
    {'id': [2, 3]}
    """

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """An object that C++ may look at before ``__init__`` has run."""
        self = super().__new__(cls)
        pads.UnionDataset.__init__(self, _NOTHING.schema, [_NOTHING])
        return self

    def _pin(self, table: Table) -> None:
        rows: _Rows
        try:
            rows = _Rows(table.snapshot, self._default_scan_options)
        except UnsupportedFeature as error:  # a type that we don't know: versions and counts can be asked for
            rows = _Unreadable(error)
        pads.UnionDataset.__init__(self, rows.schema, [rows.dataset()])
        super()._pin(table)

    def _follow(self, other: ArrowDataset) -> None:
        """Show the version that another dataset of the same table shows; what C++ sees of it is shared."""
        (rows,) = other.children
        pads.UnionDataset.__init__(self, rows.schema, [rows])
        super()._pin(table_of(other))

    def _arrow_scanner(self, given: Mapping[str, Any]) -> Any:
        """pyarrow's own scanner if these are pyarrow's own options, as ``pyarrow.dataset.write_dataset`` gives them.

        ``None`` otherwise. Callers of ``scanner`` get the type of ours, since only pyarrow gives such options.
        """
        chosen = {name: value for name, value in given.items() if value is not None}
        if not chosen.keys() & ARROW_ONLY or chosen.keys() - _ARROW_OPTIONS or isinstance(chosen.get("filter"), str):
            return None
        return pads.Scanner.from_dataset(self, **chosen)

    def filter(self, expression: pc.Expression | str) -> pads.Dataset:
        """The matching rows as a dataset in memory; ``scanner(filter=…)`` streams them."""
        return pads.dataset(self.to_table(filter=expression))

    def sort_by(self, sorting: Any, **options: Any) -> pads.Dataset:
        """The sorted rows as a dataset in memory."""
        return pads.dataset(self.to_table().sort_by(sorting, **options))

    def join(self, right_dataset: Any, keys: Any, *args: Any, **options: Any) -> pads.Dataset:
        """A join in memory, with the arguments of ``pyarrow.Table.join``."""
        return pads.dataset(self.to_table().join(_in_memory(right_dataset), keys, *args, **options))

    def join_asof(self, right_dataset: Any, *args: Any, **options: Any) -> pads.Dataset:
        """A join by nearest key in memory, with the arguments of ``pyarrow.Table.join_asof``."""
        return pads.dataset(self.to_table().join_asof(_in_memory(right_dataset), *args, **options))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.scanner().__arrow_c_stream__(requested_schema)


def passes_for(arrow_class: type) -> property:
    """A ``__class__`` that makes ``isinstance(x, arrow_class)`` true for objects that are no part of pyarrow."""
    return property(lambda self: arrow_class)


def _in_memory(data: Any) -> pa.Table:
    table: pa.Table = data.to_table() if hasattr(data, "to_table") else data
    return table


class _Rows(pafs.FileSystemHandler):
    """The filesystem: file ``i/n`` holds the ``i``-th of ``n`` equal ranges of rows."""

    def __init__(self, snapshot: Snapshot, defaults: Mapping[str, Any]) -> None:
        self._snapshot, self._defaults = snapshot, tuple(defaults)
        self.schema: pa.Schema = snapshot.schema.to_arrow()

    def dataset(self) -> pads.FileSystemDataset:
        """The dataset of all its files."""
        files = pafs.PyFileSystem(self)
        rows, size = self._snapshot.fragments.total_live_rows, self._snapshot.fragments.total_data_bytes
        wanted = max(min(_PARTS_OF_ROWS_MAX, -(-rows // _PART_ROWS_MIN)), size // _PART_BYTES)
        parts = max(1, min(_PARTS_MAX, wanted))
        fragments = [_FORMAT.make_fragment(f"{part}/{parts}", files) for part in range(parts)]
        return pads.FileSystemDataset(fragments, self.schema, _FORMAT, files)

    def open_input_file(self, path: str) -> pa.NativeFile:
        """A range of rows as an Arrow IPC file."""
        table = self._read(*map(int, path.split("/")))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        return pa.BufferReader(sink.getvalue())

    open_input_stream = open_input_file

    def _read(self, part: int, parts: int) -> pa.Table:
        if self._defaults:
            raise UnsupportedFeature(
                f"pyarrow's C++ scanner does not know default_scan_options ({', '.join(self._defaults)}) of "
                f"{self._snapshot.location.uri}: hand over dataset.scanner().to_reader() instead of the dataset."
            )
        rows = self._snapshot.fragments.total_live_rows
        begin, end = rows * part // parts, rows * (part + 1) // parts
        plan = plan_scan(self._snapshot, ScanOptions(offset=begin, limit=end - begin))
        if plan.estimated_bytes // parts > _PART_BYTES_MAX:
            raise UnsupportedFeature(
                f"{self._snapshot.location.uri} is too large for pyarrow's C++ scanner, which would hold "
                f"{plan.estimated_bytes // parts:,} bytes at a time: hand over dataset.scanner().to_reader() instead "
                "of the dataset."
            )
        return scan_table(plan, self._snapshot).unify_dictionaries()

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> NoReturn:
        raise InvalidRequest("The C++ side of a table can't be pickled: pickle the LanceDataset.")

    def get_type_name(self) -> str:
        """What pyarrow calls this filesystem."""
        return "lance-rows"

    def normalize_path(self, path: str) -> str:
        """Paths have one form."""
        return path

    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        """All paths are files."""
        return [pafs.FileInfo(path, pafs.FileType.File) for path in paths]

    def _refuse(self, *arguments: Any, **options: Any) -> NoReturn:
        raise UnsupportedFeature("The rows of a table are no files: change them through the LanceDataset.")

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _refuse
    delete_file = move = copy_file = open_output_stream = open_append_stream = _refuse


class _Unreadable(_Rows):
    """For an object that C++ may look at and not read: whoever opens its one file gets ``error``."""

    def __init__(self, error: TablewrightError) -> None:
        self.schema, self._error = pa.schema([]), error

    def dataset(self) -> pads.FileSystemDataset:
        """One file, which can't be opened."""
        files = pafs.PyFileSystem(self)
        return pads.FileSystemDataset([_FORMAT.make_fragment("none", files)], self.schema, _FORMAT, files)

    def _read(self, part: int = 0, parts: int = 1) -> NoReturn:
        raise self._error

    def open_input_file(self, path: str) -> pa.NativeFile:
        """There is nothing to read."""
        return self._read()

    open_input_stream = open_input_file


_NOTHING = _Unreadable(InvalidRequest("This LanceDataset was never opened: use tablewright.dataset(uri).")).dataset()

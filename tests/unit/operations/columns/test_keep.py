"""Computed columns are used again where what they were computed from is unchanged."""

from __future__ import annotations

from pathlib import Path

import tablewright as tw
from tablewright.format.fragment import DataFile
from tablewright.operations.columns.add import BySql
from tablewright.operations.columns.keep import Kept
from tablewright.operations.columns.plan import ColumnsPlan


def _kept(plan: ColumnsPlan, fragment_id: int) -> Kept:
    fragment = plan.fragments.by_id(fragment_id)
    ids = tuple(field.id for field in plan.written.fields)
    file = DataFile(path="x.lance", fields=ids, column_indices=(0,), file_major_version=2, file_minor_version=2)
    return Kept(file, plan.inputs[fragment_id], fragment.deleted_rows, plan.written)


def test_results_outlive_what_does_not_concern_them(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": range(8), "x": range(8), "y": range(8)}, str(tmp_path / "t"), max_rows_per_file=4)
    request = BySql({"c": "x + 1"}, now_ns=0)
    kept = {id: _kept(request.plan(ds._snapshot), id) for id in (0, 1)}

    def fitting() -> list[int]:
        plan = request.plan(ds._snapshot)
        inputs = plan.inputs
        return [f.id for f in plan.fragments if f.id in kept and kept[f.id].fits(f, inputs[f.id], plan.written)]

    assert fitting() == [0, 1]
    ds.delete("id = 1")
    ds.update({"y": "0"}, where="id < 4", write_mode="rewrite_columns")
    ds.update({"x": "0"}, where="id = 2", write_mode="rewrite_rows")
    ds.add_columns({"other": "id"})
    ds.insert({"id": [9], "x": [9], "y": [9], "other": [9]})
    assert fitting() == [0, 1]
    assert kept[0].numbered(request.plan(ds._snapshot).written).fields == (4,)
    ds.update({"x": "-1"}, where="id < 4", write_mode="rewrite_columns")
    assert fitting() == [1]


def test_rows_that_come_back_were_not_computed(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": range(4)}, str(tmp_path / "t"))
    ds.delete("id = 0")
    request = BySql({"c": "id + 1"}, now_ns=0)
    kept = _kept(request.plan(ds._snapshot), 0)
    before = request.plan(ds.checkout_version(1)._snapshot)
    assert not kept.fits(before.fragments[0], before.inputs[0], before.written)


def test_system_columns_are_inputs_where_they_are_read(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": range(4), "x": range(4)}, str(tmp_path / "t"), max_rows_per_file=2)
    requests = {"_rowoffset": BySql({"c": "_rowoffset"}, now_ns=0), "_rowaddr": BySql({"c": "_rowaddr"}, now_ns=0)}
    kept = {name: _kept(request.plan(ds._snapshot), 1) for name, request in requests.items()}
    ds.delete("id = 0")
    for name, result in kept.items():
        plan = requests[name].plan(ds._snapshot)
        fits = result.fits(plan.fragments[1], plan.inputs[1], plan.written)
        assert fits == (name == "_rowaddr")

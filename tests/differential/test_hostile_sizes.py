"""Small files that claim to be huge: refused by name, before anything is made of their claims.

Each attack runs in a process that may take 2 GiB more than its imports: a decoder that believes the file fails there
with ``MemoryError``, and the test with it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap
from tests.bounded import run_bounded

from .referee import UNDER_TEST, lance, ours
from .wire import ManifestBytes, build, latest_manifest, parse, patch, put, varint

pytestmark = pytest.mark.skipif(UNDER_TEST != "tablewright", reason="the errors are ours")

VERBS = """
import json, sys, warnings
import pyarrow as pa
import tablewright as tw

uri, fresh = sys.argv[1], {"id": [31], "s": ["new"]}
verbs = {
    "scan": lambda ds: ds.to_table().num_rows,
    "rowid": lambda ds: ds.scanner(columns=["_rowid"], limit=10).to_table().num_rows,
    "filter": lambda ds: ds.count_rows("id > 5"),
    "take": lambda ds: ds.take([1, 2]).num_rows,
    "indices": lambda ds: len(ds.list_indices()),
    "validate": lambda ds: ds.validate(),
    "delete": lambda ds: ds.delete("id = 3")["num_deleted_rows"],
    "update": lambda ds: ds.update({"s": "'z'"}, where="id = 30")["num_rows_updated"],
    "merge": lambda ds: ds.merge_insert("id").when_matched_update_all().execute(pa.table(fresh))["num_updated_rows"],
}
found = {}
for name, verb in verbs.items():
    try:
        found[name] = verb(tw.dataset(uri))
    except tw.errors.TablewrightError as error:
        found[name] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""


def outcomes(uri: Path) -> dict[str, int | str | None]:
    found: dict[str, int | str | None] = json.loads(run_bounded(VERBS, str(uri)))
    return found


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three fragments with row ids, versions in several runs, a deletion file and an index."""
    place = tmp_path_factory.mktemp("hostile") / "t.lance"
    rows = pa.table({"id": range(3000), "s": ["x"] * 3000})
    ours.write_dataset(rows, str(place), enable_stable_row_ids=True, max_rows_per_file=1000)
    lance.dataset(str(place)).create_scalar_index("id", "BTREE")
    ours.dataset(str(place)).delete("id = 5")
    return place


@pytest.fixture
def table(master: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(master, tmp_path / "t.lance"))


def everything() -> bytes:
    """All 2**32 numbers as runs: 0.9 MB."""
    values = BitMap(range(2**32))
    values.run_optimize()
    return bytes(values.serialize())


def zeros(count: int) -> bytes:
    schema = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(pa.record_batch([pa.array(np.zeros(count, np.uint32))], schema=schema))
    return bytes(sink.getvalue().to_pybytes())


def with_field(message: bytes, number: int, payload: bytes, kind: int = 2) -> bytes:
    return build([*(field for field in parse(message) if field[0] != number), (number, kind, payload)])


def span(start: int, end: int) -> bytes:
    return build([(1, 2, build([(1, 0, varint(start)), (2, 0, varint(end))]))])


def change_first_fragment(uri: Path, change: Callable[[bytes], bytes]) -> None:
    path = latest_manifest(uri)
    stored = ManifestBytes.read(path)
    fragments = iter([change])
    stored.manifest = patch(stored.manifest, (2,), lambda data: next(fragments, lambda data: data)(data))
    stored.write(path)


def test_all_offsets_as_runs(tmp_path: Path) -> None:
    table = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"id": range(12_000), "s": ["x"] * 12_000}), str(table)).delete("id % 2 = 0")
    (path,) = table.glob("_deletions/*.bin")
    path.write_bytes(everything())
    found = outcomes(table)
    for verb in ("scan", "rowid", "filter", "take", "validate", "delete", "update", "merge"):
        assert str(found[verb]).startswith("CorruptTable"), found
        assert path.name in str(found[verb])
        assert "4294967296 values where there can be at most 12000" in str(found[verb])
    with pytest.raises(Exception, match="12000 physical rows but 4294967296 deleted rows"):  # says pylance
        lance.dataset(str(table)).to_table()


def test_a_compressed_array_of_gigabytes(table: Path) -> None:
    (path,) = table.glob("_deletions/*.arrow")
    path.write_bytes(zeros(600_000_000))  # 72 kB
    found = outcomes(table)
    for verb in ("scan", "rowid", "filter", "take", "validate", "update"):
        assert str(found[verb]).startswith("CorruptTable"), found
        assert "claims 600000000 offsets" in str(found[verb])


def test_an_index_that_covers_all_fragments_there_can_be(table: Path) -> None:
    path = latest_manifest(table)
    stored = ManifestBytes.read(path)
    assert stored.index is not None
    stored.index = patch(stored.index, (1,), lambda index: with_field(index, 5, everything()))
    stored.write(path)
    for outcome in outcomes(table).values():
        assert str(outcome).startswith("CorruptTable"), outcome
        assert "index 'id_idx'" in str(outcome)


LINEAGE = {
    "2**62 row ids": (5, build([(1, 2, span(0, 2**62))])),
    "ids that add up to 2**64 and 1000": (5, build([(1, 2, span(0, 2**63)), (1, 2, span(2**63, 2**64 - 1))] * 2)),
    "many ranges of 2**63 ids": (5, build([(1, 2, span(0, 2**63))] * 300)),
    "a bitmap of 2**62 bits": (
        5,
        build([(1, 2, build([(3, 2, build([(2, 0, varint(2**62)), (3, 2, b"\xff" * 125)]))]))]),
    ),
    "2**64 - 1 versions": (7, build([(1, 2, build([(1, 2, span(0, 2**64 - 1)), (2, 0, varint(1))]))])),
    "many runs of 2**32 versions": (7, build([(1, 2, build([(1, 2, span(0, 2**32)), (2, 0, varint(1))]))] * 300)),
    "1001 versions": (7, build([(1, 2, build([(1, 2, span(0, 1001)), (2, 0, varint(1))]))])),
}


@pytest.mark.slow
@pytest.mark.parametrize("attack", LINEAGE)
def test_row_ids_and_versions(table: Path, attack: str) -> None:
    number, stored = LINEAGE[attack]
    change_first_fragment(table, lambda fragment: with_field(fragment, number, stored))
    found = outcomes(table)
    for verb in ("validate", "delete", "update", "merge"):
        assert str(found[verb]).startswith("CorruptTable"), found
        assert "Restore the file" in str(found[verb])
    if number == 5:
        assert str(found["rowid"]).startswith("CorruptTable"), found


def test_a_fragment_that_claims_too_many_rows(table: Path) -> None:
    """All counts of the manifest agree, only the data file says otherwise."""
    rows = 2**32 - 1
    versions = build([(1, 2, build([(1, 2, span(0, rows)), (2, 0, varint(1))]))])

    def change(fragment: bytes) -> bytes:
        fragment = with_field(fragment, 4, varint(rows), kind=0)
        fragment = with_field(fragment, 5, build([(1, 2, span(0, rows))]))
        return with_field(with_field(fragment, 7, versions), 9, versions)

    change_first_fragment(table, change)
    script = VERBS.split("verbs = {")[0] + (
        "for verb in (lambda ds: ds.to_table(), lambda ds: ds.take([1]), lambda ds: ds.validate()):\n"
        "    try:\n        print(verb(tw.dataset(uri)))\n"
        "    except tw.errors.CorruptTable as error:\n        print(error)\n"
    )
    lines = run_bounded(script, str(table)).splitlines()
    assert len(lines) == 3
    assert all("has 1000 rows, the manifest says 4294967295" in line for line in lines), lines


def test_a_fragment_without_a_row_count_is_never_passed_over(table: Path) -> None:
    """pylance opens the data file to count its rows; we would read none of them, so we say so."""
    change_first_fragment(table, lambda fragment: with_field(fragment, 4, varint(0), kind=0))
    assert lance.dataset(str(table)).count_rows() == 2999
    for call in (lambda: ours.dataset(str(table)), lambda: ours.write_dataset({"id": [1]}, str(table), mode="append")):
        with pytest.raises(ours.errors.UnsupportedFeature, match=r"Fragment 0 .* does not say how many rows"):
            call()
    lance.dataset(str(table)).update_config({"any": "commit"})
    assert ours.dataset(str(table)).count_rows() == ours.dataset(str(table)).to_table().num_rows == 2999


def test_deleted_rows_that_are_not_counted_are_never_counted_as_alive(table: Path) -> None:
    """Zero stands for "not counted": pylance opens the deletion file, and we would report too many rows."""

    def change(fragment: bytes) -> bytes:
        (deletion,) = [value for number, _, value in parse(fragment) if number == 3]
        return with_field(fragment, 3, build([entry for entry in parse(deletion) if entry[0] != 4]))

    stale = ours.dataset(str(table), version=1)
    change_first_fragment(table, change)
    assert lance.dataset(str(table)).count_rows() == 2999
    for call in (
        lambda: ours.dataset(str(table)),
        lambda: ours.write_dataset({"id": [1]}, str(table), mode="append"),
        lambda: stale.insert({"id": [1]}),
    ):
        with pytest.raises(ours.errors.UnsupportedFeature, match=r"Fragment 0 .* does not say how many rows are del"):
            call()
    lance.dataset(str(table)).update_config({"any": "commit"})
    assert ours.dataset(str(table)).count_rows() == ours.dataset(str(table)).to_table().num_rows == 2999


@pytest.mark.parametrize("next_row_id", [0, 2, 2999])
@pytest.mark.parametrize("verb", ["insert", "merge", "overwrite"])
def test_row_ids_that_exist_are_not_given_out_again(table: Path, next_row_id: int, verb: str) -> None:
    """A manifest that has lost its high-water mark: take, updates and the feed would mix up rows of one id."""
    path = latest_manifest(table)
    stored = ManifestBytes.read(path)
    stored.manifest = put(stored.manifest, 14, next_row_id)
    stored.write(path)
    rows, before = {"id": [9000], "s": ["new"]}, {path.name for path in table.rglob("*.lance")}
    ds = ours.dataset(str(table))
    calls = {
        "insert": lambda: ds.insert(rows),
        "merge": lambda: ds.merge_insert("id").when_not_matched_insert_all().execute(rows),
        "overwrite": lambda: ours.write_dataset(rows, ds, mode="overwrite"),
    }
    with pytest.raises(
        ours.errors.CorruptTable, match=rf"the next row id is {next_row_id}, but rows have ids up to 2999"
    ):
        calls[verb]()
    assert {path.name for path in table.rglob("*.lance")} == before
    assert ours.dataset(str(table)).count_rows() == 2999
    with pytest.raises(ours.errors.CorruptTable, match=f"not below next_row_id {next_row_id}"):
        ours.dataset(str(table)).validate()
    ours.dataset(str(table)).delete("id = 7")  # gives out no ids


def test_rows_of_a_version_that_is_yet_to_come_are_reported(table: Path) -> None:
    def change(fragment: bytes) -> bytes:
        run = build([(1, 2, span(0, 1000)), (2, 0, varint(1 << 62))])
        return with_field(fragment, 7, build([(1, 2, run)]))

    change_first_fragment(table, change)
    with pytest.raises(
        ours.errors.CorruptTable, match=rf"fragment 0: .*version {1 << 62}, and the table is at version"
    ):
        ours.dataset(str(table)).validate()


@pytest.mark.parametrize("verb", ["scan", "filter", "take", "delete", "validate"])
def test_a_column_that_may_not_be_null_and_has_lost_its_file(tmp_path: Path, verb: str) -> None:
    """A manifest without one of its data files: the column would read as null in all rows. pylance fails, too."""
    place = str(tmp_path / "t.lance")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64(), nullable=False)])
    ours.write_dataset(pa.table([[1, 2, 3], [4, 5, 6]], schema=schema), place, max_rows_per_file=2)
    ours.dataset(place).update({"n": "n + 1"}, write_mode="rewrite_columns")

    def change(fragment: bytes) -> bytes:
        fields = parse(fragment)
        last = [entry for entry in fields if entry[0] == 2][-1]
        return build([entry for entry in fields if entry is not last])

    change_first_fragment(Path(place), change)
    ds = ours.dataset(place)
    calls = {
        "scan": lambda: ds.to_table(),
        "filter": lambda: ds.count_rows("n is null"),
        "take": lambda: ds.take([0]),
        "delete": lambda: ds.delete("n is null"),
        "validate": lambda: ds.validate(),
    }
    with pytest.raises(
        ours.errors.CorruptTable, match=r"fragment 0: no data file .*holds the column `n`, which may not"
    ):
        calls[verb]()
    assert ds.to_table(columns=["id"])["id"].to_pylist() == [1, 2, 3]
    with pytest.raises(Exception, match="nulls for non-nullable"):
        lance.dataset(place).to_table()

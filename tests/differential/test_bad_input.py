"""Bad input: a typed error that says what to do, also catchable as pylance's, and nothing written.

Each case names our error, the built-in class that scripts catch, and the words that help.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from .referee import UNDER_TEST, assert_same_dataset, lance, numbers, ours, tree

REQUIRED = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("x", pa.float64()), pa.field("s", pa.string())]
)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "t.lance")
    lance.write_dataset(numbers(0, 10), place, max_rows_per_file=4)
    return place


@contextmanager
def refused(place: str | Path, error: str, builtin: type[BaseException], *words: str) -> Iterator[None]:
    """The block raises the error of ours with this name, a `builtin` too, with these words, and changes no file."""
    before = tree(place)
    expected = getattr(ours.errors, error) if UNDER_TEST == "tablewright" else Exception
    with pytest.raises(expected) as caught:
        yield
    if UNDER_TEST == "tablewright":
        assert isinstance(caught.value, builtin), f"{caught.value!r} is no {builtin.__name__}"
        for word in words:
            assert re.search(word, str(caught.value)), f"{word!r} is not in {caught.value}"
        assert tree(place) == before


def test_missing_table(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.lance")
    with refused(tmp_path, "TableNotFound", ValueError, "was not found", "none.lance", "write_dataset"):
        ours.dataset(missing)
    with refused(tmp_path, "TableNotFound", ValueError, "was not found"):
        ours.LanceDataset.commit(missing, ours.LanceOperation.Append([]), read_version=1)
    with refused(tmp_path, "TablewrightError", OSError):
        ours.LanceDataset.drop(missing)
    ours.LanceDataset.drop(missing, ignore_not_found=True)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("no table")
    with refused(tmp_path, "TableNotFound", ValueError, "was not found"):
        ours.dataset(str(tmp_path / "folder"))


def test_table_exists(uri: str) -> None:
    with refused(uri, "TableExists", OSError, "already exists", "append", "overwrite"):
        ours.write_dataset(numbers(0, 3), uri)
    with refused(uri, "TableExists", OSError, "already exists"):
        ours.write_dataset(numbers(0, 3), uri, mode="create")
    with refused(uri, "TableExists", OSError, "already exists"):
        ours.write_dataset(numbers(0, 3), ours.dataset(uri), mode="create")


@pytest.mark.parametrize("data", [list, lambda: iter([]), lambda: (batch for batch in [])])
def test_empty_data(tmp_path: Path, data: Callable[[], Any]) -> None:
    place = str(tmp_path / "t.lance")
    with refused(tmp_path, "InvalidRequest", ValueError, "[Ss]chema"):
        ours.write_dataset(data(), place)
    schema = numbers(0, 0).schema
    made = ours.write_dataset(data(), place, schema=schema)
    assert (made.version, made.count_rows(), made.schema) == (1, 0, schema)
    assert_same_dataset(place)
    again = ours.write_dataset(data(), place, schema=schema, mode="append")
    assert (again.version, again.count_rows()) == (2, 0)
    assert_same_dataset(place)


MISFITS = {
    "another type": (pa.table({"id": ["a"], "x": [1.0], "s": ["b"]}), ["`id`", "int64", "string"]),
    "a flag for a number": (pa.table({"id": [True], "x": [1.0], "s": ["b"]}), ["`id`", "int64", "bool"]),
    "an unknown column": (numbers(0, 1).append_column("zz", [[1]]), ["zz"]),
    "two differences": (pa.table({"id": ["a"], "x": ["b"], "s": ["b"]}), ["`id`", "`x`"]),
    "a struct for a text": (pa.table({"id": [1], "x": [1.0], "s": [{"a": 1}]}), ["`s`", "string"]),
    "only unknown columns": (pa.table({"q": [1]}), ["q"]),
}


@pytest.mark.parametrize("name", MISFITS)
def test_schema_mismatch_lists_the_differences(uri: str, name: str) -> None:
    table, words = MISFITS[name]
    for write in (
        lambda: ours.write_dataset(table, uri, mode="append"),
        lambda: ours.dataset(uri).insert(table),
        lambda: ours.fragment.write_fragments(table, uri),
    ):
        with refused(uri, "SchemaMismatch", OSError, "Append with different schema", *words):
            write()


@pytest.mark.parametrize("mode", ["create", "append", "overwrite"])
def test_nulls_where_none_may_be(tmp_path: Path, mode: str) -> None:
    place = str(tmp_path / "t.lance")
    if mode != "create":
        lance.write_dataset(numbers(0, 3).cast(REQUIRED), place)
    table = pa.table([pa.array([1, None], pa.int64()), [1.0, 2.0], ["a", "b"]], schema=REQUIRED)
    with refused(tmp_path, "InvalidRequest", Exception, "id", "null"):
        ours.write_dataset(table, place, mode=mode)
    if mode == "append":
        with refused(tmp_path, "InvalidRequest", Exception, "id", "null"):
            ours.write_dataset(numbers(0, 2).set_column(0, "id", pa.nulls(2, pa.int64())), place, mode="append")
        with refused(tmp_path, "SchemaMismatch", OSError, "missing", "id"):
            ours.write_dataset(numbers(0, 2).drop_columns(["id"]), place, mode="append")


def _writing(data: Any, **options: Any) -> Callable[[str], Any]:
    return lambda place: ours.write_dataset(data, place, **options)


ONE = numbers(0, 1)
WRONG_CALLS: dict[str, tuple[Callable[[str], Any], type[BaseException], str]] = {
    "a number": (_writing(5), TypeError, "Unknown data type"),
    "an object": (_writing(object()), TypeError, "Unknown data type"),
    "an unknown mode": (_writing(ONE, mode="upsert"), ValueError, "mode.*append"),
    "no rows per file": (_writing(ONE, max_rows_per_file=0), ValueError, "max_rows_per_file"),
    "an unknown file version": (_writing(ONE, data_storage_version="9.9"), ValueError, r"9\.9"),
    "two columns of one name": (_writing(pa.table([[1], [2]], names=["a", "a"])), Exception, "[Dd]uplicate.*a"),
    "a dotted name": (_writing(pa.table([[1]], names=["a.b"])), Exception, r"a\.b"),
    "a reserved name": (_writing(pa.table([[1]], names=["_rowid"])), Exception, "_rowid"),
    "metadata that is no text": (_writing(ONE.replace_schema_metadata({b"a": b"\xff"})), ValueError, "(?i)utf"),
    "an unknown scheme": (lambda place: ours.dataset("nowhere://x/y"), ValueError, "nowhere"),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_calls_that_mean_nothing(tmp_path: Path, name: str) -> None:
    if UNDER_TEST == "lance" and name == "no rows per file":
        pytest.skip("pylance panics")
    action, builtin, words = WRONG_CALLS[name]
    with refused(tmp_path, "InvalidRequest", builtin, words):
        action(str(tmp_path / "t.lance"))


def test_batches_that_change_their_mind_or_raise(tmp_path: Path, uri: str) -> None:
    def differing() -> Iterator[pa.RecordBatch]:
        yield from numbers(0, 3).to_batches()
        yield pa.record_batch({"id": ["a"]})

    def raising() -> Iterator[pa.RecordBatch]:
        yield from numbers(0, 3).to_batches()
        raise RuntimeError("the source broke")

    schema = numbers(0, 0).schema
    for place, mode in ((str(tmp_path / "new.lance"), "create"), (uri, "append"), (uri, "overwrite")):
        before = tree(tmp_path)
        with pytest.raises(OSError if UNDER_TEST == "lance" else ours.errors.InvalidRequest):
            ours.write_dataset(differing(), place, schema=schema, mode=mode)
        with pytest.raises(OSError if UNDER_TEST == "lance" else Exception, match="the source broke"):
            ours.write_dataset(raising(), place, schema=schema, mode=mode)
        if UNDER_TEST == "tablewright":
            assert tree(tmp_path) == before


UNKNOWN_COLUMNS = {
    "projection": lambda ds: ds.to_table(columns=["nope"]),
    "one of several": lambda ds: ds.to_table(columns=["id", "nope"]),
    "sub-field": lambda ds: ds.to_table(columns=["id.nope"]),
    "expression": lambda ds: ds.to_table(columns={"a": "nope + 1"}),
    "filter": lambda ds: ds.to_table(filter="nope = 1"),
    "filter of a count": lambda ds: ds.count_rows("nope = 1"),
    "batches": lambda ds: list(ds.to_batches(columns=["nope"])),
    "scanner": lambda ds: ds.scanner(columns=["nope"]).to_table(),
    "take": lambda ds: ds.take([0], columns=["nope"]),
    "take by id": lambda ds: ds._take_rows([0], columns=["nope"]),
    "head": lambda ds: ds.head(1, columns=["nope"]),
    "sample": lambda ds: ds.sample(1, columns=["nope"]),
    "fragment": lambda ds: ds.get_fragment(0).to_table(columns=["nope"]),
    "fragment filter": lambda ds: ds.get_fragment(0).count_rows("nope = 1"),
    "order": lambda ds: ds.to_table(order_by=["nope"]),
}


@pytest.mark.parametrize("name", UNKNOWN_COLUMNS)
@pytest.mark.skipif(UNDER_TEST == "lance", reason="pylance panics on some of these")
def test_unknown_columns(uri: str, name: str) -> None:
    with refused(uri, "InvalidRequest", ValueError, "nope", "id", r"\bs\b"):
        UNKNOWN_COLUMNS[name](ours.dataset(uri))


BAD_SQL = [
    "id =",
    "id = = 3",
    "select",
    "id > 3 order by id",
    "(id = 1",
    "id = 'abc'",
    "nofunction(id) = 1",
    "id = 1; drop",
]
BAD_SQL += ["id", "id + 1", "s like", "", "avg(id) > 1"]


@pytest.mark.parametrize("sql", BAD_SQL)
@pytest.mark.skipif(UNDER_TEST == "lance", reason="the words are ours")
def test_bad_sql_shows_the_expression_and_the_columns(uri: str, sql: str) -> None:
    dataset = ours.dataset(uri)
    actions = [lambda: dataset.to_table(filter=sql), lambda: dataset.count_rows(sql)]
    if sql not in ("id", "id + 1"):  # no filters, but good projections
        actions.append(lambda: dataset.to_table(columns={"a": sql}))
    for action in actions:
        with refused(uri, "InvalidRequest", ValueError, re.escape(sql), r"(?s)\bid\b.*\bx\b.*\bs\b"):
            action()


def test_numbers_out_of_range(uri: str) -> None:
    dataset = ours.dataset(uri)
    with refused(uri, "InvalidRequest", ValueError, "Limit must be non-negative"):
        dataset.to_table(limit=-1)
    with refused(uri, "InvalidRequest", ValueError, "Offset must be non-negative"):
        dataset.to_table(offset=-1)
    with refused(uri, "TablewrightError", Exception):
        dataset.take([10])
    with refused(uri, "InvalidRequest", ValueError, "read_version"):
        ours.LanceDataset.commit(uri, ours.LanceOperation.Append([]))
    with refused(uri, "VersionNotFound", ValueError, "99"):
        ours.LanceDataset.commit(uri, ours.LanceOperation.Append([]), read_version=99)
    with refused(uri, "VersionNotFound", ValueError, "99"):
        ours.LanceDataset.commit(uri, ours.LanceOperation.Restore(99))
    if UNDER_TEST == "tablewright":
        with refused(uri, "TablewrightError", Exception):
            ours.LanceDataset.commit(uri, "append", read_version=1)


def test_versions_that_are_gone(uri: str) -> None:
    lance.dataset(uri).tags.create("kept", 1)
    for number in range(3):
        lance.write_dataset(numbers(number, number + 1), uri, mode="overwrite")
    stale = ours.dataset(uri, version=2)
    lance.dataset(uri).cleanup_old_versions(dt.timedelta(0), error_if_tagged_old_versions=False)
    with refused(uri, "VersionNotFound", ValueError, "2", "cleaned up|not found"):
        ours.dataset(uri, version=2)
    with refused(uri, "VersionNotFound", ValueError, "3"):
        ours.dataset(uri).checkout_version(3)
    with refused(uri, "VersionNotFound", ValueError, "17"):
        ours.dataset(uri, version=17)
    with refused(uri, "VersionNotFound", ValueError, "nope"):
        ours.dataset(uri, version="nope")
    with refused(uri, "VersionNotFound", ValueError):
        ours.dataset(uri, asof=dt.datetime(1999, 1, 1))
    with refused(uri, "TablewrightError", Exception):
        stale.to_table()
    with refused(uri, "TablewrightError", Exception):
        stale.restore()
    with refused(uri, "VersionNotFound", ValueError, "2"):
        ours.dataset(uri).tags.create("late", 2)
    assert_same_dataset(uri, version="kept")


def test_places_nobody_may_write(tmp_path: Path) -> None:
    """Root may write anywhere, so: a file where a directory has to be, and a file system that takes no files."""
    file = tmp_path / "file"
    file.write_text("a file")
    for place in (file, file / "t.lance", Path("/proc/tablewright-test.lance")):
        with refused(tmp_path, "StorageError", OSError, re.escape(place.name)):
            ours.write_dataset(numbers(0, 3), str(place))
    with refused(tmp_path, "TablewrightError", Exception, "file"):
        ours.dataset(str(file))
    assert file.read_text() == "a file"


def test_a_table_whose_versions_cannot_be_written(uri: str) -> None:
    """The data directory takes files, the place of the commit does not: all is removed again."""
    versions = Path(uri, "_transactions")
    moved = versions.rename(versions.with_name("kept"))
    versions.write_text("a file in the way")
    with refused(uri, "StorageError", OSError):
        ours.write_dataset(numbers(0, 3), uri, mode="append")
    versions.unlink()
    moved.rename(versions)
    ours.write_dataset(numbers(0, 3), uri, mode="append")
    assert_same_dataset(uri)

"""Options of the data source: what is understood, and what is refused by name."""

from __future__ import annotations

import pytest

from tablewright.errors import InvalidRequest
from tablewright.spark.options import Place, ReadOptions, read_options, write_options


def test_names_are_case_insensitive_and_storage_options_are_apart() -> None:
    options = read_options({"PATH": "/t", "Filter": "id > 1", "storage.AWS_Region": "eu", "Batch_Size": "100"})
    assert options.place == Place(uri="/t", storage={"aws_region": "eu"})
    assert (options.filter, options.batch_size) == ("id > 1", 100)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("id", ("id",)),
        (" id , text", ("id", "text")),
        ('["a,b", "c"]', ("a,b", "c")),
        ('{"double": "id * 2"}', {"double": "id * 2"}),
    ],
)
def test_columns(text: str, columns: object) -> None:
    assert read_options({"path": "/t", "columns": text}).columns == columns


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "path is missing"),
        ({"path": "/t", "colums": "id"}, "Unknown option 'colums' for reading: did you mean 'columns'.*with_row_id"),
        ({"path": "/t", "xyzzy": "1"}, "Unknown option 'xyzzy' for reading. Known options: path, branch"),
        ({"path": "/t", "commit_message": "x"}, "'commit_message' does not belong to reading"),
        ({"path": "/t", "changes": "true"}, "'changes' does not belong to reading"),
        ({"path": "/t", "version": "first"}, "version must be a whole number, got 'first'. A tag has"),
        ({"path": "/t", "version": "0"}, "version must be at least 1"),
        ({"path": "/t", "batch_size": "-1"}, "batch_size must be a whole number"),
        ({"path": "/t", "with_row_id": "yes"}, "with_row_id must be true or false, got 'yes'"),
        ({"path": "/t", "columns": "[1]"}, "JSON list of names"),
        ({"path": "/t", "columns": "{"}, "no JSON"),
        ({"path": "/t", "version": "1", "tag": "a"}, "version, tag name several versions"),
        ({"path": "/t", "branch": "b", "tag": "a"}, "name several versions"),
    ],
)
def test_what_is_wrong_is_said(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        read_options(given)


def test_a_version_or_a_time_may_be_on_a_branch() -> None:
    assert read_options({"path": "/t", "branch": "b", "version": "3"}).place.branch == "b"
    assert read_options({"path": "/t", "branch": "b", "asof": "2024-01-01"}).asof == "2024-01-01"


def test_values_of_unknown_options_and_of_storage_are_not_shown() -> None:
    with pytest.raises(InvalidRequest) as raised:
        read_options({"path": "/t", "aws_secret_access_key": "SECRET", "storage.aws_secret_access_key": "SECRET"})
    assert "SECRET" not in str(raised.value)
    assert "SECRET" not in repr(read_options({"path": "/t", "storage.aws_secret_access_key": "SECRET"}))


def test_options_for_writing() -> None:
    options = write_options({"path": "/t", "stable_row_ids": "true", "max_rows_per_file": "10", "commit_message": "m"})
    assert (options.stable_row_ids, options.max_rows_per_file, options.commit_message) == (True, 10, "m")
    with pytest.raises(InvalidRequest, match="'filter' does not belong to writing"):
        write_options({"path": "/t", "filter": "id > 1"})


def test_a_stream_has_options_of_its_own() -> None:
    given = {"path": "/t", "changes": "true", "start_version": "3", "max_versions_per_trigger": "2"}
    options = read_options(given, streams=True)
    assert options == ReadOptions(place=Place(uri="/t"), changes=True, start_version=3, max_versions_per_trigger=2)
    assert read_options({"path": "/t", "start_version": "LATEST"}, streams=True).start_version == "latest"
    assert write_options({"path": "/t", "checkpointLocation": "/c"}, streams=True).place.uri == "/t"
    with pytest.raises(InvalidRequest, match="Unknown option 'checkpointlocation'"):
        write_options({"path": "/t", "checkpointLocation": "/c"})

"""Options of a compaction: arguments before config before defaults, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tablewright.errors import InvalidRequest, UnsupportedFeature
from tablewright.operations.compact.options import CompactionOptions, compaction_options

CONFIG = {
    "lance.compaction.target_rows_per_fragment": "500",
    "lance.compaction.materialize_deletions": "false",
    "lance.compaction.materialize_deletions_threshold": "0.25",
    "lance.compaction.num_threads": "9",
    "other": "x",
}


def test_config_fills_in_what_is_not_given() -> None:
    found = compaction_options(CONFIG, {"materialize_deletions_threshold": 0.5, "batch_size": None})
    assert (found.target_rows_per_fragment, found.materialize_deletions) == (500, False)
    assert (found.materialize_deletions_threshold, found.num_threads) == (0.5, None)


def test_defaults_are_those_of_the_format() -> None:
    found = compaction_options({}, {})
    assert found == CompactionOptions()
    assert (found.target_rows_per_fragment, found.materialize_deletions_threshold) == (1 << 20, 0.1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target_rows_per_fragment": 0}, "at least 1"),
        ({"target_rows_per_fragment": -5}, "at least 1"),
        ({"materialize_deletions_threshold": -0.1}, "share from 0 to 1"),
        ({"materialize_columns_threshold": 1.5}, "share from 0 to 1"),
        ({"materialize_deletions_threshold": float("nan")}, "share from 0 to 1"),
        ({"max_source_rows": 0}, "at least 1"),
        ({"num_threads": 0}, "at least 1"),
        ({"batch_size": "many"}, "whole number"),
        ({"excluded_fragment_ids": [-1]}, "non-negative"),
        ({"excluded_fragment_ids": 3}, "list of fragment ids"),
        ({"compaction_mode": "x"}, "compaction_mode must be one of"),
        ({"materialize_deletions": "yes"}, "True or False"),
        ({"foo": 1}, "Invalid compaction option: foo"),
    ],
    ids=lambda value: None,
)
def test_bad_options_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        compaction_options({}, given)


@pytest.mark.parametrize("given", [{"compaction_mode": "force_binary_copy"}], ids=str)
def test_what_is_not_supported_is_refused_by_name(given: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedFeature, match=next(iter(given))):
        compaction_options({}, given)


def test_a_config_that_can_not_be_read_names_its_key() -> None:
    with pytest.raises(InvalidRequest, match=r"lance\.compaction\.batch_size = 'lots'"):
        compaction_options({"lance.compaction.batch_size": "lots"}, {})


def test_options_are_json_able() -> None:
    options = CompactionOptions(excluded_fragment_ids=(1, 2), num_threads=3)
    assert compaction_options({}, options.to_dict()) == options

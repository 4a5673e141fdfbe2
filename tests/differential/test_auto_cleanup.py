"""Automatic cleanup beside pylance's: the same config, the same versions left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import tablewright as tw

ROWS = pa.table({"id": [1, 2, 3]})
CONFIGS: dict[str, dict[str, str]] = {
    "every second, all": {"interval": "2", "older_than": "0s"},
    "every third, all": {"interval": "3", "older_than": "0s"},
    "three stay": {"interval": "2", "retain_versions": "3"},
    "only the interval": {"interval": "2"},
    "a day": {"interval": "1", "older_than": "1day"},
    "both": {"interval": "1", "older_than": "0s", "retain_versions": "4"},
    "words": {"interval": "2", "older_than": "0h 0m 0s"},
}


def versions(path: Path) -> list[int]:
    return [each["version"] for each in lance.dataset(path).versions()]


@pytest.mark.parametrize("name", list(CONFIGS))
def test_the_same_versions_are_left(tmp_path: Path, name: str) -> None:
    config = {f"lance.auto_cleanup.{key}": value for key, value in CONFIGS[name].items()}
    left: dict[str, list[list[int]]] = {}
    for client, write, path in ((lance, lance.write_dataset, "theirs"), (tw, tw.write_dataset, "ours")):
        place = tmp_path / path
        ds: Any = write(ROWS, place)
        ds.update_config(config)
        seen = [versions(place)]
        for number in range(7):
            write(ROWS, place, mode="append" if number % 2 else "overwrite")
            seen.append(versions(place))
        client.dataset(place).delete("id = 1")
        seen.append(versions(place))
        left[path] = seen
        lance.dataset(place).validate()
    assert left["ours"] == left["theirs"]


def test_the_same_config(tmp_path: Path) -> None:
    settings: Any = {"interval": 5, "older_than_seconds": 3600}
    found = []
    for client, write, path in ((lance, lance.write_dataset, "theirs"), (tw, tw.write_dataset, "ours")):
        ds: Any = write(ROWS, tmp_path / path, auto_cleanup_options=settings)
        first = ds.config()
        ds = client.dataset(tmp_path / path)
        ds.optimize.enable_auto_cleanup(settings)
        second = client.dataset(tmp_path / path).config()
        ds.optimize.disable_auto_cleanup()
        found.append((first, second, client.dataset(tmp_path / path).config()))
    assert found[0] == found[1]

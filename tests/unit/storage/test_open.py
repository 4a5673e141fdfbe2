from __future__ import annotations

from pathlib import Path

import pytest

from tablewright.errors import InvalidRequest
from tablewright.storage import LocalStore, MemoryStore, RemoteStore, open_store


def test_kinds(tmp_path: Path) -> None:
    assert isinstance(open_store(tmp_path), LocalStore)
    assert isinstance(open_store(f"file://{tmp_path}"), LocalStore)
    assert isinstance(open_store("memory://kinds"), MemoryStore)
    assert isinstance(open_store("s3://b/x", {"region": "us-east-1"}), RemoteStore)
    assert isinstance(open_store("gs://b/x", {"google_storage_token": "t"}), RemoteStore)
    assert isinstance(open_store("az://c/x", {"account_name": "a", "account_key": "a2V5"}), RemoteStore)
    assert isinstance(open_store("abfss://c@a.dfs.core.windows.net/x", {"account_key": "a2V5"}), RemoteStore)


def test_options_travel_as_text() -> None:
    store = open_store("s3://b/x", {"allow_http": True, "client_max_retries": 3, "region": None})
    assert store.location.storage_options == {"allow_http": "true", "client_max_retries": "3"}


@pytest.mark.parametrize("options", [["a"], {1: "a"}, "region"])
def test_options_must_be_a_mapping(options: object) -> None:
    with pytest.raises(InvalidRequest, match="storage_options"):
        open_store("memory://x", options)  # type: ignore[arg-type]


def test_a_location_reopens_the_same_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("table")
    store.put("a", b"x")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert open_store(store.location.uri, store.location.storage_options).get("a") == b"x"


@pytest.mark.parametrize("value", [["secret"], b"secret", {"a": "secret"}])
def test_options_are_texts(value: object) -> None:
    with pytest.raises(InvalidRequest, match=r"'token'.* must be text") as caught:
        open_store("memory://x", {"token": value})
    assert "secret" not in str(caught.value)

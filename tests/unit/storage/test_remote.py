from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tablewright.errors import InvalidRequest, StorageError
from tablewright.storage import ObjectNotFound, open_store
from tablewright.storage.remote import client_settings


def test_settings_are_split() -> None:
    config, retry, token = client_settings(
        {"ACCESS_KEY_ID": "k", "request_timeout": "60s", "client_max_retries": "3", "client_retry_timeout": "9"}
    )
    assert config == {"access_key_id": "k", "timeout": "60s"}
    assert retry == {"max_retries": 3, "retry_timeout": timedelta(seconds=9)}
    assert token is None
    assert client_settings({"google_storage_token": "t"})[2] == "t"


def test_one_setting_under_two_names() -> None:
    assert client_settings({"region": "eu", "AWS_REGION": "eu"})[0] == {"region": "eu"}
    with pytest.raises(InvalidRequest, match="'region' twice"):
        client_settings({"region": "eu", "aws_region": "us"})


@pytest.mark.parametrize(
    ("uri", "options", "words"),
    [
        ("s3://b/x", {"client_max_retries": "many"}, "whole number"),
        ("s3://b/x", {"access_key_id": "only half"}, "Secret"),
        ("s3://b/x", {"timeout": "soon", "skip_signature": "true"}, "storage_options"),
        ("gs://b/x", {"google_service_account": "/no/such/file.json"}, "storage_options"),
    ],
)
def test_bad_options(uri: str, options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        open_store(uri, options)


def test_keys_that_the_client_does_not_know_are_left_out() -> None:
    with pytest.warns(UserWarning, match="no_such_key"):
        open_store("s3://b/x", {"download_retry_count": "5", "no_such_key": "1", "skip_signature": "true"})


def test_a_missing_bucket(s3_bucket: str, s3_options: dict[str, str]) -> None:
    store = open_store("s3://no-such-bucket-here/t", s3_options)
    for act in (
        lambda: store.get("a"),
        lambda: store.put("a", b""),
        lambda: store.put_if_absent("a", b""),
        lambda: list(store.list("")),
    ):
        with pytest.raises(StorageError, match="create it, or correct the address"):
            act()


def test_environment_fills_in(s3_bucket: str, s3_options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT", s3_options["aws_endpoint"])
    store = open_store(f"s3://{s3_bucket}/env", {"allow_http": "true"})
    store.put("a", b"x")
    assert open_store(f"s3://{s3_bucket}/env", s3_options).get("a") == b"x"


def test_profiles(s3_bucket: str, s3_options: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("[someone]\naws_access_key_id = key\naws_secret_access_key = secret\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "someone")
    options = {key: value for key, value in s3_options.items() if "access_key" not in key}
    store = open_store(f"s3://{s3_bucket}/profile", options)
    store.put("a", b"x")
    assert store.get("a") == b"x"


def test_listings_are_in_order(s3_bucket: str, s3_options: dict[str, str]) -> None:
    store = open_store(f"s3://{s3_bucket}/t", s3_options)
    for name in "cab":
        store.put(name, b"")
    assert [info.path for info in store.list("")] == ["a", "b", "c"]
    with pytest.raises(ObjectNotFound):
        store.get("d")


@pytest.mark.parametrize("key", ["client_max_retries", "client_retry_timeout"])
@pytest.mark.parametrize("value", [-5, 10**30, "many", 2.5])
def test_numbers_out_of_range(key: str, value: object) -> None:
    with pytest.raises(InvalidRequest, match=key):
        open_store("s3://bucket/x", {key: value})

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.errors import InvalidRequest
from tablewright.storage import join_uri, parse_address


def test_plain_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for spelling in ("t.lance", "./t.lance", "x/../t.lance", "t.lance/", str(tmp_path / "t.lance"), Path("t.lance")):
        assert parse_address(spelling).uri == f"{tmp_path}/t.lance"


def test_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert parse_address("~/t").uri == "/home/someone/t"


@pytest.mark.parametrize("path", ["/a b/c%20d", "/a#b?c", "/ü", "/with:colon"])
def test_plain_paths_are_literal(path: str) -> None:
    assert parse_address(path).uri == path


@pytest.mark.parametrize(
    "uri", ["file:///data/a%20b", "file://localhost/data/a b", "file:/data/a%20b/", "FILE:///data/a b"]
)
def test_file_urls_are_decoded(uri: str) -> None:
    assert parse_address(uri).uri == "/data/a b"


def test_relative_names_with_a_colon_are_paths() -> None:
    assert parse_address("a:b").uri == os.path.abspath("a:b")


@pytest.mark.parametrize(
    ("given_uri", "scheme", "bucket", "key", "normal"),
    [
        ("s3://b/k/t.lance", "s3", "b", "k/t.lance", "s3://b/k/t.lance"),
        ("s3a://b/k/", "s3", "b", "k", "s3://b/k"),
        ("s3://b", "s3", "b", "", "s3://b"),
        ("s3://b/a b", "s3", "b", "a b", "s3://b/a%20b"),
        ("s3://b/a%20b%23", "s3", "b", "a b#", "s3://b/a%20b%23"),
        ("gs://b/k", "gs", "b", "k", "gs://b/k"),
        ("az://c/k", "az", "c", "k", "az://c/k"),
        (
            "abfss://c@acc.dfs.core.windows.net/k",
            "abfss",
            "c@acc.dfs.core.windows.net",
            "k",
            "abfss://c@acc.dfs.core.windows.net/k",
        ),
        ("memory://x/y", "memory", "", "x/y", "memory://x/y"),
        ("memory://", "memory", "", "", "memory://"),
    ],
)
def test_urls(given_uri: str, scheme: str, bucket: str, key: str, normal: str) -> None:
    address = parse_address(given_uri)
    assert (address.scheme, address.bucket, address.key, address.uri) == (scheme, bucket, key, normal)
    assert parse_address(normal) == address


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("", "path or a URL"),
        ("  ", "path or a URL"),
        ("hdfs://host/x", "s3://"),
        ("s3+ddb://b/x", "unknown"),
        ("s3:///x", "bucket"),
        ("s3://b/x?y", "%3F"),
        ("s3://b/x#y", "%23"),
        ("s3://b/x/../y", "'..'"),
        ("s3://b/x//y", "empty"),
        ("file://host/x", "absolute path"),
        ("file:x", "absolute path"),
    ],
)
def test_nonsense_says_what_to_write(uri: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as caught:
        parse_address(uri)
    assert isinstance(caught.value, ValueError)


@given(st.lists(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1), min_size=1))
def test_join_and_parse_agree(parts: list[str]) -> None:
    parts = [part for part in parts if part not in (".", "..")] or ["x"]
    address = parse_address(join_uri("s3://bucket/root", "/".join(parts)))
    assert address.key == "root/" + "/".join(parts)


@pytest.mark.parametrize(
    "uri", ["a\0b", "s3://b/a%00b", "file:///a%00b", "memory:", "memory:x", "S3:b/x", "://", "://x", "c://x"]
)
def test_malformed(uri: str) -> None:
    with pytest.raises(InvalidRequest, match="Cannot open"):
        parse_address(uri)


@pytest.mark.parametrize("uri", [None, 3, b"x"])
def test_no_text(uri: object) -> None:
    with pytest.raises(TypeError, match="An address must be a path or a URL") as caught:
        parse_address(uri)  # type: ignore[arg-type]
    assert isinstance(caught.value, InvalidRequest)


def test_paths_may_look_like_urls_if_they_say_so() -> None:
    assert parse_address("./memory:x").uri.endswith("/memory:x")
    assert parse_address("a%00b:c").uri.endswith("/a%00b:c")

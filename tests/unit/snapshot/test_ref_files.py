from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.snapshot.ref_files import Branch, Tag, decode_branch, decode_tag, encode_branch, encode_tag, texts

PYLANCE_TAG = b"""{
  "branch": null,
  "version": 2,
  "createdAt": "2026-11-15T21:16:07.892200752Z",
  "updatedAt": "2026-11-15T21:16:07.902905994Z",
  "manifestSize": 423,
  "metadata": {
    "a": "b"
  }
}"""

PYLANCE_BRANCH = b"""{
  "parentBranch": "b1",
  "identifier": {
    "version_mapping": [
      [
        5,
        "49277edbddfb45a78f7ed1ee27dab872"
      ],
      [
        5,
        "2041e0a1e152422d8644c070a74d4d97"
      ]
    ]
  },
  "parentVersion": 5,
  "createAt": 1794777391,
  "manifestSize": 613,
  "metadata": {}
}"""

names = st.text(max_size=20)
metadata = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)
unknown = st.dictionaries(st.sampled_from(["new", "newer"]), st.integers() | st.text(max_size=3) | st.none())
times_ns = st.none() | st.integers(0, 4_000_000_000 * 10**9)
tags = st.builds(
    Tag,
    branch=st.none() | names,
    version=st.integers(0, 2**64 - 1),
    created_at_ns=times_ns,
    updated_at_ns=times_ns,
    manifest_size=st.integers(0, 2**63),
    metadata=metadata,
    unknown=unknown,
)
branches = st.builds(
    Branch,
    parent_branch=st.none() | names,
    identifier=st.lists(st.tuples(st.integers(0, 2**64 - 1), names), max_size=3).map(tuple),
    parent_version=st.integers(0, 2**64 - 1),
    created_at_s=st.integers(0, 2**40),
    manifest_size=st.integers(0, 2**63),
    metadata=metadata,
    unknown=unknown,
)


def test_pylance_bytes_survive() -> None:
    assert encode_tag(decode_tag(PYLANCE_TAG, "t")) == PYLANCE_TAG
    assert encode_branch(decode_branch(PYLANCE_BRANCH, "b")) == PYLANCE_BRANCH


@given(tags)
def test_tags_round_trip(tag: Tag) -> None:
    assert decode_tag(encode_tag(tag), "t") == tag


@given(branches)
def test_branches_round_trip(branch: Branch) -> None:
    assert decode_branch(encode_branch(branch), "b") == branch


def test_old_releases_left_things_out() -> None:
    assert decode_tag(b'{"version": 1, "manifestSize": 300}', "t") == Tag(
        branch=None, version=1, created_at_ns=None, updated_at_ns=None, manifest_size=300
    )
    old = b'{"parentBranch": null, "parentVersion": 1, "createAt": 5, "manifestSize": 300}'
    assert decode_branch(old, "b").identifier == ()


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000_000),
        ("1970-01-01T00:00:01.5Z", 1_500_000_000),
        ("1970-01-01T01:00:01.000000007+01:00", 1_000_000_007),
    ],
)
def test_times(text: str, ns: int) -> None:
    data = json.dumps({"version": 1, "manifestSize": 1, "createdAt": text}).encode()
    assert decode_tag(data, "t").created_at_ns == ns


@given(
    st.binary(max_size=60)
    | st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)).map(
        lambda value: json.dumps({"version": value, "identifier": {"version_mapping": value}}).encode()
    )
)
def test_garbage_is_corrupt(data: bytes) -> None:
    for decode in (decode_tag, decode_branch):
        with pytest.raises(CorruptTable) as caught:
            decode(data, "_refs/x.json")
        assert caught.value.path == "_refs/x.json"


@pytest.mark.parametrize("bad", [{"a": 1}, {1: "a"}, {"a": None}])
def test_metadata_is_text(bad: dict[object, object]) -> None:
    with pytest.raises(InvalidRequest):
        texts(bad)

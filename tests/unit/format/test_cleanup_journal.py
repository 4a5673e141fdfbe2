from __future__ import annotations

from uuid import UUID

import pytest

from tablewright.format.cleanup_journal import Journal, decode_journal, encode_journal, journal_path


def test_round_trip() -> None:
    found = decode_journal(encode_journal({3, 1}, {"data/a.lance", "_deletions/b.bin"}))
    assert found == Journal(frozenset({1, 3}), frozenset({"data/a.lance", "_deletions/b.bin"}))
    assert journal_path(UUID(int=1)) == "_cleanup/00000000-0000-0000-0000-000000000001.json"


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"[]",
        b"null",
        b'{"format": "other", "versions": [], "names": []}',
        b'{"format": "tablewright cleanup 1", "names": []}',
        b'{"format": "tablewright cleanup 1", "versions": [], "names": [1]}',
        b'{"format": "tablewright cleanup 1", "versions": ["1"], "names": []}',
        b"\xff",
        b"[" * 100_000,
    ],
    ids=range(9),
)
def test_what_is_no_journal(junk: bytes) -> None:
    assert decode_journal(junk) is None

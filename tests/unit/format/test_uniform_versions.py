"""One version per fragment, read from bytes: as the decoder would say, or not at all."""

from __future__ import annotations

import numpy as np

from tablewright.format.fragment import Fragment, encode_fragment
from tablewright.format.row_versions import VersionSequence, encode_versions
from tablewright.format.uniform_versions import uniform_versions

BITMAP = bytes.fromhex("0a0b0a071a05100a1a01ff1005")  # a span of another shape
TWO_SPANS = bytes.fromhex("0a0e0a040a0210030a040a0210031004")


def _fragment(rows: int, updated: bytes | None) -> bytes:
    return encode_fragment(Fragment(id=1, files=(), physical_rows=rows, last_updated_at=updated, row_ids=b"\n\x00"))


def test_what_is_told_is_what_is_there() -> None:
    chance = np.random.default_rng(3)
    wanted: list[int | None] = []
    fragments: list[bytes] = []
    for _ in range(300):
        rows, version = int(chance.integers(1, 2**32)), int(chance.integers(0, 2**40))
        fragments.append(_fragment(rows, encode_versions(VersionSequence.constant(rows, version))))
        wanted.append(version)
    for rows, updated in (
        (4, encode_versions(VersionSequence.from_runs([(1, 7), (3, 8)]))),
        (5, encode_versions(VersionSequence.constant(4, 7))),  # too short: the decoder will say so
        (4, None),
        (0, b""),
        (8, BITMAP),
        (3, TWO_SPANS),
        (3, b"\xff"),
        (3, b"\x0a\x02\xff"),
    ):
        fragments.append(_fragment(rows, updated))
        wanted.append(None)
    order = chance.permutation(len(fragments)).tolist()
    versions, known = uniform_versions([fragments[at] for at in order])
    told = [version if is_known else None for version, is_known in zip(versions.tolist(), known.tolist(), strict=True)]
    assert told == [wanted[at] for at in order]
    assert [len(each) for each in uniform_versions([])] == [0, 0]

"""Totals of a version: the same whichever version was summarised before it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.format.samples import DELETION, FILE, PATH, fragment, manifest

from tablewright.errors import CorruptTable, UnsupportedFeature
from tablewright.format.envelope import decode_manifest_file, encode_manifest_file, manifest_section
from tablewright.format.fragment import Fragment, FragmentList
from tablewright.format.manifest import Manifest
from tablewright.format.totals import Summary, Totals, summarise
from tablewright.format.wire import encode_length_delimited

_kinds = st.sampled_from(
    [
        {},
        {"deletion": DELETION},
        {"physical_rows": 1 << 20},
        {"files": (FILE, replace(FILE, path="g.lance", fields=(2, 3), file_size_bytes=1 << 40))},
    ]
)
_fragments = st.lists(_kinds, max_size=50).map(
    lambda kinds: tuple(fragment(number, **kind) for number, kind in enumerate(kinds))
)


def _manifest(fragments: tuple[Fragment, ...]) -> Manifest:
    return replace(manifest(), fragments=FragmentList.of(fragments), max_fragment_id=60, timestamp_ns=1_234_567_891)


def _expected(found: Manifest) -> Totals:
    facts = found.fragments.facts
    return Totals(
        data_file_rows=int(facts.physical_rows.sum()),
        deletion_file_rows=int(facts.deleted_rows.sum()),
        deletion_files=int(facts.has_deletion.sum()),
        data_files=len(facts.file_row),
        files_size=int(facts.file_bytes.sum()),
        fragments=len(found.fragments),
    )


@given(st.lists(_fragments, min_size=1, max_size=4), st.data())
def test_each_version_of_a_history(history: list[tuple[Fragment, ...]], data: st.DataObject) -> None:
    before: Summary | None = None
    for step in history:
        kept = history[0][: data.draw(st.integers(0, 50))]
        found = _manifest((*kept, *step[len(kept) :]))
        before = summarise(encode_manifest_file(found, b"x" * len(step)), PATH, before)
        assert (before.version, before.timestamp_ns) == (found.version, found.timestamp_ns)
        assert before.totals == _expected(found)


def test_only_what_is_new_is_read() -> None:
    fragments = tuple(fragment(number) for number in range(40))
    first = summarise(encode_manifest_file(_manifest(fragments), b""), PATH)
    second = summarise(encode_manifest_file(_manifest((*fragments, fragment(40))), b""), PATH, first)
    assert second.ends[:41].tolist() == first.ends.tolist()
    assert len(second.ends) == len(second.sums) == 42


def test_fragments_apart_from_each_other_are_counted_too() -> None:
    """No writer puts other fields between fragments; protobuf allows it."""
    data = encode_manifest_file(_manifest((fragment(0), fragment(1))), b"")
    message = manifest_section(data, PATH) + encode_length_delimited(2, FragmentList.of([fragment(2)]).raw[0])
    apart = data[:0] + len(message).to_bytes(4, "little") + message + bytes(8) + data[-8:]
    found = summarise(apart, PATH)
    assert (found.totals.fragments, len(found.ends)) == (3, 0)
    assert summarise(data, PATH, found).totals.fragments == 2
    assert summarise(apart, PATH, summarise(data, PATH)).totals == found.totals


def test_what_is_no_manifest_of_this_version() -> None:
    data = encode_manifest_file(manifest(), b"")
    for wrong, path in ((data[:-1], PATH), (data, "_versions/7.manifest"), (data[:40] + b"\xff" * 9 + data[49:], PATH)):
        with pytest.raises(CorruptTable):
            summarise(wrong, path)
    newer = replace(manifest(), version=5)
    broken = FragmentList([b"\x08"])
    with pytest.raises(CorruptTable, match="can't be decoded"):
        summarise(_with_fragments(newer, broken), PATH)


def _with_fragments(value: Manifest, fragments: FragmentList) -> bytes:
    data = encode_manifest_file(replace(value, fragments=FragmentList.of([])), b"")
    message = manifest_section(data, PATH) + b"".join(encode_length_delimited(2, raw) for raw in fragments.raw)
    return len(message).to_bytes(4, "little") + message + bytes(8) + data[-8:]


def test_a_table_that_needs_a_newer_reader() -> None:
    message = manifest_section(encode_manifest_file(manifest(), b""), PATH) + bytes([9 << 3]) + b"\x80\x80\x80\x80\x10"
    with pytest.raises(UnsupportedFeature):
        summarise(len(message).to_bytes(4, "little") + message + bytes(8) + b"\0\0\2\0LANC", PATH)


def test_it_says_what_opening_says() -> None:
    data = encode_manifest_file(_manifest((fragment(0, deletion=DELETION), fragment(3))), b"")
    assert summarise(data, PATH).totals == _expected(decode_manifest_file(data, PATH).manifest)

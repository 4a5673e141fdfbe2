from __future__ import annotations

import numpy as np
import pytest

from tablewright.errors import CorruptTable, InternalError
from tablewright.format.proto import table_pb2
from tablewright.format.wire import Scan, as_buffer, decode_message, encode_message, scan, unknown_of


def _scan(messages: list[bytes], **wanted: tuple[int, ...]) -> Scan:
    return scan(*as_buffer(messages), **wanted)


def test_garbage_names_the_file() -> None:
    with pytest.raises(CorruptTable, match=r"Corrupt table file a/b: the thing \(2 bytes\) can't be decoded"):
        decode_message(table_pb2.Fragment, b"\x0a\xff", "a/b", "the thing")


def test_text_that_is_no_utf8_is_corrupt() -> None:
    with pytest.raises(CorruptTable):
        decode_message(table_pb2.DataFile, b"\x0a\x02\xff\xfe", "a/b", "the thing")


def test_a_value_that_does_not_fit_is_our_mistake() -> None:
    with pytest.raises(InternalError, match="A fragment can't be encoded"):
        encode_message("A fragment", lambda: table_pb2.Fragment(id=-1))


def test_unknown_fields_are_exactly_what_we_do_not_know() -> None:
    stranger = b"\xc2\xbb\x01\x03abc"
    known = table_pb2.Fragment(id=5, files=[table_pb2.DataFile(path="x")])
    message = table_pb2.Fragment.FromString(known.SerializeToString() + stranger)
    assert unknown_of(message) == stranger
    assert unknown_of(known) == b""
    assert message.id == 5


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, (1 << 32) - 1, 1 << 56, (1 << 63) + 5, (1 << 64) - 1])
def test_numbers_of_any_length(value: int) -> None:
    messages = [table_pb2.Fragment(id=value, physical_rows=number).SerializeToString() for number in (0, 7, value)]
    found = _scan(messages, numbers=(1, 4))
    assert found.numbers[1].tolist() == [value] * 3
    assert found.numbers[4].tolist() == [0, 7, value]
    assert found.present[1].tolist() == [value != 0] * 3
    assert not found.bad.any()


def test_of_several_numbers_the_last_counts() -> None:
    assert _scan([b"\x08\x01\x08\x02"], numbers=(1,)).numbers[1].tolist() == [2]


def test_spans_list_every_occurrence() -> None:
    buffer, starts, ends = as_buffer([b"\x12\x01a\x12\x02bc", b"", b"\x12\x00"])
    spans = scan(buffer, starts, ends, spans=(2,)).spans[2]
    found = [bytes(buffer[start:end]) for start, end in zip(spans.starts, spans.ends, strict=True)]
    assert sorted(zip(spans.rows.tolist(), found, strict=True)) == [(0, b"a"), (0, b"bc"), (2, b"")]


def test_other_wire_types_are_passed_over() -> None:
    found = _scan([b"\x09" + bytes(8) + b"\x0d" + bytes(4) + b"\x0a\x01x\x08\x05"], numbers=(1,))
    assert found.numbers[1].tolist() == [5]
    assert not found.bad.any()


@pytest.mark.parametrize(
    "broken",
    [
        b"\x08",  # a number without its value
        b"\x08\xff",  # a number that never ends
        b"\x08" + b"\xff" * 11,  # a number of eleven bytes
        b"\x12\x05abc",  # a length beyond the end
        b"\x12" + b"\xff" * 9 + b"\x01",  # a length of 2**64 - 1
        b"\x09\x01",  # half of eight bytes
        b"\x0d\x01",  # half of four bytes
        b"\x00\x01",  # field number 0
        b"\x0b\x0c",  # a group
        b"\x0f",  # no wire type
        b"\xff",  # a tag that never ends
    ],
)
def test_what_is_no_message_is_marked(broken: bytes) -> None:
    found = _scan([b"\x08\x01", broken, b"\x08\x02"], numbers=(1,), spans=(2,))
    assert found.bad.tolist() == [False, True, False]
    assert found.numbers[1][[0, 2]].tolist() == [1, 2]


def test_nothing_to_scan() -> None:
    found = _scan([], numbers=(1,), spans=(2,))
    assert len(found.numbers[1]) == len(found.spans[2].rows) == 0
    assert found.bad.dtype == np.bool_

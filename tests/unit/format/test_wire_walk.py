"""Fields of a message one by one: the same bytes pass, and mean the same, as in the columnar scanner."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tablewright.format.wire import as_buffer, encode_length_delimited, encode_varint, scan
from tablewright.format.wire_walk import NotWhole, walk

NUMBERS, SPANS = (1, 2, 3), (1, 2, 3)
_fields = st.one_of(
    st.tuples(st.integers(1, 4), st.integers(0, 2**64 - 1)).map(
        lambda field: encode_varint(field[0] << 3) + encode_varint(field[1])
    ),
    st.tuples(st.integers(1, 4), st.binary(max_size=9)).map(lambda field: encode_length_delimited(*field)),
    st.tuples(st.integers(1, 4), st.binary(min_size=8, max_size=8)).map(lambda f: bytes([f[0] << 3 | 1]) + f[1]),
    st.tuples(st.integers(1, 4), st.binary(min_size=4, max_size=4)).map(lambda f: bytes([f[0] << 3 | 5]) + f[1]),
)
_messages = st.one_of(
    st.lists(_fields, max_size=5).map(b"".join),
    st.tuples(st.lists(_fields, max_size=3).map(b"".join), st.binary(max_size=12)).map(b"".join),
)


@given(_messages)
@example(b"\x08" + b"\xff" * 9 + b"\x01")
@example(b"\x08" + b"\xff" * 9 + b"\x02")
@example(b"\x08" + b"\xff" * 10 + b"\x01")
@example(b"\x00\x01")
@example(b"\x0b\x0c")
@example(b"\x12\x05ab")
@example(b"\x09abc")
def test_it_sees_what_the_scanner_sees(message: bytes) -> None:
    found = scan(*as_buffer([message]), numbers=NUMBERS, spans=SPANS)
    try:
        fields = list(walk(message, 0, len(message)))
    except NotWhole:
        assert found.bad.tolist() == [True]
        return
    assert found.bad.tolist() == [False]
    for number in NUMBERS:
        values = [value for at, kind, value, _ in fields if (at, kind) == (number, 0)]
        assert found.numbers[number].tolist() == [values[-1] if values else 0]
        spans = [(value, end) for at, kind, value, end in fields if (at, kind) == (number, 2)]
        assert list(zip(found.spans[number].starts.tolist(), found.spans[number].ends.tolist(), strict=True)) == spans


def test_a_part_of_a_buffer() -> None:
    data = b"\xff\xff" + encode_length_delimited(2, b"ab") + b"\xff"
    assert list(walk(memoryview(data), 2, len(data) - 1)) == [(2, 2, 4, 6)]
    with pytest.raises(NotWhole):
        list(walk(data, 2, len(data) - 2))

"""Z85: the example of its RFC, and what is refused. Any bytes there and back: tests/property/test_vector_codecs.py."""

from __future__ import annotations

import pytest

from tablewright.format.deletion_vectors.z85 import decode_z85, encode_z85


@pytest.mark.parametrize(
    ("data", "text"), [("864fd26fb559f75b", "HelloWorld"), ("", ""), ("00000000", "00000"), ("ffffffff", "%nSc0")]
)
def test_both_ways(data: str, text: str) -> None:
    assert encode_z85(bytes.fromhex(data)) == text
    assert decode_z85(text).hex() == data


def test_zeros_fill_the_last_group() -> None:
    assert decode_z85(encode_z85(b"abcde")) == b"abcde\0\0\0"


@pytest.mark.parametrize(
    ("text", "words"),
    [("Hell", "multiple of 5"), ("Hell~", "alphabet"), ("Héllo", "alphabet"), ("#####", "more than 32 bits")],
)
def test_what_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        decode_z85(text)

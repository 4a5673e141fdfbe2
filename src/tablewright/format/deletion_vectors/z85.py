"""Z85: four bytes as five printable characters, the text that Delta Lake's log has for bytes (ZeroMQ RFC 32).

Each group is a big-endian number written with base 85. Python's ``base64.b85encode`` has another alphabet.
"""

from __future__ import annotations

import numpy as np

__all__ = ["decode_z85", "encode_z85"]

_ALPHABET = np.frombuffer(
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#", np.uint8
)
_WEIGHTS = 85 ** np.arange(4, -1, -1, dtype=np.int64)
_NO_DIGIT = 255
_DIGITS = np.full(256, _NO_DIGIT, np.uint8)
_DIGITS[_ALPHABET] = np.arange(85)


def encode_z85(data: bytes) -> str:
    """The text of some bytes, zeros added up to a multiple of four.

    >>> encode_z85(bytes.fromhex("864fd26fb559f75b"))
    'HelloWorld'
    """
    groups = np.frombuffer(data + bytes(-len(data) % 4), ">u4").astype(np.int64)
    text: bytes = _ALPHABET[groups[:, np.newaxis] // _WEIGHTS % 85].tobytes()
    return text.decode("ascii")


def decode_z85(text: str) -> bytes:
    """The bytes of a text, a multiple of four. Raises ``ValueError`` with the reason for anything else.

    >>> decode_z85("HelloWorld").hex()
    '864fd26fb559f75b'
    """
    if len(text) % 5:
        raise ValueError(f"a z85 text has a multiple of 5 characters, not {len(text)}")
    if not text.isascii():
        raise ValueError("a z85 text has no other characters than those of its alphabet")
    digits = _DIGITS[np.frombuffer(text.encode("ascii"), np.uint8)]
    if np.any(digits == _NO_DIGIT):
        raise ValueError("a z85 text has no other characters than those of its alphabet")
    groups = digits.reshape(-1, 5).astype(np.int64) @ _WEIGHTS
    if np.any(groups >= 2**32):
        raise ValueError("a group of a z85 text stands for more than 32 bits")
    return groups.astype(">u4").tobytes()

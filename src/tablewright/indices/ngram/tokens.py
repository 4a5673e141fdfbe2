"""Text to tokens: every three letters or digits in a row, as one number.

Text is lower-cased, then every character outside ASCII becomes the ASCII characters of its compatibility decomposition
(``é`` becomes ``e``, ``¼`` becomes ``14``) or of a small table (``ß``, ``æ``, ``ł`` …); a character that has none stays
what it is. A token is a window of three characters all of which are ASCII letters or digits, as a number of base 37:
0-9 are 1 to 10, a-z are 11 to 36. Decomposition may give capitals, whose digits pylance computes modulo 256, beyond the
base; they are computed likewise here, since what one looks up must be found in files of the other.

Texts are cut into windows without a loop over rows. A query uses only windows that are ASCII as they stand: these are
among the tokens of every text that contains it, however the characters beside them are folded.

Format: ``docs/format/indices.md#ngram-files``.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Tokens = tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]

__all__ = ["NULL_TOKEN", "query_tokens", "text_tokens"]

NULL_TOKEN = 0
"""Rows whose text is null."""

_BASE = 37
_WIDTH = 3
_PIECE_BYTES = 1 << 20
_ASCII_END = 0x80
_NO_DIGIT = 1 << 16  # 0 is the digit of a folded V
_CONTROLS = [chr(code) for code in range(32)]  # one that does not occur is put between texts

_FOLDED = {
    **dict(zip("æðøþßđħıĸłŋœŧ", ["ae", "d", "o", "th", "ss", "d", "h", "i", "k", "l", "n", "oe", "t"], strict=True)),
    **dict(zip("ÆÐØÞĐĦŁŊŒŦ", ["AE", "D", "O", "TH", "D", "H", "L", "N", "OE", "T"], strict=True)),
    # Characters that are newer than the tables of some Python releases: U+A7F1, U+1CCD6 to U+1CCF9.
    "\ua7f1": "S",
    **{chr(0x1CCD6 + place): chr(ord("A") + place) for place in range(26)},
    **{chr(0x1CCF0 + place): str(place) for place in range(10)},
}


def _digits(*, folded: bool) -> npt.NDArray[np.uint32]:
    """The digit of each byte, or :data:`_NO_DIGIT`; capitals count as small letters unless ``folded``."""
    digits = np.full(256, _NO_DIGIT, np.uint32)
    digits[ord("0") : ord("9") + 1] = np.arange(1, 11)
    digits[ord("a") : ord("z") + 1] = np.arange(11, 37)
    capitals = np.arange(ord("A"), ord("Z") + 1)
    digits[capitals] = (capitals - ord("a") + 11) % 256 if folded else digits[capitals + 32]
    return digits


_PLAIN_DIGITS, _FOLDED_DIGITS = _digits(folded=False), _digits(folded=True)


class _Folding(dict[int, str | int]):
    """What each character becomes, for ``str.translate``: its ASCII characters, else a space."""

    def __missing__(self, code: int) -> str | int:
        parts = [_FOLDED.get(part, part) for part in unicodedata.normalize("NFKD", chr(code))]
        found = "".join(part for part in "".join(parts) if ord(part) < _ASCII_END)
        self[code] = found or " "
        return self[code]


_folding = _Folding({code: code for code in range(_ASCII_END)})


def query_tokens(text: str) -> npt.NDArray[np.uint32]:
    """The different tokens of a query that every text with ``text`` in it has.

    >>> query_tokens("a bc1").tolist(), query_tokens("ab é").tolist()
    ([16911], [])
    """
    data = np.frombuffer(text.encode("latin-1", "replace"), np.uint8)
    tokens, _ = _windows(_PLAIN_DIGITS[data], np.array([len(data)]))
    return np.unique(tokens)


def text_tokens(texts: pa.Array) -> Iterator[Tokens]:
    """Tokens and the number of the text that has each, for texts without nulls, in pieces; a pair may come twice.

    >>> [(tokens.tolist(), rows.tolist()) for tokens, rows in text_tokens(pa.array(["ab", "XaBc"]))]
    [([46965, 15516], [1, 1])]
    """
    wide = texts.cast(pa.large_string())
    _, offsets, data = wide.buffers()
    if not len(wide) or offsets is None:
        return
    edges = np.frombuffer(memoryview(offsets), np.int64)[wide.offset : wide.offset + len(wide) + 1]
    content = np.frombuffer(memoryview(data or b""), np.uint8)
    start = 0
    while start < len(wide):
        stop = int(np.searchsorted(edges, edges[start] + _PIECE_BYTES, "right")) - 1
        stop = min(len(wide), max(start + 1, stop))
        ends = edges[start + 1 : stop + 1] - edges[start]
        for tokens, rows in _piece_tokens(wide[start:stop], content[edges[start] : edges[stop]], ends):
            yield tokens, rows + start
        start = stop


def _piece_tokens(texts: pa.Array, data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> Iterator[Tokens]:
    """Texts that are ASCII, then the others."""
    beyond = np.append(0, np.cumsum(data >= _ASCII_END))
    has_beyond = np.diff(beyond[ends], prepend=0) > 0
    if not has_beyond.any():
        yield _windows(_PLAIN_DIGITS[data], ends)
        return
    is_plain = np.repeat(~has_beyond, np.diff(ends, prepend=0))
    yield _windows(np.where(is_plain, _PLAIN_DIGITS[data], np.uint32(_NO_DIGIT)), ends)
    others = np.flatnonzero(has_beyond)
    folded, ends = _folded(texts.take(pa.array(others)).to_pylist())
    tokens, rows = _windows(_FOLDED_DIGITS[folded], ends)
    yield tokens, others[rows]


def _folded(texts: list[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The bytes of all texts, lower-cased and folded, and where each ends. They are folded together, not one by one."""
    everything = "".join(texts)
    between = next((control for control in _CONTROLS if control not in everything), None)
    if between is None:
        parts = [text.lower().translate(_folding) for text in texts]
        return np.frombuffer("".join(parts).encode(), np.uint8), np.cumsum([len(part) for part in parts])
    data = np.frombuffer((between.join(texts) + between).lower().translate(_folding).encode(), np.uint8)
    return data, np.flatnonzero(data == ord(between)) + 1


def _windows(digits: npt.NDArray[np.uint32], ends: npt.NDArray[np.int64]) -> Tokens:
    """The tokens of texts that lie one after the other, and the text of each."""
    if len(digits) < _WIDTH:
        return np.zeros(0, np.uint32), np.zeros(0, np.int64)
    first, second, third = digits[:-2], digits[1:-1], digits[2:]
    is_digit = digits < _NO_DIGIT
    whole = is_digit[:-2] & is_digit[1:-1] & is_digit[2:]
    for before in (1, 2):  # a window may not reach into the next text
        across = ends[:-1] - before
        whole[across[(across >= 0) & (across < len(whole))]] = False
    at = np.flatnonzero(whole)
    tokens = (first[at] * _BASE + second[at]) * _BASE + third[at]
    return tokens, np.searchsorted(ends, at, "right")

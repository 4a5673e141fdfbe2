"""Tokens: the windows of a text, also across pieces, and the folding of characters outside ASCII."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablewright.indices.ngram import tokens as module
from tablewright.indices.ngram.tokens import query_tokens, text_tokens


def code(window: str) -> int:
    """A window of small letters and digits as a number of base 37."""
    digits = [1 + ord(each) - ord("0") if each.isdigit() else 11 + ord(each) - ord("a") for each in window]
    return (digits[0] * 37 + digits[1]) * 37 + digits[2]


def found(texts: list[str], kind: pa.DataType | None = None) -> list[set[int]]:
    sets: list[set[int]] = [set() for _ in texts]
    for numbers, rows in text_tokens(pa.array(texts, kind or pa.string())):
        for number, row in zip(numbers.tolist(), rows.tolist(), strict=True):
            sets[row].add(number)
    return sets


def windows(text: str) -> set[int]:
    return {code(text[at : at + 3]) for at in range(len(text) - 2) if text[at : at + 3].isalnum()}


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Hello World", "hello world"),
        ("a1-b2c3", "a1-b2c3"),
        ("ab", ""),
        ("", ""),
        ("Straße", "strasse"),
        ("ﬁne", "fine"),
        ("Café", "cafe"),
        ("cafe\u0301s", "cafe s"),  # a mark on its own has no ASCII character: it stays between e and s
        ("İstanbul", "i stanbul"),
        ("Ærø", "aero"),
        ("a¼b", "a14b"),
        ("漢abc字", " abc "),
        ("🙂", ""),
        ("\u212aelvin", "kelvin"),
    ],
)
def test_windows_of_the_folded_text(text: str, folded: str) -> None:
    assert found([text]) == [windows(folded)]
    assert found(["xyz", text, "é", "xyz"], pa.large_string())[1] == windows(folded)


def test_capitals_that_folding_makes_are_digits_beyond_the_base() -> None:
    assert found(["zz\u1d2cq", "zz\u2c7dq"]) == [
        {(36 * 37 + 36) * 37 + 235, (36 * 37 + 235) * 37 + 27},
        {(36 * 37 + 36) * 37 + 0, (36 * 37 + 0) * 37 + 27},
    ]


def test_windows_do_not_reach_into_the_next_text() -> None:
    assert found(["ab", "c", "", "d", "efg"]) == [set(), set(), set(), set(), {code("efg")}]


def test_texts_in_several_pieces_and_with_every_control_character(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PIECE_BYTES", 16)
    texts = ["some words", "é" + "".join(map(chr, range(32))) + "abc", "a very much longer text than a piece", "née"]
    folded = ["some words", "e" + " " * 32 + "abc", texts[2], "nee"]
    assert found(texts) == [windows(each) for each in folded]
    sliced = pa.array(["skipped", *texts])[1:]
    assert sum(len(numbers) for numbers, _ in text_tokens(sliced)) >= sum(len(windows(each)) for each in folded)


def test_a_query_uses_only_windows_that_are_ascii_as_they_stand() -> None:
    assert set(query_tokens("Hello, Wörld").tolist()) == windows("hello") | windows("rld")
    assert query_tokens("né").tolist() == query_tokens("漢字漢字").tolist() == query_tokens("").tolist() == []

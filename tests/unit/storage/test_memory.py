from __future__ import annotations

from tablewright.storage import open_store


def test_one_address_is_one_place() -> None:
    open_store("memory://shared/a").put("x", b"1")
    assert open_store("memory://shared/a/").get("x") == b"1"
    assert open_store("memory://shared").get("a/x") == b"1"
    assert list(open_store("memory://shared/b").list("")) == []


def test_the_codec_cannot_reach_it() -> None:
    assert open_store("memory://shared/a").codec_location("data/x.lance") is None

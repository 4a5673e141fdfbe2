from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.format.samples import DELETION, stable_fragment

from tablewright.errors import InvalidRequest
from tablewright.format.fragment import (
    Fragment,
    fragment_from_json,
    fragment_to_json,
)


class TestJson:
    def test_the_form_of_pylance(self) -> None:
        document = fragment_to_json(stable_fragment(1, deletion=DELETION))
        assert document["deletion_file"]["file_type"] == "bitmap"
        assert document["row_id_meta"] == {"Inline": [10, 6, 10, 4, 8, 10, 16, 20]}
        assert fragment_from_json(document) == stable_fragment(1, deletion=DELETION)
        assert fragment_from_json(json.dumps(document)) == stable_fragment(1, deletion=DELETION)

    @pytest.mark.parametrize(
        "document",
        ["", "7", "{", "[]", "{}", '{"id": "a"}', '{"id": 0, "files": 3}', '{"id":true,"files":[],"physical_rows":1}'],
    )
    def test_anything_else_is_refused(self, document: str) -> None:
        with pytest.raises(InvalidRequest, match="no JSON document of a fragment"):
            fragment_from_json(document)

    def test_parts_that_make_no_sense_are_refused(self) -> None:
        good = fragment_to_json(stable_fragment(deletion=DELETION))
        for name, value in (
            ("deletion_file", {**good["deletion_file"], "file_type": "tape"}),
            ("row_id_meta", {"External": {}}),
            ("row_id_meta", {"Inline": [300]}),
            ("overlays", [1]),
        ):
            with pytest.raises(InvalidRequest):
                fragment_from_json({**good, name: value})
        with pytest.raises(InvalidRequest, match="no sound fragment"):
            fragment_from_json({**good, "physical_rows": 1})


@pytest.mark.parametrize("value", [5, 99_999_999_999, "ab", [256]])
def test_json_holds_bytes_as_lists(value: Any) -> None:
    document = fragment_to_json(Fragment(id=3, files=(), physical_rows=1))
    with pytest.raises(InvalidRequest):
        fragment_from_json({**document, "row_id_meta": {"Inline": value}})

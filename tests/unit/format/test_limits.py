"""Numbers at their limit are given; the next one is refused by name. Whole tables at their limits: tests/unit/api."""

from __future__ import annotations

import pytest

from tablewright.errors import UnsupportedFeature
from tablewright.format.limits import FIELD_ID_MAX, FRAGMENT_ID_MAX, NEXT_ROW_ID_MAX, VERSION_MAX, check_limit


@pytest.mark.parametrize(
    ("limit", "bits"), [(VERSION_MAX, 63), (FRAGMENT_ID_MAX, 32), (FIELD_ID_MAX, 31), (NEXT_ROW_ID_MAX, 64)]
)
def test_the_limit_is_the_last_number(limit: int, bits: int) -> None:
    assert limit.bit_length() == bits
    check_limit("number", limit, limit)
    with pytest.raises(UnsupportedFeature, match=f"needs the number {limit + 1}, and the format ends at {limit}"):
        check_limit("number", limit + 1, limit)

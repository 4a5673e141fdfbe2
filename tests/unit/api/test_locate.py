"""Addresses of tables and moments in time: what is none is refused."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pandas as pd
import pytest

from tablewright.api.locate import instant_ns, open_world
from tablewright.errors import InvalidRequest, WrongType


def test_times() -> None:
    early, late = timezone(timedelta(hours=5)), timezone(timedelta(hours=-5))
    for moment in (datetime.min.replace(tzinfo=early), datetime.max.replace(tzinfo=late)):
        with pytest.raises(InvalidRequest, match="beyond what a clock can tell"):
            instant_ns(moment)
    for moment in (pd.NaT, 3, None):
        with pytest.raises(WrongType, match="Unrecognized version timestamp"):
            instant_ns(moment)


@pytest.mark.parametrize("uri", [None, 3, b"x", ["x"]])
def test_addresses(uri: Any) -> None:
    with pytest.raises(WrongType, match="uri must be a path or an address"):
        open_world(uri)

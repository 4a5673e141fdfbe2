"""Random histories of changes — rows appended, deleted, updated, merged; columns added or dropped — by either library.

After every step three agree: a plain model, Tablewright and pylance. Rows are compared by key with all their values; on
tables with stable row ids also their ids and the versions that made and changed them. Where pylance has built an index,
it must answer through it as the model does.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import lance
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.caches import BUDGETS, cached
from tests.depth import deep
from tests.differential.change_strategies import History, changes, columns_like

import tablewright as tw

LIBRARIES = st.sampled_from([tw, lance])
STEPS_MAX = 6


@pytest.mark.slow
@pytest.mark.timeout(900)  # what fails is made small first, and that takes a while
@settings(max_examples=deep(1, 10) * settings.default.max_examples)
@given(
    data=st.data(),
    stable=st.booleans(),
    count=st.integers(0, 24),
    per_file=st.integers(4, 12),
    budget=st.sampled_from(list(BUDGETS)),
)
def test_any_history_reads_like_the_model(
    data: st.DataObject, stable: bool, count: int, per_file: int, budget: str
) -> None:
    with tempfile.TemporaryDirectory(prefix="tablewright-changes-") as folder, cached(budget):
        history = History(Path(folder), data.draw(LIBRARIES), stable=stable, count=count, per_file=per_file)
        for number in range(data.draw(st.integers(1, STEPS_MAX))):
            indexable = [*columns_like(history.model, "int"), *columns_like(history.model, "string"), "id"]
            if data.draw(st.integers(0, 3)) == 0 and history.model.rows:
                kind = data.draw(st.sampled_from(["BITMAP", "BTREE", "ZONEMAP"]))
                history.index(data.draw(st.sampled_from(indexable)), kind)
            library = data.draw(LIBRARIES)
            change = data.draw(changes(history.model, library, f"n{number}"))
            event(f"{library.__name__} {type(change).__name__} {getattr(change, 'mode', '')}")
            history.take(library, change)

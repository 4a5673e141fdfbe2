"""Random histories: a stale writer of ours past a chain of other writers with compactions between them.

The rows are those of "theirs, then ours", in a plain model. Whatever made ours run again, it was not a compaction.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.caches import BUDGETS, cached
from tests.concurrency.past import Attempts, Compact, Planned, Race, counted
from tests.depth import deep
from tests.property.merge_change import Merge
from tests.property.row_model import (
    AddColumns,
    Append,
    Change,
    Delete,
    Model,
    Update,
    created,
    ids_in,
    literal,
    new_rows,
    plus,
)

import tablewright as tw

ROWS, PER_FILE = 15, 4


@dataclass(frozen=True)
class Step:
    """A change, before the table is known: its verb, some of the keys, and a number."""

    verb: str
    keys: tuple[int, ...]
    number: int
    column: str = "theirs"

    def made(self, model: Model) -> Change:
        where, mode = ids_in(self.keys), "rewrite_columns" if self.number % 2 else "rewrite_rows"
        match self.verb:
            case "delete":
                return Delete(where)
            case "update a":
                return Update({"a": plus("a", self.number)}, where, mode)
            case "update b":
                return Update({"b": literal(f"b{self.number}")}, where, mode)
            case "append":
                start = max([99, *model.rows]) + 1
                return Append(new_rows(model, start, 1 + self.number % 4), model, 2)
            case "upsert":
                back = self.column == "ours"  # rows that come again are not seen by an update that looked before
                keys = {*(key for key in self.keys[:3] if back or key in model.rows), 100 + self.number}
                rows = tuple(row for key in sorted(keys) for row in new_rows(model, key, 1))
                return Merge(rows, model, mode=mode)
            case "add column":
                name = f"{self.column} {len(model.columns)}"
                return AddColumns(name.replace(" ", "_"), pa.int64(), plus("id", self.number))
            case "compact":
                return Compact("pylance" if self.number % 2 else "ours", 3 + self.number)
            case _:
                change = Step("delete" if self.number % 3 else "update b", self.keys[:2], self.number).made(model)
                return Planned(change, 4 + self.number)


VERBS = ["delete", "update a", "update b", "append", "upsert", "add column"]
KEYS = st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=4, unique=True).map(tuple)


def steps(*verbs: str) -> st.SearchStrategy[Step]:
    return st.builds(Step, st.sampled_from(verbs), KEYS, st.integers(0, 12))


@pytest.fixture(scope="module")
def attempts() -> Iterator[Attempts]:
    with pytest.MonkeyPatch.context() as patch, counted(patch) as found:
        yield found


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, tuple[str, Model]]:
    """Four fragments, two rows deleted; with addresses and with stable ids."""
    made = {}
    for stable in (False, True):
        uri = str(tmp_path_factory.mktemp("histories") / "base.lance")
        model = created(tw, uri, ROWS, per_file=PER_FILE, stable=stable)
        before = Delete(ids_in({2, 9}))
        before.run(tw, tw.dataset(uri))
        made[stable] = uri, before.after(model, 2)
    return made


def is_needless(change: Change, uri: str) -> bool:
    """A planned compaction needs something to compact, which a history may not have left."""
    if not isinstance(change, Planned):
        return False
    options = {"target_rows_per_fragment": change.rows_per_file, "materialize_deletions_threshold": 0.0}
    return not tw.optimize.Compaction.plan(tw.dataset(uri), options).tasks


@settings(
    max_examples=deep(14, 2000),
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # histories are short, and shrinking one takes minutes
)
@given(
    stable=st.booleans(),
    theirs=st.lists(steps(*VERBS, "compact", "compact", "planned"), min_size=1, max_size=6),
    ours=steps("delete", "update a", "update b", "upsert", "add column"),
    budget=st.sampled_from(list(BUDGETS)),
)
def test_a_stale_writer(
    attempts: Attempts,
    bases: dict[bool, tuple[str, Model]],
    stable: bool,
    theirs: list[Step],
    ours: Step,
    budget: str,
) -> None:
    with tempfile.TemporaryDirectory() as folder, cached(budget):
        base, model = bases[stable]
        uri = str(Path(folder) / "t.lance")
        shutil.copytree(base, uri, copy_function=os.link)
        race = Race(uri, model, stable, attempts)
        mine = replace(ours, column="ours").made(model)
        for step in theirs:
            change = step.made(race.model)
            if not is_needless(change, uri):
                race.others(change)
        attempts.forget()
        result = mine.run(tw, race.stale)
        assert not any("transaction Rewrite" in conflict for conflict in attempts.conflicts), attempts.conflicts
        if hasattr(mine, "count"):
            assert result == mine.count(race.model)
        race.model = mine.after(race.model, lance.dataset(uri).version)
        race.check()

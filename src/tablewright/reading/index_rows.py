"""Asking the indices: which rows of known fragments may match, in three-valued logic.

Each segment is asked for its own fragments: its hits that are alive there, or, for a negated condition, the live rows
there that are neither hits nor null. Answers are sets of rows by fragment, which AND intersects and OR unites; a
fragment that a part does not know is not narrowed by it.

Tests: ``tests/unit/reading/test_index_rows.py``, ``tests/differential/indices/test_filters.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce

from pyroaring import FrozenBitMap

from tablewright.data.prefetch import spread
from tablewright.expressions.queries import IsNull
from tablewright.format.index import IndexMetadata
from tablewright.format.row_set import RowSet
from tablewright.indices.files import check_sizes
from tablewright.indices.query import Hits
from tablewright.indices.registry import offered
from tablewright.indices.rows import RowsByFragment, all_live_rows, rows_at, rows_in_ranges
from tablewright.reading.index_filter import Asked, AskedTree, Every, Some
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["Answer", "ask_few", "ask_indices"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Rows that may match, in the fragments that are ``known``; those that do, where these are ``exact``."""

    rows: RowsByFragment = field(default_factory=dict)
    known: FrozenBitMap = field(default_factory=FrozenBitMap)
    exact: FrozenBitMap = field(default_factory=FrozenBitMap)

    def and_(self, other: Answer) -> Answer:
        """Rows that may satisfy both."""
        rows = {}
        for id, own in self.rows.items():
            both = own & other.rows.get(id, RowSet()) if id in other.known else own
            if both:
                rows[id] = both
        rows.update((id, own) for id, own in other.rows.items() if id not in self.known)
        return Answer(rows=rows, known=self.known | other.known, exact=self.exact & other.exact)

    def or_(self, other: Answer) -> Answer:
        """Rows that may satisfy one of both."""
        known = self.known & other.known
        rows = {id: own for id, own in self.rows.items() if id in known}
        for id, own in other.rows.items():
            if id in known:
                rows[id] = rows[id] | own if id in rows else own
        return Answer(rows=rows, known=known, exact=self.exact & other.exact)

    def inexact(self) -> Answer:
        """The same rows, to be looked at again."""
        return Answer(rows=self.rows, known=self.known)


def ask_indices(snapshot: Snapshot, tree: AskedTree, within: FrozenBitMap) -> Answer:
    """The rows of the fragments ``within`` that may match, as far as the indices know."""
    if isinstance(tree, Asked):
        return _ask(snapshot, tree, within)
    if isinstance(tree, Some):
        return reduce(Answer.or_, (ask_indices(snapshot, part, within) for part in tree.parts))
    answer = _ask_all(snapshot, tree, within)
    return answer if tree.asks_all else answer.inexact()


def ask_few(snapshot: Snapshot, asked: Asked, within: FrozenBitMap, rows_max: int) -> Answer | None:
    """The rows that match, if an exact index says so, and at most ``rows_max`` of each segment; else ``None``.

    That is found without an estimate: only pages that have the values are read.
    """
    find = offered(asked.kind).find
    if find is None or asked.leaf.negated or asked.exact != asked.fragments:
        return None
    answer = Answer()
    for index, covered in asked.segments:
        if fragments := covered & within:
            check_sizes(*snapshot.index_place(index), index)
            ids = find(snapshot, index, asked.leaf.query, rows_max=rows_max)
            if ids is None:
                return None
            rows = rows_at(snapshot, index, fragments, ids) if len(ids) else {}
            answer = _beside(answer, Answer(rows=rows, known=fragments, exact=fragments))
    return answer


def _ask_all(snapshot: Snapshot, tree: Every, within: FrozenBitMap) -> Answer:
    """The parts one after the other; what one of them leaves nothing of, the next ones are not asked about."""
    answer = ask_indices(snapshot, tree.parts[0], within)
    for part in tree.parts[1:]:
        empty = answer.known - FrozenBitMap(answer.rows)
        other = ask_indices(snapshot, part, within - empty)
        answer = answer.and_(other)
        answer = Answer(rows=answer.rows, known=answer.known, exact=answer.exact | empty)
    return answer


def _ask(snapshot: Snapshot, asked: Asked, within: FrozenBitMap) -> Answer:
    wanted = [(index, covered & within) for index, covered in asked.segments]
    asking = [(index, fragments) for index, fragments in wanted if fragments]
    answers = spread(lambda each: _ask_segment(snapshot, asked, *each), asking)
    return reduce(_beside, answers, Answer())


def _beside(one: Answer, other: Answer) -> Answer:
    """The answers of two segments, which rarely know the same fragment."""
    rows = dict(one.rows)
    for id, own in other.rows.items():
        rows[id] = rows[id] | own if id in rows else own
    inexact = (one.known - one.exact) | (other.known - other.exact)
    known = one.known | other.known
    return Answer(rows=rows, known=known, exact=known - inexact)


def _ask_segment(snapshot: Snapshot, asked: Asked, index: IndexMetadata, fragments: FrozenBitMap) -> Answer:
    search = offered(asked.kind).search
    assert search is not None, f"an index of kind {asked.kind.name} was planned, and can't be asked"
    leaf = asked.leaf
    needs_nulls = leaf.negated and not isinstance(leaf.query, IsNull)
    check_sizes(*snapshot.index_place(index), index)
    hits = search(snapshot, index, leaf.query, with_nulls=needs_nulls)
    rows = _live(snapshot, index, fragments, hits)
    if leaf.negated:
        if not hits.exact or (needs_nulls and hits.nulls is None):
            return Answer()
        others = [rows] if hits.nulls is None else [rows, rows_at(snapshot, index, fragments, hits.nulls)]
        rows = all_live_rows(snapshot, fragments)
        for gone in others:
            rows = {id: left for id, own in rows.items() if (left := own - gone[id] if id in gone else own)}
    return Answer(rows=rows, known=fragments, exact=fragments if hits.exact and leaf.exact else FrozenBitMap())


def _live(snapshot: Snapshot, index: IndexMetadata, fragments: FrozenBitMap, hits: Hits) -> RowsByFragment:
    rows = rows_at(snapshot, index, fragments, hits.ids)
    if hits.ranges is None:
        return rows
    found = rows_in_ranges(snapshot, index, fragments, hits.ranges)
    return {id: found.get(id, RowSet()) | rows.get(id, RowSet()) for id in {*found, *rows}}

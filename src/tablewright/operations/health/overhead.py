"""What deletion vectors cost a reader, measured: the same rows of one column read with and without applying them.

The column is the narrowest of fixed width, where the cost shows most. Fragments with deletions are taken evenly over
the table until there are enough rows. Both readings alternate, and the fastest of each counts, so that a busy machine
matters little.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tablewright.data.read import read_fragment
from tablewright.data.sizes import fixed_width
from tablewright.errors import CorruptTable, UnsupportedFeature
from tablewright.format.field import Field, is_blob
from tablewright.format.fragment import Fragment
from tablewright.format.schema import Schema
from tablewright.operations.health.options import HealthOptions
from tablewright.operations.health.values import ReadOverhead
from tablewright.snapshot.files import read_deletion_vector
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["measure_overhead", "narrowest_column"]

_FRAGMENTS_MAX = 64
_ROUNDS = 5

Piece = tuple[Fragment, int]


def measure_overhead(snapshot: Snapshot, options: HealthOptions) -> ReadOverhead | None:
    """Measure within the options' bounds; ``None`` if no row is deleted, or no column can be read for it.

    Nor is there a measurement if a file is missing or damaged: ``validate`` says more about it.
    """
    column = narrowest_column(snapshot.schema)
    pieces = _sample(snapshot, options.sample_rows)
    if column is None or not pieces:
        return None
    try:
        return _measure(snapshot, options, column, pieces)
    except (CorruptTable, UnsupportedFeature):
        return None


def _measure(snapshot: Snapshot, options: HealthOptions, column: Field, pieces: Sequence[Piece]) -> ReadOverhead:
    clock = snapshot.world.clock
    begin = clock.monotonic()
    for fragment, _ in pieces:
        deletion = fragment.deletion
        if deletion is not None:
            read_deletion_vector(snapshot.store_of(deletion.base_id), fragment, fresh=True)
    load_seconds = clock.monotonic() - begin
    wanted = snapshot.schema.project_ids(snapshot.schema.descendants(column.id))
    seconds: dict[bool, list[float]] = {True: [], False: []}
    rows = {True: 0, False: 0}
    for _ in range(_ROUNDS):
        for plain in (True, False):
            start = clock.monotonic()
            rows[plain] = _read(snapshot, pieces, wanted, include_deleted=plain)
            seconds[plain].append(clock.monotonic() - start)
        if clock.monotonic() - begin >= options.sample_seconds:
            break
    return ReadOverhead(
        column=column.name,
        fragments=len(pieces),
        rows=rows[True],
        deleted_rows=rows[True] - rows[False],
        plain_seconds=min(seconds[True]),
        applied_seconds=min(seconds[False]),
        load_seconds=load_seconds,
    )


def narrowest_column(schema: Schema) -> Field | None:
    """The top-level column of least fixed width; without one, the first that holds no blobs."""
    plain = [
        (fixed_width(arrow.type), column)
        for column, arrow in zip(schema.top_level, schema.to_arrow(), strict=True)
        if not any(is_blob(schema.by_id(node)) for node in schema.descendants(column.id))
    ]
    fixed = [(width, column) for width, column in plain if width]
    return min(fixed, key=lambda each: each[0])[1] if fixed else next((column for _, column in plain), None)


def _sample(snapshot: Snapshot, rows: int) -> list[Piece]:
    """Fragments with deletions, evenly spread, and how many of their first rows to read."""
    facts = snapshot.fragments.facts
    places = np.flatnonzero(facts.deleted_rows > 0)
    if len(places) > _FRAGMENTS_MAX:
        places = places[np.linspace(0, len(places) - 1, _FRAGMENTS_MAX).astype(np.int64)]
    pieces: list[Piece] = []
    for place in places.tolist():
        if rows <= 0:
            break
        count = min(rows, int(facts.physical_rows[place]))
        pieces.append((snapshot.fragments[place], count))
        rows -= count
    return pieces


def _read(snapshot: Snapshot, pieces: Sequence[Piece], wanted: Schema, *, include_deleted: bool) -> int:
    return sum(
        batch.num_rows
        for fragment, stop in pieces
        for batch in read_fragment(
            snapshot, fragment, snapshot.schema, wanted, stop=stop, include_deleted=include_deleted
        )
    )

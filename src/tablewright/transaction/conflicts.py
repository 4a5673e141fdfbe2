"""The conflict table: ours × theirs → fine, rebase, retry or incompatible.

*Ours* is being committed; *theirs* is already there. One matrix, written out below, is what the code runs,
what the tests walk cell by cell, and what the docs print (:func:`as_markdown`). A cell is

====  =============================================================================
``.``  fine: nothing to do
``R``  retryable: run the whole operation again on the latest version
``I``  incompatible: give up
a…z    a named rule of :data:`RULES`, a pure function of the two operations
====  =============================================================================

A rule may answer *rebase*: then :mod:`tablewright.transaction.rebase` moves our transaction past theirs, row by row,
by what the fragments have become. What it can't move is a :class:`~tablewright.errors.CommitConflict`, never a silent
pass. Rules about rows state the outcome in each :class:`Situation`; :func:`expected` looks it up.
A kind of operation that has no row or no column (one we don't know) is always a conflict.

Deliberate differences from pylance 14: an index created over a concurrent drop or cast of its column is retried
(rule ``k``); pylance lets it through and leaves a dangling index. Row-level rebase needs affected rows;
transactions that carry none behave as in pylance. With them, a row deleted twice is no conflict (rule ``a``), and
columns rewritten in place pass changes of other rows and of other columns (rules ``t`` to ``v``); pylance retries.
Deletions and new columns pass each other in both directions (rules ``w`` to ``y``), with or without affected rows.
Changes of rows and columns pass a compaction (rule ``c``), and so does a new index (rule ``f``); pylance retries.
An index that others dropped or replaced meanwhile is looked at again before it is replaced (rule ``e``); pylance brings
it back.
A Project carries the whole schema: past new metadata of the schema or of a field it is decided again; pylance commits
the metadata that it has read.

Switching stable row ids on (:mod:`.row_id_switch`) is a Merge to all other operations. As ours it is not judged here:
it is made again on the newest version.

Format: ``docs/format/conflicts.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, NamedTuple

from tablewright.format.fragment import TOMBSTONE
from tablewright.format.transaction import (
    Append,
    Clone,
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
    UpdateMode,
)
from tablewright.transaction.touched import (
    changed_config_keys,
    changed_fragments,
    covered_fragments,
    dropped_fields,
    removed_fragments,
    replaced_fields,
)

__all__ = [
    "KINDS",
    "MATRIX",
    "RULES",
    "Outcome",
    "Rule",
    "Situation",
    "Verdict",
    "as_markdown",
    "expected",
    "judge",
    "kinds_of",
]


class Outcome(IntEnum):
    """Ordered by severity: of several verdicts the highest counts."""

    FINE = 0
    REBASE = 1
    RETRY = 2
    INCOMPATIBLE = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for one pair of operations, with the fragments both touch and a reason for people."""

    outcome: Outcome
    fragments: tuple[int, ...] = ()
    reason: str = ""


_FINE = Verdict(Outcome.FINE)

KINDS = (
    "Append",
    "Delete",
    "UpdateRows",
    "UpdateColumns",
    "CreateIndex",
    "Rewrite",
    "MergeKeep",
    "MergeNull",
    "ProjectKeep",
    "ProjectNull",
    "DataReplacement",
    "Config",
    "SchemaMetadata",
    "FieldMetadata",
    "Overwrite",
    "Restore",
    "ReserveFragments",
    "UpdateBases",
    "Clone",
    "UpdateMemWalState",
)
"""Columns and rows of the matrix. Some operations stand several times: Update by its mode, Merge and Project by whether
they keep the nullability of columns, UpdateConfig by what it changes."""

_ROWS = """
Append            . . . . . . . R . R . . . . I I . . . I
Delete            . a s t . c w w . . b . . . I I . . . I
UpdateRows        m s n t . c R R . R b . . . I I . . . R
UpdateColumns     . u u v . c x x d R v . . . I I . . . R
CreateIndex       . . . . e f k k k k g . . . I I . . . R
Rewrite           . b b b . b R R . . b . . . I I . . . R
MergeKeep         R y R R z c R R I I R . R R I I . . . I
MergeNull         R y R R z c R R I I R . R R I I . . . I
ProjectKeep       . . . . . . R R R R . . R R I I . . . I
ProjectNull       R . R R . . R R R R R . R R I I . . . I
DataReplacement   . o b p g b R R q R h . . . I I . . . I
Config            . . . . . . . . . . . i . . . . . . . .
SchemaMetadata    . . . . . . R R . . . . I . I I . . . R
FieldMetadata     . . . . . . R R . . . . . r I I . . . R
Overwrite         . . . . . . . . . . . j . . R . . . . I
Restore           . . . . . . . . . . . . I I . . . . . I
ReserveFragments  . . . . . . . . . . . . . . I I . . . .
UpdateBases       . . . . . . . . . . . . . . . . . l . .
Clone             . . . . . . . . . . . . . . . . . . . .
UpdateMemWalState I I R R R R I I I I I . R R I I . . . R
"""

MATRIX: dict[str, dict[str, str]] = {
    line.split()[0]: dict(zip(KINDS, line.split()[1:], strict=True)) for line in _ROWS.strip().splitlines()
}


def kinds_of(operation: Operation) -> tuple[str, ...]:
    """The rows (or columns) of the table that an operation belongs to; empty for an unknown one."""
    match operation:
        case Update():
            return ("UpdateColumns" if operation.update_mode == UpdateMode.REWRITE_COLUMNS else "UpdateRows",)
        case Project() | Merge():
            return (type(operation).__name__ + ("Keep" if operation.preserves_nullability else "Null"),)
        case UpdateConfig():
            schema = ("SchemaMetadata",) if operation.schema_metadata_updates is not None else ()
            fields = ("FieldMetadata",) if operation.field_metadata_updates else ()
            config = ("Config",) if changed_config_keys(operation) or not (schema or fields) else ()
            return schema + fields + config
        case (
            Append()
            | Delete()
            | CreateIndex()
            | Rewrite()
            | DataReplacement()
            | Overwrite()
            | Restore()
            | ReserveFragments()
            | UpdateBases()
            | Clone()
            | UpdateMemWalState()
        ):
            return (type(operation).__name__,)
        case _:
            return ()


def _retry_if(fragments: frozenset[int], reason: str) -> Verdict:
    return Verdict(Outcome.RETRY, tuple(sorted(fragments)), reason) if fragments else _FINE


def _by_rows(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    common = changed_fragments(ours) & changed_fragments(theirs)
    if not common:
        return _FINE
    removed = common & (removed_fragments(ours) | removed_fragments(theirs))
    if removed:
        return _retry_if(removed, "one of both removes the whole fragment")
    if not has_affected_rows:
        return _retry_if(common, "our transaction does not say which rows it touches (affected_rows)")
    return Verdict(Outcome.REBASE, tuple(sorted(common)), "rows are compared")


def _onto_new_columns(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    if not changed_fragments(ours) & changed_fragments(theirs):
        return _FINE
    return Verdict(Outcome.REBASE, (), "their columns and our changes stand side by side")


def _other_columns(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    assert isinstance(ours, Update) and isinstance(theirs, Merge)
    gone = dropped_fields(ours.fields_modified, theirs.schema)
    if gone:
        return Verdict(Outcome.RETRY, (), f"they dropped field ids {sorted(gone)} that we rewrite")
    if ours.new_fragments:
        return Verdict(Outcome.RETRY, (), "they added columns, which the rows that we moved do not have")
    return _onto_new_columns(ours, theirs, has_affected_rows)


def _same_fragments(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    mine = removed_fragments(ours) if isinstance(ours, Rewrite) else changed_fragments(ours)
    return _retry_if(mine & changed_fragments(theirs), "they changed a fragment that we change")


def _dropped_rewritten_field(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    assert isinstance(ours, Update) and isinstance(theirs, Project)
    gone = dropped_fields(ours.fields_modified, theirs.schema)
    return Verdict(Outcome.RETRY, (), f"they dropped field ids {sorted(gone)} that we rewrite") if gone else _FINE


def _same_index_name(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    assert isinstance(ours, CreateIndex) and isinstance(theirs, CreateIndex)
    names = {index.name for index in ours.new_indices} & {index.name for index in theirs.new_indices}
    if names:
        return Verdict(Outcome.RETRY, (), f"both create index {sorted(names)}")
    gone = {index.uuid for index in theirs.removed_indices}
    both = sorted({index.name for index in ours.removed_indices if index.uuid in gone})
    return Verdict(Outcome.RETRY, (), f"both replace or drop index {both}") if both else _FINE


def _index_of_rewritten(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    assert isinstance(ours, CreateIndex) and isinstance(theirs, Rewrite)
    replaced = {entry.old_id for entry in theirs.rewritten_indices}
    gone = [index.name for index in ours.removed_indices if index.uuid in replaced]
    if gone:
        return Verdict(Outcome.RETRY, (), f"index {gone} was rewritten, and we replace what it was before")
    unknown = [index.name for index in ours.new_indices if index.coverage is None]
    if unknown:
        return Verdict(Outcome.RETRY, (), f"index {unknown} does not say which fragments it covers")
    covered = frozenset[int]().union(*(covered_fragments(index) or () for index in ours.new_indices))
    both = removed_fragments(theirs) & covered
    return Verdict(Outcome.REBASE, tuple(sorted(both)), "coverage follows the rows") if both else _FINE


def _past_rewrite(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    common = changed_fragments(ours) & removed_fragments(theirs)
    if not common:
        return _FINE
    if not has_affected_rows and not isinstance(ours, Merge):
        return _retry_if(common, "our transaction does not say which rows it touches (affected_rows)")
    return Verdict(Outcome.REBASE, tuple(sorted(common)), "rows are followed to their new addresses")


def _index_of_replaced(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    index, replacement = (ours, theirs) if isinstance(ours, CreateIndex) else (theirs, ours)
    assert isinstance(index, CreateIndex) and isinstance(replacement, DataReplacement)
    replaced = frozenset().union(*replaced_fields(replacement).values())
    hit = [entry.name for entry in index.new_indices if replaced & frozenset(entry.fields)]
    return Verdict(Outcome.RETRY, (), f"a column of index {hit} was replaced") if hit else _FINE


def _index_of_cast(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    assert isinstance(ours, Merge) and isinstance(theirs, CreateIndex)
    hit = [entry.name for entry in theirs.new_indices if dropped_fields(entry.fields, ours.schema)]
    return Verdict(Outcome.RETRY, (), f"a column of index {hit} is being cast") if hit else _FINE


def _same_column_file(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    assert isinstance(ours, DataReplacement) and isinstance(theirs, DataReplacement)
    mine, other = replaced_fields(ours), replaced_fields(theirs)
    both = frozenset(id for id in mine.keys() & other.keys() if (mine[id] & other[id]) - {TOMBSTONE})
    return _retry_if(both, "both replace the same column")


def _removed_replaced(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    gone = changed_fragments(ours) & removed_fragments(theirs)
    return Verdict(Outcome.INCOMPATIBLE, tuple(sorted(gone)), "they removed the fragment") if gone else _FINE


def _rewritten_replaced(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    assert isinstance(ours, DataReplacement) and isinstance(theirs, Update)
    mine, changed = replaced_fields(ours), frozenset(theirs.fields_modified)
    both = frozenset(id for id in mine if id in changed_fragments(theirs) and mine[id] & changed)
    return _retry_if(both | (mine.keys() & removed_fragments(theirs)), "they rewrote the column that we replace")


def _dropped_replaced(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    assert isinstance(ours, DataReplacement) and isinstance(theirs, Project)
    gone = dropped_fields(frozenset().union(*replaced_fields(ours).values()), theirs.schema)
    return Verdict(Outcome.INCOMPATIBLE, (), f"they dropped field ids {sorted(gone)}") if gone else _FINE


def _same_field_metadata(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    assert isinstance(ours, UpdateConfig) and isinstance(theirs, UpdateConfig)
    both = ours.field_metadata_updates.keys() & theirs.field_metadata_updates.keys()
    return Verdict(Outcome.INCOMPATIBLE, (), f"both change field ids {sorted(both)}") if both else _FINE


def _same_config_keys(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    assert isinstance(ours, UpdateConfig) and isinstance(theirs, UpdateConfig)
    mine, other = changed_config_keys(ours), changed_config_keys(theirs)
    replaced = {name for name, key in mine | other if key == "*"}
    both = set(mine & other) | {(name, "*") for name in replaced if _writes(mine, name) and _writes(other, name)}
    return Verdict(Outcome.INCOMPATIBLE, (), f"both change keys {sorted(both)}") if both else _FINE


def _writes(keys: frozenset[tuple[str, str]], name: str) -> bool:
    return any(owner == name for owner, _ in keys)


def _overwritten_config(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    assert isinstance(ours, Overwrite) and isinstance(theirs, UpdateConfig)
    both = {key for name, key in changed_config_keys(theirs) if name == "config" and key in ours.config_upsert_values}
    return Verdict(Outcome.INCOMPATIBLE, (), f"both change config keys {sorted(both)}") if both else _FINE


def _dropped_indexed_field(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    assert isinstance(ours, CreateIndex) and isinstance(theirs, Merge | Project)
    gone = [index.name for index in ours.new_indices if dropped_fields(index.fields, theirs.schema)]
    return Verdict(Outcome.RETRY, (), f"the column of index {gone} was dropped or cast") if gone else _FINE


def _same_base(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    assert isinstance(ours, UpdateBases) and isinstance(theirs, UpdateBases)
    for mine in ours.new_bases:
        for other in theirs.new_bases:
            if mine.id == other.id or mine.path == other.path or (mine.name and mine.name == other.name):
                return Verdict(Outcome.INCOMPATIBLE, (), f"both add base path {other.path!r}")
    return _FINE


def _keys_may_exist(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    assert isinstance(ours, Update)
    if ours.inserted_rows is None:
        return _FINE
    return Verdict(Outcome.RETRY, (), "they added rows that may hold the keys we insert")


def _updated_both(ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    assert isinstance(ours, Update) and isinstance(theirs, Update)
    if theirs.new_fragments and _keys_may_exist(ours, theirs, has_affected_rows).outcome:
        return _keys_may_exist(ours, theirs, has_affected_rows)
    return _by_rows(ours, theirs, has_affected_rows)


Situation = Literal["same rows", "other rows", "other fragments", "same column", "column read"]
"""Where two changes meet: in the same rows, in other rows of one fragment, in other fragments; for columns rewritten in
place, also in the same column of one fragment, and where ours read, for the same rows, what theirs rewrote."""


class Rule(NamedTuple):
    """A rule: its text, its function of two operations, and its outcome per situation where rows decide."""

    text: str
    judge: Callable[[Operation, Operation, bool], Verdict]
    outcomes: Mapping[Situation, Outcome] = {}


_F, _B, _R = Outcome.FINE, Outcome.REBASE, Outcome.RETRY


def _rows(same: Outcome, other: Outcome, far: Outcome = _F) -> dict[Situation, Outcome]:
    return {"same rows": same, "other rows": other, "other fragments": far}


RULES: dict[str, Rule] = {
    "a": Rule("deletion vectors are united, also where both delete one row", _by_rows, _rows(_B, _B)),
    "b": Rule("retry if they touched a fragment that we change", _same_fragments),
    "c": Rule(
        "rows are followed to their new addresses, and columns of ours carried to the new fragments",
        _past_rewrite,
        _rows(_B, _B),
    ),
    "d": Rule("retry if they dropped a field that we rewrite", _dropped_rewritten_field),
    "e": Rule("retry if both create an index of one name, or replace or drop one segment", _same_index_name),
    "f": Rule("coverage follows the rows; retry if they rewrote an index that we replace", _index_of_rewritten),
    "g": Rule("retry if the replaced column is indexed by the new index", _index_of_replaced),
    "h": Rule("retry if both replace the same column of one fragment", _same_column_file),
    "i": Rule("incompatible if both change one key", _same_config_keys),
    "j": Rule("incompatible if the overwrite sets a key that they changed", _overwritten_config),
    "k": Rule("retry if they dropped or cast the indexed column", _dropped_indexed_field),
    "l": Rule("incompatible if both add one base path", _same_base),
    "m": Rule("retry if ours inserted keys that their new rows may hold", _keys_may_exist, _rows(_F, _F)),
    "n": Rule("as m, then as s", _updated_both, _rows(_R, _B)),
    "o": Rule("incompatible if they removed a fragment whose column we replace", _removed_replaced),
    "p": Rule("retry if they rewrote the column that we replace, or removed its fragment", _rewritten_replaced),
    "q": Rule("incompatible if they dropped the column that we replace", _dropped_replaced),
    "r": Rule("incompatible if both change the metadata of one field", _same_field_metadata),
    "s": Rule("as a, but retry if both touch one row", _by_rows, _rows(_R, _B)),
    "t": Rule(
        "rows are hidden beside the columns that they rewrote; retry if both touch one row", _by_rows, _rows(_R, _B)
    ),
    "u": Rule("our columns join the rows that they left; retry if both touch one row", _by_rows, _rows(_R, _B)),
    "v": Rule(
        "columns are rewritten side by side; retry if both rewrite one column of a fragment, or if they rewrote what "
        "our change of the same rows was made from",
        _by_rows,
        _rows(_B, _B) | {"same column": _R, "column read": _R},
    ),
    "w": Rule("rows are hidden beside the columns that they added", _onto_new_columns, _rows(_B, _B, _B)),
    "x": Rule(
        "columns are rewritten beside those that they added; retry if they dropped ours",
        _other_columns,
        _rows(_B, _B, _B),
    ),
    "y": Rule("new columns join the rows that they left", _onto_new_columns, _rows(_B, _B, _B)),
    "z": Rule("retry if the new index is on a column that we cast", _index_of_cast),
}


def _judge_cell(cell: str, ours: Operation, theirs: Operation, has_affected_rows: bool) -> Verdict:
    match cell:
        case ".":
            return _FINE
        case "R":
            return Verdict(Outcome.RETRY)
        case "I":
            return Verdict(Outcome.INCOMPATIBLE)
        case _:
            return RULES[cell].judge(ours, theirs, has_affected_rows)


def judge(ours: Operation, theirs: Operation, *, has_affected_rows: bool = False) -> Verdict:
    """Look our operation up against one that came in between.

    >>> from tablewright.format.transaction import Append, Restore
    >>> judge(Append(fragments=()), Restore(version=1)).outcome.name
    'INCOMPATIBLE'
    """
    rows, columns = kinds_of(ours), kinds_of(theirs)
    if not rows or not columns:
        return Verdict(Outcome.RETRY, (), "an operation that this release does not know")
    verdicts = [_judge_cell(MATRIX[row][column], ours, theirs, has_affected_rows) for row in rows for column in columns]
    return max(verdicts, key=lambda verdict: verdict.outcome)


def expected(ours: str, theirs: str, situation: Situation) -> Outcome:
    """What the table says about two kinds of operation, ours with affected rows, that meet in a situation.

    >>> expected("Delete", "UpdateRows", "other rows").name
    'REBASE'
    """
    cell = MATRIX[ours][theirs]
    plain = {".": Outcome.FINE, "R": Outcome.RETRY, "I": Outcome.INCOMPATIBLE}
    return plain[cell] if cell in plain else RULES[cell].outcomes[situation]


def _in_words(outcomes: Mapping[Situation, Outcome]) -> str:
    return f" ({', '.join(f'{where}: {o.name.lower()}' for where, o in outcomes.items())})" if outcomes else ""


def as_markdown() -> str:
    """The matrix and its rules as the docs print them."""
    head = f"| ours \\ theirs | {' | '.join(KINDS)} |\n|{'---|' * (len(KINDS) + 1)}\n"
    rows = "".join(f"| {row} | {' | '.join(MATRIX[row][kind] for kind in KINDS)} |\n" for row in MATRIX)
    rules = "".join(f"- **{letter}**: {rule.text}{_in_words(rule.outcomes)}\n" for letter, rule in RULES.items())
    return f"{head}{rows}\n{rules}"

"""Which indices answer which parts of a filter, for which fragments. Pure.

1. The filter is a tree of conditions on single columns (:mod:`tablewright.expressions.conditions`), without NOT but on
   leaves.
2. A leaf is answered by the segments of one index on its column: an exact kind before one that only says where rows may
   be, then the one that covers most. A negated leaf needs an exact kind, which knows the nulls.
3. A fragment is *known* to a leaf if a segment of its index covers it. AND is known where one part is, and exact where
   all are; OR is known where all are. So a fragment that only one of two indices covers is still narrowed by that one.

What is known is asked when the plan runs (:mod:`.index_rows`); all other fragments are scanned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from pyroaring import FrozenBitMap

from tablewright.expressions.conditions import And, Constant, Leaf, Or, Path, Tree, Unknown
from tablewright.expressions.placing import plain_type
from tablewright.expressions.queries import IsNull
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import SCALAR_KINDS, IndexKind, kind_of
from tablewright.format.schema import Schema
from tablewright.indices.registry import offered
from tablewright.indices.rows import covered_fragments
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["Asked", "AskedTree", "Every", "Some", "plan_index_query", "scalar_indices"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A leaf, and the segments of the index that answers it, with the fragments that each covers.

    ``fragments`` are those of all segments.
    """

    leaf: Leaf
    name: str
    kind: IndexKind
    segments: tuple[tuple[IndexMetadata, FrozenBitMap], ...]
    fragments: FrozenBitMap

    @property
    def known(self) -> FrozenBitMap:
        """The fragments for which there is an answer."""
        return self.fragments

    @property
    def exact(self) -> FrozenBitMap:
        """The fragments for which the answer is likely to need no second look."""
        is_exact = self.leaf.exact and (self.kind.exact or isinstance(self.leaf.query, IsNull))
        return self.fragments if is_exact else FrozenBitMap()

    def __str__(self) -> str:
        plain = Leaf(self.leaf.path, self.leaf.query)
        text = f"[{plain}]@{self.name}({self.kind.label})"
        return f"NOT({text})" if self.leaf.negated else text


@dataclass(frozen=True, slots=True)
class Every:
    """All parts at once; rows of what is not known are not left out. ``asks_all``: no part of the filter is missing."""

    parts: tuple[AskedTree, ...]
    asks_all: bool

    @property
    def known(self) -> FrozenBitMap:
        """The fragments for which some part has an answer."""
        return FrozenBitMap.union(*(part.known for part in self.parts))

    @property
    def exact(self) -> FrozenBitMap:
        """The fragments for which all parts have an exact answer."""
        return FrozenBitMap.intersection(*(part.exact for part in self.parts)) if self.asks_all else FrozenBitMap()

    def __str__(self) -> str:
        texts = [str(part) for part in self.parts]
        return texts[0] if len(texts) == 1 else f"AND({','.join(texts)})"


@dataclass(frozen=True, slots=True)
class Some:
    """One of the parts at least."""

    parts: tuple[AskedTree, ...]

    @property
    def known(self) -> FrozenBitMap:
        """The fragments for which all parts have an answer."""
        return FrozenBitMap.intersection(*(part.known for part in self.parts))

    @property
    def exact(self) -> FrozenBitMap:
        """The fragments for which all parts have an exact answer."""
        return FrozenBitMap.intersection(*(part.exact for part in self.parts))

    def __str__(self) -> str:
        return f"OR({','.join(map(str, self.parts))})"


AskedTree: TypeAlias = Asked | Every | Some


def scalar_indices(snapshot: Snapshot) -> bool:
    """Whether the table has an index that a filter could ask."""
    return any(kind_of(index) in SCALAR_KINDS for index in snapshot.manifest.indices)


def plan_index_query(tree: Tree, snapshot: Snapshot, schema: Schema) -> AskedTree | str:
    """Which indices answer a tree in normal form; or why none does.

    ``schema`` is the one that the tree's paths are of; its fields have the ids of the table's.
    """
    planner = _Planner(snapshot, schema)
    found = planner.plan(tree)
    if found is None:
        return planner.reason
    return found if found.known else "its indices cover no fragment of this version"


class _Planner:
    def __init__(self, snapshot: Snapshot, schema: Schema) -> None:
        self._snapshot, self._schema = snapshot, schema
        self.reason = "no index is on a column of the filter"

    def plan(self, tree: Tree) -> AskedTree | None:
        """What answers the tree; ``None`` for a part that every row may satisfy."""
        if isinstance(tree, And):
            parts = [self.plan(part) for part in tree.parts]
            found = tuple(part for part in parts if part is not None)
            return Every(found, asks_all=len(found) == len(parts)) if found else None
        if isinstance(tree, Or):
            parts = [self.plan(part) for part in tree.parts]
            found = tuple(part for part in parts if part is not None)
            if found and len(found) < len(parts):
                missing = next(str(part) for part, other in zip(tree.parts, parts, strict=True) if other is None)
                where = (
                    "a part that no index can be asked for" if missing == "?" else f"{missing}, which no index answers"
                )
                self.reason = f"it has an OR with {where}"
            return Some(found) if len(found) == len(parts) else None
        if isinstance(tree, Leaf):
            return self._asked(tree)
        assert isinstance(tree, Constant | Unknown), "a tree in normal form has no NOT"
        return None

    def _asked(self, leaf: Leaf) -> Asked | None:
        """The best index for a leaf."""
        field = _field_at(self._schema, leaf.path)
        if field is None:
            return None
        choices = list(self._choices(leaf, *field))
        return min(choices, key=_preference) if choices else None

    def _choices(self, leaf: Leaf, field_id: int, kind: pa.DataType) -> Iterator[Asked]:
        named: dict[tuple[str, str], list[IndexMetadata]] = {}
        for index in self._snapshot.manifest.indices:
            own = kind_of(index)
            if own in SCALAR_KINDS and index.fields == (field_id,):
                named.setdefault((index.name, own.name), []).append(index)
        for (name, _), segments in named.items():
            own = kind_of(segments[0])
            assert own is not None
            if (problem := _refusal(leaf, own, kind)) is not None:
                self.reason = f"index {name} ({own.name}) {problem}"
                continue
            readable = [index for index in segments if (index.index_version or 0) <= own.version_max]
            covers = tuple((index, covered_fragments(self._snapshot, (index,))) for index in readable)
            fragments = FrozenBitMap.union(FrozenBitMap(), *(covered for _, covered in covers))
            if not fragments:
                self.reason = f"index {name} ({own.name}) covers no fragment of this version"
                continue
            yield Asked(leaf=leaf, name=name, kind=own, segments=covers, fragments=fragments)


def _refusal(leaf: Leaf, kind: IndexKind, type_: pa.DataType) -> str | None:
    """Why a kind does not answer a leaf; ``None`` if it does."""
    functions = offered(kind)
    if functions.search is None or functions.answers is None:
        return "can't be read by this release"
    if not functions.answers(leaf.query, type_):
        return f"does not answer {Leaf(leaf.path, leaf.query)}"
    if leaf.negated and not kind.exact and not isinstance(leaf.query, IsNull):
        return f"does not know which rows are not {Leaf(leaf.path, leaf.query)}"
    return None


_ORDER = {kind.name: place for place, kind in enumerate(SCALAR_KINDS)}


def _preference(asked: Asked) -> tuple[bool, int, int]:
    return not asked.exact, -len(asked.fragments), _ORDER[asked.kind.name]


def _field_at(schema: Schema, path: Path) -> tuple[int, pa.DataType] | None:
    """The id and the plain type of the field at a path; ``None`` if the table has none there."""
    fields = schema.top_level
    found = None
    for name in path:
        found = next((field for field in fields if field.name == name), None)
        if found is None:
            return None
        fields = schema.children(found.id)
    assert found is not None
    own = schema.to_arrow().field(found.name) if len(path) == 1 else schema.arrow_field(found.id)
    return found.id, plain_type(own.type)

"""The fragments of a manifest as an immutable sequence that decodes a fragment on first access.

Each fragment stays the bytes it was read as, so an untouched one is written back verbatim, whatever a newer release
put inside. Facts about all of them come as numpy columns (``facts.py``), and a changed list inherits the columns of
the old one. A fragment becomes a value when it is asked for by position or id, once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np

from tablewright.checks import whole_number
from tablewright.errors import CorruptTable, InternalError, UnsupportedFeature
from tablewright.format.fragment.codec import decode_fragment, encode_fragment
from tablewright.format.fragment.facts import FragmentFacts, facts_of, facts_of_values
from tablewright.format.fragment.value import Fragment
from tablewright.format.proto import table_pb2 as pb
from tablewright.format.wire import Ints, Longs
from tablewright.lazy import cached_property

__all__ = ["FragmentList"]

_FEW = 64
_FEW_BY_ID = 1024


class FragmentList(Sequence[Fragment]):
    """Fragments in the order of the manifest. Equal if the fragments are; nothing in it ever changes.

    ``path`` names the file that the bytes come from, for messages. ``fresh`` holds the positions of fragments that
    were given as values: they are not checked yet. ``files`` is kept for :func:`.entries.files_of`.
    """

    def __init__(
        self,
        raw: Sequence[bytes] = (),
        path: str = "",
        *,
        known: Mapping[int, Fragment] | None = None,
        fresh: frozenset[int] = frozenset(),
        facts: FragmentFacts | None = None,
    ) -> None:
        """Only this module passes the keywords: decoded fragments by position, and facts of exactly these bytes."""
        self._raw = raw
        self._path = path
        self._known: dict[int, Fragment] = dict(known or {})
        self.fresh = fresh
        self.files: Any = None
        if facts is not None:
            self.__dict__["facts"] = facts

    @staticmethod
    def of(fragments: Iterable[Fragment]) -> FragmentList:
        """A list of these values."""
        return FragmentList().appended(fragments)

    # ------------------------------------------------------------------------------------------- as a sequence

    def __len__(self) -> int:
        return len(self._raw)

    @overload
    def __getitem__(self, position: int) -> Fragment: ...

    @overload
    def __getitem__(self, position: slice) -> Sequence[Fragment]: ...

    def __getitem__(self, position: int | slice) -> Fragment | Sequence[Fragment]:
        if isinstance(position, slice):
            return self._at(np.arange(len(self))[position])
        fragment = self._known.get(position)
        if fragment is None:
            position = range(len(self._raw))[position]
            fragment = self._known.get(position)
        if fragment is None:
            fragment = self._known[position] = decode_fragment(self._raw[position], self._path)
        return fragment

    def __iter__(self) -> Iterator[Fragment]:
        return (self[position] for position in range(len(self)))

    def __contains__(self, fragment: object) -> bool:
        """Whether this very value is in the list; use :meth:`has` for an id."""
        if not isinstance(fragment, Fragment):
            return False
        position = self._position(fragment.id)
        return position is not None and self[position] == fragment

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FragmentList):
            return NotImplemented
        if len(self) != len(other):
            return False
        return list(self._raw) == list(other._raw) or all(map(Fragment.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return FragmentList, (self._raw, self._path)

    def __repr__(self) -> str:
        return f"FragmentList(<{len(self)} fragments, {self.total_live_rows} live rows>)"

    # --------------------------------------------------------------------------------------- facts about all

    @property
    def path(self) -> str:
        """The file that the bytes come from."""
        return self._path

    @property
    def raw(self) -> Sequence[bytes]:
        """The serialised fragments, in order."""
        return self._raw

    @cached_property
    def facts(self) -> FragmentFacts:
        """Columns over all fragments, computed once."""
        return facts_of(self._raw)

    @property
    def ids(self) -> Longs:
        """The ids in the order of the list, which need not be ascending."""
        return _frozen(self.facts.ids)

    @property
    def physical_rows(self) -> Longs:
        """Rows in the files of each fragment, deleted ones included."""
        return _frozen(self.facts.physical_rows)

    @property
    def deleted_rows(self) -> Longs:
        """Deleted rows of each fragment."""
        return _frozen(self.facts.deleted_rows)

    @property
    def live_rows(self) -> Ints:
        """Rows of each fragment that a reader sees."""
        return (self.facts.physical_rows - self.facts.deleted_rows).astype(np.int64)

    @property
    def first_rows(self) -> Ints:
        """The position of each fragment's first live row among all of the table: prefix sums of ``live_rows``."""
        live = self.live_rows
        return np.cumsum(live) - live

    @property
    def total_live_rows(self) -> int:
        """How many rows a reader of the whole table sees."""
        return _total(self.facts.physical_rows) - _total(self.facts.deleted_rows)

    @property
    def total_data_bytes(self) -> int:
        """The size of all data files; those of unknown size count as 0."""
        return _total(self.facts.file_bytes)

    @cached_property
    def max_field_id(self) -> int:
        """The highest field id that any data file lists, -1 if there is none. Decodes every fragment."""
        return max((max(fragment.live_fields, default=-1) for fragment in self), default=-1)

    def check(self) -> None:
        """Raise if some bytes are no fragment, or one that we can't read."""
        facts = self.facts
        if facts.broken.any():
            raise CorruptTable(self._path, tuple(facts.problems()))
        if facts.refused.any():
            raise UnsupportedFeature(
                f"Fragment {facts.ids[facts.refused][0]} in {self._path} has data overlays or spilled row ids, "
                "which we can't read."
            )

    def mark_checked(self) -> None:
        """Every fragment was checked: the next version checks only its own."""
        self.fresh = frozenset()

    # ---------------------------------------------------------------------------------------------- by id

    @cached_property
    def _order(self) -> Ints:
        return np.argsort(self.facts.ids, kind="stable")

    @cached_property
    def _few(self) -> dict[int, int] | None:
        """The position of each id, unless there are so many that few of them will be asked for."""
        if len(self) > _FEW_BY_ID:
            return None
        return {id: position for position, id in reversed(list(enumerate(self.facts.ids.tolist())))}

    def _position(self, fragment_id: int) -> int | None:
        few = self._few
        if type(fragment_id) is not int:
            fragment_id = whole_number(fragment_id, "a fragment id", minimum=None)
        if few is not None:
            return few.get(fragment_id)
        if not 0 <= fragment_id < 1 << 64:
            return None
        ids = self.facts.ids
        place = int(np.searchsorted(ids, np.uint64(fragment_id), sorter=self._order))
        if place == len(ids) or int(ids[self._order[place]]) != fragment_id:
            return None
        return int(self._order[place])

    def has(self, fragment_id: int) -> bool:
        """Whether a fragment of this id is in the list."""
        return self._position(fragment_id) is not None

    def position(self, fragment_id: int) -> int:
        """Where the fragment of this id is in the list; ``KeyError`` if there is none."""
        position = self._position(fragment_id)
        if position is None:
            raise KeyError(fragment_id)
        return position

    def positions(self, fragment_ids: Sequence[int]) -> Ints:
        """Where the fragments with these ids are; -1 for those that are not here."""
        wanted = np.array(fragment_ids, np.int64)
        if not len(self):
            return np.full(len(wanted), -1, np.int64)
        ids = self.ids[self._order].astype(np.int64)
        places = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
        return np.where(ids[places] == wanted, self._order[places], -1)

    def by_id(self, fragment_id: int) -> Fragment:
        """The fragment of this id; ``KeyError`` if there is none."""
        position = self._position(fragment_id)
        if position is None:
            raise KeyError(fragment_id)
        return self[position]

    def at(self, positions: Sequence[int]) -> FragmentList:
        """The fragments at these positions, in that order; no position twice."""
        return self._at(np.array(positions, np.int64))

    # --------------------------------------------------------------------------------------------- changes

    def appended(self, fragments: Iterable[Fragment]) -> FragmentList:
        """Ours, then these."""
        new = tuple(fragments)
        if not new:
            return self
        raw = [encode_fragment(fragment) for fragment in new]
        positions = range(len(self), len(self) + len(new))
        return FragmentList(
            [*self._raw, *raw],
            self._path,
            known={**self._known, **dict(zip(positions, new, strict=True))},
            fresh=self.fresh | frozenset(positions),
            facts=self.facts.concat(facts_of_values(new) if len(new) <= _FEW else facts_of(raw)),
        )

    def replaced(self, changed: Mapping[int, Fragment], dropped: Collection[int] = ()) -> FragmentList:
        """The list with the fragments of the ids in ``changed`` replaced in place, and without the ``dropped`` ids.

        ``KeyError`` if one of these ids is not in the list. A changed fragment may have another id than the one it
        replaces.
        """
        if not changed and not dropped:
            return self
        if len(changed) == 1 and not dropped:
            ((fragment_id, fragment),) = changed.items()
            position = self.position(fragment_id)
            if self._differs_in_deletions(position, fragment):
                return self._with_deletions(position, fragment)
        source = np.arange(len(self))
        for offset, fragment_id in enumerate(changed):
            source[self.position(fragment_id)] = len(self) + offset
        gone = [self.position(fragment_id) for fragment_id in dropped]
        return self.appended(changed.values())._at(np.delete(source, gone))

    def _differs_in_deletions(self, position: int, fragment: Fragment) -> bool:
        """Whether all facts about a fragment but those of its deletion file are those of the one at ``position``."""
        old = self[position]
        return (
            fragment.id == old.id
            and fragment.files is old.files
            and fragment.physical_rows == old.physical_rows
            and (fragment.row_ids is None) == (old.row_ids is None)
            and not self.facts.has_external[position]
        )

    def _with_deletions(self, position: int, fragment: Fragment) -> FragmentList:
        """The list where one fragment has other deleted rows: most changes hide rows of a single fragment."""
        raw = [*self._raw]
        raw[position] = encode_fragment(fragment)
        return FragmentList(
            raw,
            self._path,
            known={**self._known, position: fragment},
            fresh=self.fresh | {position},
            facts=self.facts.with_deletions(position, fragment),
        )

    def with_lineage(self, row_ids: Sequence[bytes], versions: Sequence[bytes] | None = None) -> FragmentList:
        """The list where every fragment has row ids, and ``versions`` as its created-at and last-updated-at ones.

        None may have any yet. Bytes are added to bytes, nothing is decoded; fields are valid in any order.
        """
        if self.facts.has_row_ids.any():
            raise InternalError("Fragments have row ids already.")
        created = versions if versions is not None else [None] * len(self)
        return FragmentList(
            [
                data + _lineage_fields(ids, version)
                for data, ids, version in zip(self._raw, row_ids, created, strict=True)
            ],
            self._path,
            facts=replace(self.facts, has_row_ids=np.ones(len(self), np.bool_)),
        )

    def sorted_by_id(self) -> FragmentList:
        """The same fragments in ascending order of their ids."""
        if np.all(self.facts.ids[1:] >= self.facts.ids[:-1]):
            return self
        return self._at(self._order)

    def _at(self, positions: Ints) -> FragmentList:
        """The fragments at these positions, in that order."""
        places = positions.tolist()
        raw = self._raw
        target = {old: new for new, old in enumerate(places) if old in self._known} if self._known else {}
        return FragmentList(
            [raw[place] for place in places],
            self._path,
            known={target[old]: fragment for old, fragment in self._known.items() if old in target},
            fresh=frozenset(target[old] for old in self.fresh if old in target),
            facts=self.facts.take(positions),
        )


def _lineage_fields(row_ids: bytes, versions: bytes | None) -> bytes:
    message = pb.Fragment(
        inline_row_ids=row_ids, inline_last_updated_at_versions=versions, inline_created_at_versions=versions
    )
    return bytes(message.SerializeToString())


def _total(column: Longs) -> int:
    return sum(column.tolist()) if len(column) <= _FEW else int(column.sum())


def _frozen(column: Longs) -> Longs:
    view = column.view()
    view.setflags(write=False)
    return view

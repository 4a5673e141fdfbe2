"""Small fragments, read many at a time: their decoded columns are cached, and a run of them becomes one batch.

Opening a file costs far more than the bytes of a small one, so what was decoded is kept in the cache of the process.

1. *Which.* Fragments of little data: :mod:`.small_runs`.
2. *Key.* An entry is found by where the table is and by the fragment's id, and used if the fragment's bytes in the
   manifest are the same, so a lookup decodes nothing. It holds the decoded columns, each under a token that stands for
   the table's schema and the wanted members, the deleted rows, and the identity of each local file
   (:mod:`tablewright.storage.identity`), which is compared at every use: one ``stat`` per file. Where a fragment has
   only got another deletion file, its columns are used again. So a loop of changes leaves one entry per fragment.
3. *Run.* The columns of all fragments are concatenated, then deleted rows are dropped from all at once.
4. *Blocks.* Of tiny fragments most of the time goes to finding them one by one. So those with the ids from 32 n up to
   32 n + 31 are also kept as one entry, with their columns concatenated, if a run holds them all. It is used if all of
   them are as they were. A change of one fragment leaves the blocks of all others.
5. A read of more than half of the budget keeps nothing: it would only push out what others use.

At most four fragments that are not in the cache are read without the codec, if :mod:`.number_rows` can read the wanted
columns of all of them. Others are joined and read together (:mod:`.joined`), or, where that can't be done, one by one,
by :class:`~tablewright.data.read.FragmentReader`. Without a cache that is every fragment.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter

import numpy as np
import pyarrow as pa

from tablewright.cache import CacheKind, process_cache
from tablewright.data.context import ReadContext
from tablewright.data.joined import WholeFragment, read_joined, read_whole
from tablewright.data.number_rows import read_number_rows
from tablewright.data.read import FragmentReader
from tablewright.data.rows import copied, no_columns, without_rows
from tablewright.data.shape import ReadShape
from tablewright.data.small_runs import BLOCK_BITS, KEPT_BYTES_MAX
from tablewright.errors import TablewrightError
from tablewright.format.fragment import DeletionFile, Fragment, FragmentList, decode_fragment
from tablewright.format.naming import deletion_path
from tablewright.format.row_set import Offsets
from tablewright.format.schema import Schema
from tablewright.storage.base import Location
from tablewright.storage.identity import FileIdentity, are_unchanged, is_local, is_settled, local_identity
from tablewright.storage.together import answers_slowly, together

__all__ = ["SmallFragments", "SmallRows"]

_ENTRY_BYTES = 1024
_FEW = 4  # fragments that are read without the codec, where that can be done; of more the codec reads several at once
_OPEN_MAX = 16  # files that a thread has open at a time
_TOKENS_MAX = 4096
_BLOCK_FRAGMENTS_MIN, _BLOCK_BYTES_MAX = 8, 64 * 1024
_TEXT_BYTES = 64  # a guess of what a row takes where a column has no fixed width
_SAMPLES = 8

Tokens = tuple[int, ...]
LocalFiles = tuple[tuple[str, FileIdentity], ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """What is kept of a fragment, or a block: identities of local files, deleted offsets, decoded columns by token."""

    files: LocalFiles
    deleted: Offsets | None
    columns: Mapping[int, pa.Array]

    @property
    def nbytes(self) -> int:
        values = sum(column.get_total_buffer_size() for column in self.columns.values())
        return values + (0 if self.deleted is None else self.deleted.nbytes)


@dataclass(frozen=True, slots=True, eq=False)
class SmallRows:
    """The live rows of some fragments, one after the other: ``counts`` of each, and each row's physical offset.

    ``first`` is the position of the first fragment in its list.
    """

    batch: pa.RecordBatch
    first: int
    counts: Offsets
    offsets: Offsets

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    @property
    def ends(self) -> Offsets:
        """Where the rows of each fragment end."""
        return np.cumsum(self.counts)

    def by_fragment(self, places: Offsets) -> Iterator[tuple[int, Offsets]]:
        """Some rows, given by ascending places, as position of the fragment and the places in it."""
        owners = np.searchsorted(self.ends, places, side="right")
        begins = np.flatnonzero(np.diff(owners, prepend=-1))
        for owner, part in zip(owners[begins].tolist(), np.split(places, begins[1:]), strict=False):
            yield self.first + owner, part


@dataclass(frozen=True, slots=True, eq=False)
class _Fetched:
    """A fragment whose files were read whole: their identities, if it can be kept, and the deleted offsets."""

    whole: WholeFragment
    files: tuple[tuple[str, FileIdentity], ...] | None
    deleted: Offsets | None


_kept = CacheKind[tuple[bytes, _Known]]("small fragments")
_blocks = CacheKind[tuple[tuple[bytes, ...], _Known]]("blocks of small fragments")
_numbers = itertools.count()
_tokens: dict[Hashable, int] = {}


class SmallFragments:
    """Reads runs of one list of fragments. Threads may share it."""

    def __init__(self, context: ReadContext, shape: ReadShape, fragments: FragmentList) -> None:
        self._context, self._shape, self.fragments = context, shape, fragments
        self._place = self._place_token()
        self._tokens = _column_tokens(shape) if self._place is not None else tuple(range(len(shape.columns)))
        self._wanted = frozenset(self._tokens)

    def _place_token(self) -> int | None:
        """Stands for the table's address and base paths; ``None`` if nothing is kept."""
        budget, place = process_cache().bytes_max, self._context.place
        if not budget or place is None:
            return None
        facts = self.fragments.facts
        total = int(facts.physical_rows.sum()) * (self._shape.sizes.fixed_bytes or 0) or int(facts.file_bytes.sum())
        return None if total + _ENTRY_BYTES * len(facts) > budget // 2 else _token(("place", place))

    def read(self, start: int, stop: int) -> SmallRows:
        """The live rows of the fragments from position ``start`` up to ``stop``."""
        served = self._served(start, stop)
        rows = self.fragments.facts.physical_rows[start:stop].astype(np.int64)
        columns = [pa.concat_arrays([each.columns[token] for _, each in served]) for token in self._tokens]
        ends = np.cumsum(rows)
        total, begins = int(rows.sum()), ends - rows
        batch = pa.RecordBatch.from_arrays(columns, schema=self._shape.schema) if columns else no_columns(total)
        offsets = np.arange(total) - np.repeat(begins, rows)
        gone = [each.deleted + begins[at - start] for at, each in served if each.deleted is not None]
        if not gone:
            return SmallRows(batch, start, rows, offsets)
        places = np.concatenate(gone)
        counts = rows - np.bincount(np.searchsorted(ends, places, side="right"), minlength=len(rows))
        return SmallRows(without_rows(batch, places), start, counts, np.delete(offsets, places))

    def are_mostly_kept(self, start: int, stop: int) -> bool:
        """Whether most of these fragments are in the cache, by a sample; their files are not looked at."""
        if self._place is None:
            return False
        sample = self.fragments.ids[start : stop : max(1, (stop - start) // _SAMPLES)].tolist()
        return 2 * _kept.count_held([(self._place, number) for number in sample]) > len(sample)

    def _served(self, start: int, stop: int) -> list[tuple[int, _Known]]:
        """What is known of the fragments, in order: of single ones or blocks, with the position where each begins."""
        if self._place is None:
            return [(start + at, loaded) for at, (loaded, _) in enumerate(self._load(range(start, stop)))]
        place, raw = self._place, self.fragments.raw
        blocks = self._whole_blocks(start, stop)
        found = _blocks.find_all([(place, self._tokens, number) for number, _, _ in blocks])
        served: dict[int, _Known] = {}
        positions: list[int] = []
        made_of = []
        at = start
        for (number, begin, end), each in zip(blocks, found, strict=True):
            positions += range(at, begin)
            at = end
            if each is not None and each[0] == tuple(raw[begin:end]) and are_unchanged(each[1].files):
                served[begin] = each[1]
            else:
                positions += range(begin, end)
                made_of.append((number, begin, end))
        positions += range(at, stop)
        known = dict(zip(positions, self._known(place, positions), strict=True))
        for number, begin, end in made_of:
            self._keep_block((place, self._tokens, number), begin, [known[at] for at in range(begin, end)])
        served.update((at, each) for at, (each, _) in known.items())
        return sorted(served.items(), key=itemgetter(0))

    def _whole_blocks(self, start: int, stop: int) -> list[tuple[int, int, int]]:
        """The blocks of tiny fragments that lie whole between two positions: number, and where each begins and ends."""
        rows_max = _BLOCK_BYTES_MAX // (self._shape.sizes.fixed_bytes or _TEXT_BYTES)
        rows = np.cumsum(self.fragments.facts.physical_rows[start:stop].astype(np.int64))
        numbers = self.fragments.ids[max(0, start - 1) : stop + 1] >> BLOCK_BITS
        edges = np.flatnonzero(np.diff(numbers)) + 1 + max(0, start - 1)
        bounds = [*([0] if start == 0 else []), *edges.tolist(), *([stop] if stop == len(self.fragments) else [])]
        return [
            (int(self.fragments.ids[begin]) >> BLOCK_BITS, begin, end)
            for begin, end in itertools.pairwise(bounds)
            if end - begin >= _BLOCK_FRAGMENTS_MIN
            and rows[end - 1 - start] - (rows[begin - 1 - start] if begin > start else 0) <= rows_max
        ]

    def _keep_block(self, key: Hashable, begin: int, members: Sequence[tuple[_Known, bool]]) -> None:
        """Keep some fragments from a position on as one, if each of them could be kept, and they are tiny."""
        if not all(is_certain for _, is_certain in members) or sum(k.nbytes for k, _ in members) > _BLOCK_BYTES_MAX:
            return
        end = begin + len(members)
        rows = self.fragments.facts.physical_rows[begin:end].astype(np.int64)
        begins = np.cumsum(rows) - rows
        gone = [
            each.deleted + first for (each, _), first in zip(members, begins, strict=True) if each.deleted is not None
        ]
        columns = {token: pa.concat_arrays([each.columns[token] for each, _ in members]) for token in self._tokens}
        files = tuple(file for each, _ in members for file in each.files)
        block = _Known(files, np.concatenate(gone) if gone else None, columns)
        raw = tuple(self.fragments.raw[begin:end])
        _blocks.keep(key, (raw, block), block.nbytes + _ENTRY_BYTES * (1 + len(files) // 4))

    def _known(self, place: int, positions: Sequence[int]) -> list[tuple[_Known, bool]]:
        """What is known of single fragments, and whether it can be kept."""
        keys = [(place, number) for number in self.fragments.ids[positions].tolist()] if positions else []
        before, raw, wanted = _kept.find_all(keys), self.fragments.raw, self._wanted
        served: list[tuple[_Known, bool] | None] = []
        for position, key, each in zip(positions, keys, before, strict=True):
            if each is None or not wanted <= each[1].columns.keys():
                served.append(None)
            elif each[0] == raw[position]:
                served.append((each[1], True) if are_unchanged(each[1].files) else None)
            else:
                served.append(self._revised(key, each, position))
        missing = [index for index, each in enumerate(served) if each is None]
        loads = self._load([positions[index] for index in missing])
        for index, (loaded, is_certain) in zip(missing, loads, strict=True):
            served[index] = loaded, is_certain
            if is_certain:
                known = before[index]
                _keep(keys[index], raw[positions[index]], loaded, None if known is None else known[1])
        return [each for each in served if each is not None]

    def _revised(self, key: Hashable, found: tuple[bytes, _Known], position: int) -> tuple[_Known, bool] | None:
        """What is known of another version of the fragment at a position, if only its deletions differ."""
        raw, known = found
        data_files = self._data_files(raw, known, self.fragments[position])
        if data_files is None:
            return None
        loaded, is_certain = self._with_deletions(self.fragments[position], data_files, known.columns)
        if is_certain:
            _keep(key, self.fragments.raw[position], loaded, None)
        return loaded, is_certain

    def _data_files(self, raw: bytes, known: _Known, fragment: Fragment) -> LocalFiles | None:
        """The local data files of what is known of another version of a fragment; ``None`` if it had others."""
        before = decode_fragment(raw, self.fragments.path)
        if before.files != fragment.files or before.physical_rows != fragment.physical_rows:
            return None
        files = known.files
        if before.deletion is not None and files and files[-1][0].endswith(deletion_path(before.id, before.deletion)):
            files = files[:-1]
        return files if are_unchanged(files) else None

    def _with_deletions(
        self, fragment: Fragment, files: LocalFiles, columns: Mapping[int, pa.Array]
    ) -> tuple[_Known, bool]:
        """Columns that are known, with the deletions of a fragment; and whether that can be kept."""
        if fragment.deletion is None:
            return _Known(files, None, columns), True
        location = self._deletion_location(fragment.deletion, fragment.id)
        identity = local_identity(location.uri) if location is not None and is_local(location) else None
        vector = self._context.deletion_vector(fragment)
        deleted = None if vector is None else vector.to_numpy()
        if location is None or not is_local(location):
            return _Known(files, deleted, columns), location is not None
        if identity is None or not is_settled(identity):
            return _Known(files, deleted, columns), False
        return _Known((*files, (location.uri, identity)), deleted, columns), True

    def _load(self, positions: Sequence[int]) -> Iterator[tuple[_Known, bool]]:
        """Read fragments; and whether what was read can be kept. On a store that answers slowly all at once."""
        fragments = [self.fragments[position] for position in positions]
        numbers = [self._numbers(fragment) for fragment in fragments] if len(fragments) <= _FEW else [None]
        if None not in numbers:
            yield from (each for each in numbers if each is not None)
            return
        store = self._context.store_of(None)
        whole = together(store, *[partial(self._fetch, fragment) for fragment in fragments])
        batches = self._joined([each.whole for each in whole if each is not None])
        if batches is None:
            whole, batches = (None,) * len(whole), []
        joined = iter(batches)
        alone = self._one_by_one([fragment for fragment, each in zip(fragments, whole, strict=True) if each is None])
        for each in whole:
            yield next(alone) if each is None else self._known_of(each, next(joined))

    def _numbers(self, fragment: Fragment) -> tuple[_Known, bool] | None:
        """A fragment that is read without the codec; ``None`` if it can't be."""
        files = None if self._place is None else self._identities(fragment, {})
        batch = read_number_rows(self._context, fragment, self._shape, np.arange(fragment.physical_rows))
        if batch is None:
            return None
        vector = self._context.deletion_vector(fragment)
        deleted = None if vector is None else vector.to_numpy()
        return _Known(files or (), deleted, dict(zip(self._tokens, batch.columns, strict=True))), files is not None

    def _fetch(self, fragment: Fragment) -> _Fetched | None:
        """The bytes of a fragment's files; ``None`` if it has to be read by itself."""
        whole = read_whole(self._context, fragment, self._shape)
        if whole is None:
            return None
        files = None if self._place is None else self._identities(fragment, whole.identities)
        vector = self._context.deletion_vector(fragment)
        return _Fetched(whole, files, None if vector is None else vector.to_numpy())

    def _joined(self, found: Sequence[WholeFragment]) -> list[pa.RecordBatch] | None:
        """The rows of each; ``None`` if something is wrong, which reading them one by one finds out."""
        try:
            return read_joined(self._context, found, self._shape) if found else []
        except TablewrightError:
            return None

    def _known_of(self, fetched: _Fetched, batch: pa.RecordBatch) -> tuple[_Known, bool]:
        is_kept = fetched.files is not None
        columns = [copied(column) if is_kept else column for column in batch.columns]
        return _Known(fetched.files or (), fetched.deleted, dict(zip(self._tokens, columns, strict=True))), is_kept

    def _one_by_one(self, fragments: Sequence[Fragment]) -> Iterator[tuple[_Known, bool]]:
        store = self._context.store_of(None)
        if answers_slowly(store):
            for found in together(store, *[partial(self._read, [fragment]) for fragment in fragments]):
                yield from found
            return
        for begin in range(0, len(fragments), _OPEN_MAX):
            yield from self._read(fragments[begin : begin + _OPEN_MAX])

    def _read(self, fragments: Sequence[Fragment]) -> list[tuple[_Known, bool]]:
        """Some fragments: all are opened, then all are read."""
        files = [None if self._place is None else self._identities(fragment, {}) for fragment in fragments]
        readers = FragmentReader.of_each(self._context, fragments, self._shape)
        started = [reader.start() for reader in readers]
        found = []
        for identities, reader, stream in zip(files, readers, started, strict=True):
            batches = [rows.batch for rows in stream]
            batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
            columns = dict(zip(self._tokens, batch.columns, strict=True))
            found.append((_Known(identities or (), reader.deleted, columns), identities is not None))
        return found

    def _identities(
        self, fragment: Fragment, known: Mapping[str, FileIdentity]
    ) -> tuple[tuple[str, FileIdentity], ...] | None:
        """The local files of a fragment as they are now; ``None`` if one is missing, or changed a moment ago."""
        found: list[tuple[str, FileIdentity]] = []
        for location in self._locations(fragment):
            if location is None:
                return None
            if is_local(location):
                identity = known.get(location.uri) or local_identity(location.uri)
                if identity is None or not is_settled(identity):
                    return None
                found.append((location.uri, identity))
        return tuple(found)

    def _locations(self, fragment: Fragment) -> Iterator[Location | None]:
        if self._shape.columns:
            for file in fragment.files:
                store, path = self._context.data_place(file)
                yield store.codec_location(path)
        if fragment.deletion is not None:
            yield self._deletion_location(fragment.deletion, fragment.id)

    def _deletion_location(self, deletion: DeletionFile, fragment_id: int) -> Location | None:
        return self._context.store_of(deletion.base_id).codec_location(deletion_path(fragment_id, deletion))


def _keep(key: Hashable, raw: bytes, loaded: _Known, before: _Known | None) -> None:
    """Keep a fragment of these bytes, beside the columns that are known already."""
    known = loaded
    if before is not None and before.files == loaded.files:
        known = _Known(loaded.files, loaded.deleted, {**before.columns, **loaded.columns})
    if (size := known.nbytes) <= KEPT_BYTES_MAX:
        _kept.keep(key, (raw, known), size + len(raw) + _ENTRY_BYTES)


def _column_tokens(shape: ReadShape) -> Tokens:
    table = _token(("table", *_schema_key(shape.table)))
    return tuple(_token((table, tuple(shape.wanted.descendants(column)))) for column, _ in shape.columns)


def _schema_key(table: Schema) -> Sequence[Hashable]:
    """All of a schema that decides how files are read."""
    arrow = table.to_arrow().remove_metadata().serialize().to_pybytes()
    return arrow, tuple(node.id for node in table.fields), tuple(node.logical_type for node in table.fields)


def _token(key: Hashable) -> int:
    """A number that stands for a key, and never for another one."""
    found = _tokens.get(key)
    if found is None:
        if len(_tokens) >= _TOKENS_MAX:
            _tokens.clear()
        found = _tokens.setdefault(key, next(_numbers))
    return found

"""Dictionary columns whose indices are narrow: how many values of them one data file can hold.

Each batch has a dictionary of its own. The codec puts those of a file together, by a way that may keep equal values
twice, and writes a file that no client can read where they become more than the index type counts: 128 for ``int8``.
So for index types of 8 and 16 bits:

1. Batches are joined before they are written (:func:`joined`), up to 16 MiB, so that equal values count once.
2. The dictionaries of a file may have as many values *together* as the index type counts (:class:`FileDictionaries`);
   the next file starts before they have more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from tablewright.errors import InvalidRequest

__all__ = ["FileDictionaries", "as_one", "has_narrow_dictionaries", "joined", "too_many_values", "unified"]

_NARROW_BITS = 16
_JOINED_BYTES = 16 * 1024 * 1024


def has_narrow_dictionaries(schema: pa.Schema) -> bool:
    """Whether a column is, or holds, a dictionary with indices of 8 or 16 bits.

    >>> has_narrow_dictionaries(pa.schema({"kind": pa.dictionary(pa.int8(), pa.string())}))
    True
    """
    return any(True for kind in schema.types for _ in _narrow(kind))


def joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The batches as one, or as few as their dictionaries allow; rows keep their order.

    >>> one, two = (pa.array([text]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())) for text in "ab")
    >>> [batch.num_rows for batch in joined([pa.record_batch({"kind": one}), pa.record_batch({"kind": two})])]
    [2]
    """
    if len(batches) <= 1:
        return batches
    try:
        return [pa.concat_batches(batches)]
    except pa.ArrowInvalid:  # the dictionaries have more values together than their index type counts
        if not has_narrow_dictionaries(batches[0].schema):
            raise
        half = len(batches) // 2
        return [*joined(batches[:half]), *joined(batches[half:])]


def as_one(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of all batches, of which there is one at least, as one batch.

    :class:`~tablewright.errors.InvalidRequest` if their dictionaries have too many values for that.
    """
    together = joined(list(batches))
    if len(together) > 1:
        raise too_many_values(next(kind for each in together[0].schema.types for kind in _narrow(each)))
    return together[0]


def too_many_values(kind: pa.DictionaryType) -> InvalidRequest:
    """The error for rows that can't be written to one file, or be in one batch."""
    return InvalidRequest(
        f"A column of type {kind} has more values in one file or batch than its indices count. Cast the column to a "
        "dictionary with int32 indices, or to its values."
    )


def unified(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, small batches joined."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size >= _JOINED_BYTES:
            yield from joined(waiting)
            waiting, size = [], 0
    yield from joined(waiting)


class FileDictionaries:
    """How many values the dictionaries of one data file have so far, for each column with narrow indices."""

    def __init__(self, schema: pa.Schema) -> None:
        self._types = [kind for each in schema.types for kind in _narrow(each)]
        self._used = [0] * len(self._types)

    def overfull(self, batch: pa.RecordBatch) -> pa.DictionaryType | None:
        """The type of a column whose values would become too many with this batch; ``None`` if all fit."""
        for kind, used, size in zip(self._types, self._used, self._sizes(batch), strict=True):
            if used and used + size > _capacity(kind):
                return kind
        return None

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the values of a batch that was written."""
        self._used = [used + size for used, size in zip(self._used, self._sizes(batch), strict=True)]

    def _sizes(self, batch: pa.RecordBatch) -> list[int]:
        if not self._types:
            return []
        return [len(array.dictionary) for column in batch.columns for array in _arrays(column)]


def _capacity(kind: pa.DictionaryType) -> int:
    bits = kind.index_type.bit_width
    return 1 << (bits - 1 if pa.types.is_signed_integer(kind.index_type) else bits)


def _is_narrow(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.DictionaryType) and kind.index_type.bit_width <= _NARROW_BITS


def _narrow(kind: pa.DataType) -> Iterator[pa.DictionaryType]:
    if isinstance(kind, pa.BaseExtensionType):
        yield from _narrow(kind.storage_type)
    elif isinstance(kind, pa.DictionaryType):
        if _is_narrow(kind):
            yield kind
    else:
        for index in range(kind.num_fields):
            yield from _narrow(kind.field(index).type)


def _arrays(array: pa.Array) -> Iterator[pa.DictionaryArray]:
    """The arrays of :func:`_narrow`, in the same order."""
    if isinstance(array, pa.ExtensionArray):
        yield from _arrays(array.storage)
    elif isinstance(array, pa.DictionaryArray):
        if _is_narrow(array.type):
            yield array
    elif isinstance(array, pa.StructArray):
        for index in range(array.type.num_fields):
            yield from _arrays(array.field(index))
    elif isinstance(array, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):  # a map is a list of its entries
        yield from _arrays(array.values)

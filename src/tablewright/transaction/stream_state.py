"""Which batch of a stream a table has last taken: kept in the table's config, by the commit of the batch itself.

A stream is at-least-once: after a crash its last batch comes again. So the batch is committed together with its number,
in one manifest: both are there or neither. The transaction carries the number as a property,
``tablewright.stream.{name} = {batch}``; *apply* copies such properties into the config of the manifest that it makes.
Other writers, pylance among them, build on the newest manifest and keep its config. The transaction itself stays an
Append or Update like any other, which they can read and judge.

1. Before a transaction is put on a manifest, the config of that manifest is asked (:func:`check_new_batch`). A batch
   that is there already is :class:`BatchCommitted`; the writer removes its files and is done. No history is searched,
   so it does not matter how many versions came in between, or whether they were cleaned up.
2. Streams with different names have different keys: they are no conflict.
3. ``Restore`` brings back rows and config of one version, so both agree.

A name may be given by the user, and outlive its stream: one with a new checkpoint counts its batches from 0 again. So
the value may also name the query that counts, ``{batch} {query id}``. Another query under the same name is refused:
whether its batch 0 is new can't be known.

Format: ``docs/format/transactions.md#streams``. Tests: tests/unit/transaction/test_stream_state.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tablewright.errors import InvalidRequest, TablewrightError

__all__ = ["PREFIX", "BatchCommitted", "StreamBatch", "check_new_batch", "last_batch", "stream_config"]

PREFIX = "tablewright.stream."


class BatchCommitted(TablewrightError):
    """The table has this batch of the stream already. Nothing is left to do."""

    def __init__(self, name: str, batch: int, last: int) -> None:
        super().__init__(f"Batch {batch} of stream {name!r} is committed: its last one is {last}.")
        self.name, self.batch, self.last = name, batch, last


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBatch:
    """One batch of a stream. ``query`` is the id of the query that counts the batches, if it is not the name.

    >>> StreamBatch(name="orders", batch=7).properties
    {'tablewright.stream.orders': '7'}
    """

    name: str
    batch: int
    query: str | None = None

    def __post_init__(self) -> None:
        if not self.name or self.batch < 0:
            raise InvalidRequest(f"A batch of a stream has a name and a number from 0 on, got {self}.")

    @property
    def key(self) -> str:
        """Its key among the properties of a transaction, and in the config."""
        return PREFIX + self.name

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the transaction that commits it."""
        return {self.key: str(self.batch) if self.query is None else f"{self.batch} {self.query}"}


def stream_config(properties: Mapping[str, str]) -> dict[str, str]:
    """What a transaction with these properties adds to the config."""
    return {key: value for key, value in properties.items() if key.startswith(PREFIX)}


def last_batch(config: Mapping[str, str], name: str) -> StreamBatch | None:
    """The last batch of a stream that a table with this config has."""
    text = config.get(PREFIX + name)
    return None if text is None else _parsed(name, text)


def check_new_batch(config: Mapping[str, str], properties: Mapping[str, str]) -> None:
    """Raise :class:`BatchCommitted` if a table with this config has the batch that a transaction brings.

    >>> check_new_batch({"tablewright.stream.orders": "7"}, StreamBatch(name="orders", batch=8).properties)
    >>> check_new_batch({"tablewright.stream.orders": "7"}, StreamBatch(name="orders", batch=7).properties)
    Traceback (most recent call last):
    tablewright.transaction.stream_state.BatchCommitted: Batch 7 of stream 'orders' is committed: its last one is 7.
    """
    for key, text in stream_config(properties).items():
        ours = _parsed(key.removeprefix(PREFIX), text)
        last = last_batch(config, ours.name)
        if last is None:
            continue
        if last.query is not None and ours.query is not None and last.query != ours.query:
            raise InvalidRequest(
                f"Stream {ours.name!r} was written by query {last.query} up to batch {last.batch}, and this is batch "
                f"{ours.batch} of query {ours.query}: it has another checkpoint, so it is not known which rows are "
                f"new. Give it another name, or forget the old one: ds.delete_config_keys([{key!r}])."
            )
        if ours.batch <= last.batch:
            raise BatchCommitted(ours.name, ours.batch, last.batch)


def _parsed(name: str, text: str) -> StreamBatch:
    number, _, query = text.partition(" ")
    if not number.isdecimal():
        raise InvalidRequest(f"The config {PREFIX + name} must begin with the number of a batch, it is {text!r}.")
    return StreamBatch(name=name, batch=int(number), query=query or None)

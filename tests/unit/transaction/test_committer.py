"""A manifest is known as ours by the name of the transaction that it carries, and by nothing else."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablewright.format.envelope import encode_manifest_file
from tablewright.format.naming import manifest_path, transaction_name
from tablewright.format.schema import Schema
from tablewright.format.transaction import Overwrite, Transaction, encode_transaction
from tablewright.testing import DenyCreation, Fault, FaultyStore, LoseReply, memory_world, on_call
from tablewright.transaction.apply import apply
from tablewright.transaction.committer import Published, publish
from tablewright.world import World

PATH = manifest_path(1)


def made_by(uuid: str, read_version: int = 0) -> Transaction:
    schema = Schema.from_arrow(pa.schema({"a": pa.int64()}))
    return Transaction(read_version=read_version, uuid=uuid, operation=Overwrite(fragments=(), schema=schema))


def manifest_of(transaction: Transaction, *, inline: bool = True) -> bytes:
    name = transaction_name(transaction.read_version, transaction.uuid)
    manifest = apply(None, transaction, timestamp_ns=1, transaction_file=name)
    return encode_manifest_file(manifest, encode_transaction(transaction) if inline else b"")


def published(world: World, transaction: Transaction, fault: Fault | None = None, *, inline: bool = True) -> Published:
    store = FaultyStore(world.store, None if fault is None else on_call(fault, method="put_if_absent", nth=0))
    world = World(store=store, clock=world.clock, ids=world.ids, jitter=world.jitter)
    return publish(world, PATH, manifest_of(transaction, inline=inline), transaction, 1)


@pytest.mark.parametrize("inline", [True, False], ids=["inline", "in its own file"])
@pytest.mark.parametrize("fault", [None, LoseReply(), DenyCreation()])
def test_ours_is_known_whatever_the_reply(fault: Fault | None, inline: bool) -> None:
    """Large transactions are in their own file only."""
    assert published(memory_world(), made_by("u"), fault, inline=inline) is Published.OURS


def test_an_earlier_process_of_the_same_commit_counts() -> None:
    """It may have read another version."""
    world = memory_world()
    assert published(world, made_by("u", read_version=3)) is Published.OURS
    assert published(world, made_by("u", read_version=7)) is Published.OURS


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("fault", [None, LoseReply(), DenyCreation()])
@pytest.mark.parametrize("other", ["v", "u-u", "uu", "u-", ""])
def test_theirs_is_not_ours(fault: Fault | None, other: str, inline: bool) -> None:
    world = memory_world()
    world.store.put(PATH, theirs := manifest_of(made_by(other), inline=inline))
    assert published(world, made_by("u"), fault, inline=inline) is Published.THEIRS
    assert world.store.get(PATH) == theirs


def test_what_nobody_can_read_is_not_ours() -> None:
    for damaged in (b"", b"neither a manifest", manifest_of(made_by("u"))[:-3]):
        world = memory_world()
        world.store.put(PATH, damaged)
        assert published(world, made_by("u")) is Published.THEIRS

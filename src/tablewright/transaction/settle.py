"""Put-if-absent with a certain outcome: a lost reply is settled by reading what is at the name.

Put-if-absent is the only way to create the name. When the reply is lost, or says that the name exists, the object
there shows who wrote it. Nothing is ever written at that name twice, so trying again is safe:

1. put-if-absent. *Created* → ours.
2. Otherwise read the object: ours, or theirs; no object → back to 1. A failure that certainly
   wrote nothing (a full disk, no permission) ends it, unless an earlier try got no answer.
3. Give up looking after some tries: :class:`~tablewright.errors.CommitUnknown`.
"""

from __future__ import annotations

from collections.abc import Callable

from tablewright.errors import AccessDenied, CommitUnknown, StorageError
from tablewright.storage.base import ObjectNotFound
from tablewright.world import World

__all__ = ["put_once"]

_LOOKS = 8


def put_once(
    world: World, path: str, data: bytes, is_ours: Callable[[bytes], bool], *, version: int, name: str
) -> bool:
    """Put-if-absent ``data`` at ``path``, and find out for certain whether the object there is ours.

    ``version`` and ``name`` (a uuid, a user) are what the error names as possibly committed.
    """
    unanswered: StorageError | None = None
    for look in range(_LOOKS):
        try:
            return world.store.put_if_absent(path, data) or is_ours(world.store.get(path))
        except AccessDenied:
            if unanswered is None:
                raise
        except ObjectNotFound:
            continue  # it existed and is gone again: the store is not consistent yet; try once more
        except StorageError as error:
            if error.nothing_written and unanswered is None:
                raise
            unanswered = error
            held = _look(world, path, is_ours)
            if held is not None:
                return held
        world.clock.sleep(min(2.0, 0.05 * 2**look) * (0.5 + world.jitter()))
    cause = str(unanswered or "the store contradicts itself")
    raise CommitUnknown(world.store.location.uri, version, name, cause)


def _look(world: World, path: str, is_ours: Callable[[bytes], bool]) -> bool | None:
    try:
        return is_ours(world.store.get(path))
    except (ObjectNotFound, StorageError):
        return None

"""How one file becomes visible exactly once, under a name that many writers want.

Put-if-absent is the only way to take the name. When the reply is lost, or says that something is there already, the
answer is in the store: what stands there tells who wrote it. Nothing is ever written at that name twice, so asking
again is safe:

1. put-if-absent. *Created* → ours.
2. Otherwise look: it says that it is ours, or it does not → theirs; nothing there → back to 1. A failure that certainly
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
    """Make ``data`` visible at ``path`` if nothing is there, and learn for certain whether it is ours.

    ``version`` and ``name`` (a uuid, a user) tell in the error what may or may not have been committed.
    """
    unanswered: StorageError | None = None
    for look in range(_LOOKS):
        try:
            return world.store.put_if_absent(path, data) or is_ours(world.store.get(path))
        except AccessDenied:
            if unanswered is None:
                raise
        except ObjectNotFound:
            continue  # it was there and is gone again: a store that settles late; ask once more
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

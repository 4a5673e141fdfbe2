"""Indices that only other implementations build and ask: what we can keep right when rows move.

:func:`remap` rewrites the column of row addresses of IVF_FLAT, IVF_PQ, IVF_SQ and full-text indices, and leaves what
they say of values as it is. For every other index :func:`remappable` is false: moved rows have to leave its coverage.

Format: ``docs/format/indices.md#vector-files``, ``docs/format/indices.md#full-text-files``.
"""

from tablewright.indices.foreign.remap import is_graph, remap, remappable

__all__ = ["is_graph", "remap", "remappable"]

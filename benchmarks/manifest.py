"""A small commit on a big manifest, beside protobuf's own parse and serialise of the same bytes.

Ours: decode the manifest file with every check, append one fragment, derive flags, check again, encode the next file.
Protobuf's: parse the ordinary message of the same manifest and serialise it again. The promise is a ratio of at most 3.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

import pyarrow as pa

from tablewright.format.envelope import decode_manifest_file, encode_manifest_file
from tablewright.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment, FragmentList
from tablewright.format.manifest import Manifest
from tablewright.format.proto import table_pb2
from tablewright.format.schema import Schema

__all__ = ["big_manifest_file", "measure", "run"]

RATIO_MAX = 3.0
_FOOTER_BYTES, _PREFIX_BYTES = 16, 4


def _fragment(number: int) -> Fragment:
    """Four columns in one file; every tenth fragment has deleted rows."""
    deletion = DeletionFile(
        file_type=DeletionFileType.ARROW_ARRAY, read_version=3, id=(1 << 63) + number, num_deleted_rows=5
    )
    file = DataFile(
        path=f"{number:024b}{number:026x}.lance",
        fields=(0, 1, 2, 3),
        column_indices=(0, 1, 2, 3),
        file_major_version=2,
        file_minor_version=2,
        file_size_bytes=123_456 + number,
    )
    return Fragment(
        id=number, files=(file,), physical_rows=1_000 + number % 77, deletion=None if number % 10 else deletion
    )


def big_manifest_file(fragments: int) -> bytes:
    """A manifest file with this many fragments."""
    manifest = Manifest(
        schema=Schema.from_arrow(pa.schema({name: pa.int64() for name in "abcd"})),
        fragments=FragmentList.of(_fragment(number) for number in range(fragments)),
        version=5,
        max_fragment_id=fragments - 1,
    )
    return encode_manifest_file(manifest, b"")


def commit_once(data: bytes) -> bytes:
    """Decode, append one fragment, encode."""
    manifest = decode_manifest_file(data, "bench.manifest").manifest
    new_id = (manifest.max_fragment_id or 0) + 1
    grown = manifest.fragments.appended([_fragment(new_id)])
    return encode_manifest_file(
        replace(manifest, fragments=grown, version=manifest.version + 1, max_fragment_id=new_id), b""
    )


def protobuf_once(message: bytes) -> bytes:
    """Parse and serialise the ordinary message."""
    return bytes(table_pb2.Manifest.FromString(message).SerializeToString())


def _seconds(work: Callable[[], object]) -> float:
    """Of this thread, not of the clock: both sides work alone and in memory, and others share the machine."""
    gc.collect()
    start = time.thread_time()
    work()
    return time.thread_time() - start


def measure(fragments: int = 100_000, rounds: int = 7) -> tuple[list[float], list[float]]:
    """Seconds of our commit and of protobuf, taken in turn, ``rounds`` times each."""
    data = big_manifest_file(fragments)
    message = data[_PREFIX_BYTES:-_FOOTER_BYTES]
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(_seconds(lambda: protobuf_once(message)))
        ours.append(_seconds(lambda: commit_once(data)))
    return ours, theirs


def run() -> bool:
    """Print the numbers; ``True`` if the promise holds."""
    ours, theirs = measure()
    ratio = median(ours) / median(theirs)
    print(
        f"manifest of 100,000 fragments: small commit {median(ours) * 1e3:.0f} ms, protobuf parse + serialise "
        f"{median(theirs) * 1e3:.0f} ms, ratio {ratio:.2f} (promised: at most {RATIO_MAX})"
    )
    return ratio <= RATIO_MAX


if __name__ == "__main__":
    run()

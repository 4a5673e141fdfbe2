"""What the two files of a vector index say: ``index.idx`` has the centroids, ``auxiliary.idx`` the vectors' codes.

Tests: ``tests/differential/test_stats.py``.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tablewright.errors import CorruptTable
from tablewright.format.proto import index_details_pb2 as pb
from tablewright.format.wire import decode_message
from tablewright.operations.statistics.segment import Segment

__all__ = ["vector_statistics"]

_INDEX, _CODES = "index.idx", "auxiliary.idx"
_HIDDEN = frozenset({"codebook_position", "codebook_tensor"})
_TYPES = {1: "<f2", 2: "<f4", 3: "<f8", 4: "|u1"}


def vector_statistics(segment: Segment) -> dict[str, Any]:
    """Partitions, centroids and quantisation of a segment."""
    about = segment.json(_INDEX, "lance:index")
    partitions, codes = _partitions(segment, _INDEX), _partitions(segment, _CODES)
    centroids = _centroids(partitions, segment.uri(_INDEX))
    return {
        "index_type": about["type"],
        "uuid": str(segment.metadata.uuid),
        "uri": segment.uri(_INDEX),
        "metric_type": about["distance_type"],
        "num_partitions": len(codes.lengths),
        "sub_index": _sub_index(segment, about["type"], about["distance_type"]),
        "partitions": [{"size": size} for size in codes.lengths],
        "centroids": centroids,
        "loss": partitions.loss if partitions.HasField("loss") else None,
        "index_file_version": "V3",
    }


def _partitions(segment: Segment, name: str) -> Any:
    end = segment.end(name)
    data = end.buffer(int(end.metadata["lance:ivf"]))
    return decode_message(pb.Partitions, data, end.where, "the partitions of a vector index")


def _centroids(partitions: Any, where: str) -> list[list[float]] | None:
    tensor = partitions.centroids
    if not tensor.data:
        return None
    if tensor.data_type not in _TYPES:
        raise CorruptTable(where, (f"its centroids are of the unknown type {tensor.data_type}",))
    values = np.frombuffer(tensor.data, np.dtype(_TYPES[tensor.data_type])).reshape(tuple(tensor.shape))
    found: list[list[float]] = values.astype(np.float64).tolist()
    return found


def _sub_index(segment: Segment, kind: str, metric: str) -> dict[str, Any]:
    """The graph of the first partition, if there is one, and how vectors are stored."""
    stored = json.loads(segment.json(_CODES, "storage_metadata")[0])
    quantiser = kind.rsplit("_", 1)[-1]
    is_graph = "_HNSW_" in kind
    graphs = segment.json(_INDEX, "lance:hnsw") if is_graph else []
    return {
        **(json.loads(graphs[0]) if graphs and graphs[0] else {}),
        **{key: value for key, value in stored.items() if key not in _HIDDEN},
        "index_type": "HNSW" if is_graph else quantiser,
        "metric_type": "l2" if quantiser == "PQ" and metric == "cosine" else metric,
    }

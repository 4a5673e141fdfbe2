from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ExternalFile(_message.Message):
    __slots__ = ("path", "offset", "size")
    PATH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    path: str
    offset: int
    size: int
    def __init__(self, path: _Optional[str] = ..., offset: _Optional[int] = ..., size: _Optional[int] = ...) -> None: ...

class FragmentReuseDetails(_message.Message):
    __slots__ = ("inline", "external")
    INLINE_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_FIELD_NUMBER: _ClassVar[int]
    inline: FragmentReuseHistory
    external: ExternalFile
    def __init__(self, inline: _Optional[_Union[FragmentReuseHistory, _Mapping]] = ..., external: _Optional[_Union[ExternalFile, _Mapping]] = ...) -> None: ...

class FragmentReuseHistory(_message.Message):
    __slots__ = ("versions", "transitions")
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    TRANSITIONS_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedCompositeFieldContainer[FragmentReuseVersion]
    transitions: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, versions: _Optional[_Iterable[_Union[FragmentReuseVersion, _Mapping]]] = ..., transitions: _Optional[_Iterable[bytes]] = ...) -> None: ...

class FragmentReuseVersion(_message.Message):
    __slots__ = ("dataset_version", "groups")
    DATASET_VERSION_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    dataset_version: int
    groups: _containers.RepeatedCompositeFieldContainer[FragmentReuseGroup]
    def __init__(self, dataset_version: _Optional[int] = ..., groups: _Optional[_Iterable[_Union[FragmentReuseGroup, _Mapping]]] = ...) -> None: ...

class FragmentReuseGroup(_message.Message):
    __slots__ = ("changed_row_addrs", "old_fragments", "new_fragments")
    CHANGED_ROW_ADDRS_FIELD_NUMBER: _ClassVar[int]
    OLD_FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    NEW_FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    changed_row_addrs: bytes
    old_fragments: _containers.RepeatedCompositeFieldContainer[FragmentDigest]
    new_fragments: _containers.RepeatedCompositeFieldContainer[FragmentDigest]
    def __init__(self, changed_row_addrs: _Optional[bytes] = ..., old_fragments: _Optional[_Iterable[_Union[FragmentDigest, _Mapping]]] = ..., new_fragments: _Optional[_Iterable[_Union[FragmentDigest, _Mapping]]] = ...) -> None: ...

class FragmentDigest(_message.Message):
    __slots__ = ("id", "physical_rows", "num_deleted_rows")
    ID_FIELD_NUMBER: _ClassVar[int]
    PHYSICAL_ROWS_FIELD_NUMBER: _ClassVar[int]
    NUM_DELETED_ROWS_FIELD_NUMBER: _ClassVar[int]
    id: int
    physical_rows: int
    num_deleted_rows: int
    def __init__(self, id: _Optional[int] = ..., physical_rows: _Optional[int] = ..., num_deleted_rows: _Optional[int] = ...) -> None: ...

class VectorDetails(_message.Message):
    __slots__ = ("metric", "hnsw", "pq", "sq", "rq", "flat", "build_hints")
    class Metric(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        L2: _ClassVar[VectorDetails.Metric]
        COSINE: _ClassVar[VectorDetails.Metric]
        DOT: _ClassVar[VectorDetails.Metric]
        HAMMING: _ClassVar[VectorDetails.Metric]
    L2: VectorDetails.Metric
    COSINE: VectorDetails.Metric
    DOT: VectorDetails.Metric
    HAMMING: VectorDetails.Metric
    class Hnsw(_message.Message):
        __slots__ = ("m", "ef_construction", "max_level")
        M_FIELD_NUMBER: _ClassVar[int]
        EF_CONSTRUCTION_FIELD_NUMBER: _ClassVar[int]
        MAX_LEVEL_FIELD_NUMBER: _ClassVar[int]
        m: int
        ef_construction: int
        max_level: int
        def __init__(self, m: _Optional[int] = ..., ef_construction: _Optional[int] = ..., max_level: _Optional[int] = ...) -> None: ...
    class ProductQuantizer(_message.Message):
        __slots__ = ("num_bits", "num_sub_vectors")
        NUM_BITS_FIELD_NUMBER: _ClassVar[int]
        NUM_SUB_VECTORS_FIELD_NUMBER: _ClassVar[int]
        num_bits: int
        num_sub_vectors: int
        def __init__(self, num_bits: _Optional[int] = ..., num_sub_vectors: _Optional[int] = ...) -> None: ...
    class BitQuantizer(_message.Message):
        __slots__ = ("num_bits",)
        NUM_BITS_FIELD_NUMBER: _ClassVar[int]
        num_bits: int
        def __init__(self, num_bits: _Optional[int] = ...) -> None: ...
    class Flat(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class BuildHintsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    METRIC_FIELD_NUMBER: _ClassVar[int]
    HNSW_FIELD_NUMBER: _ClassVar[int]
    PQ_FIELD_NUMBER: _ClassVar[int]
    SQ_FIELD_NUMBER: _ClassVar[int]
    RQ_FIELD_NUMBER: _ClassVar[int]
    FLAT_FIELD_NUMBER: _ClassVar[int]
    BUILD_HINTS_FIELD_NUMBER: _ClassVar[int]
    metric: VectorDetails.Metric
    hnsw: VectorDetails.Hnsw
    pq: VectorDetails.ProductQuantizer
    sq: VectorDetails.BitQuantizer
    rq: VectorDetails.BitQuantizer
    flat: VectorDetails.Flat
    build_hints: _containers.ScalarMap[str, str]
    def __init__(self, metric: _Optional[_Union[VectorDetails.Metric, str]] = ..., hnsw: _Optional[_Union[VectorDetails.Hnsw, _Mapping]] = ..., pq: _Optional[_Union[VectorDetails.ProductQuantizer, _Mapping]] = ..., sq: _Optional[_Union[VectorDetails.BitQuantizer, _Mapping]] = ..., rq: _Optional[_Union[VectorDetails.BitQuantizer, _Mapping]] = ..., flat: _Optional[_Union[VectorDetails.Flat, _Mapping]] = ..., build_hints: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Tensor(_message.Message):
    __slots__ = ("data_type", "shape", "data")
    class DataType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        BFLOAT16: _ClassVar[Tensor.DataType]
        FLOAT16: _ClassVar[Tensor.DataType]
        FLOAT32: _ClassVar[Tensor.DataType]
        FLOAT64: _ClassVar[Tensor.DataType]
        UINT8: _ClassVar[Tensor.DataType]
    BFLOAT16: Tensor.DataType
    FLOAT16: Tensor.DataType
    FLOAT32: Tensor.DataType
    FLOAT64: Tensor.DataType
    UINT8: Tensor.DataType
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    data_type: Tensor.DataType
    shape: _containers.RepeatedScalarFieldContainer[int]
    data: bytes
    def __init__(self, data_type: _Optional[_Union[Tensor.DataType, str]] = ..., shape: _Optional[_Iterable[int]] = ..., data: _Optional[bytes] = ...) -> None: ...

class Partitions(_message.Message):
    __slots__ = ("old_centroids", "offsets", "lengths", "centroids", "loss")
    OLD_CENTROIDS_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    LENGTHS_FIELD_NUMBER: _ClassVar[int]
    CENTROIDS_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    old_centroids: _containers.RepeatedScalarFieldContainer[float]
    offsets: _containers.RepeatedScalarFieldContainer[int]
    lengths: _containers.RepeatedScalarFieldContainer[int]
    centroids: Tensor
    loss: float
    def __init__(self, old_centroids: _Optional[_Iterable[float]] = ..., offsets: _Optional[_Iterable[int]] = ..., lengths: _Optional[_Iterable[int]] = ..., centroids: _Optional[_Union[Tensor, _Mapping]] = ..., loss: _Optional[float] = ...) -> None: ...

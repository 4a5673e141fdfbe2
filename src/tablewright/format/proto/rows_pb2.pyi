from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RowIdSequence(_message.Message):
    __slots__ = ("segments",)
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    segments: _containers.RepeatedCompositeFieldContainer[Segment]
    def __init__(self, segments: _Optional[_Iterable[_Union[Segment, _Mapping]]] = ...) -> None: ...

class Segment(_message.Message):
    __slots__ = ("range", "range_with_holes", "range_with_bitmap", "sorted_array", "array")
    class Range(_message.Message):
        __slots__ = ("start", "end")
        START_FIELD_NUMBER: _ClassVar[int]
        END_FIELD_NUMBER: _ClassVar[int]
        start: int
        end: int
        def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...
    class RangeWithHoles(_message.Message):
        __slots__ = ("start", "end", "holes")
        START_FIELD_NUMBER: _ClassVar[int]
        END_FIELD_NUMBER: _ClassVar[int]
        HOLES_FIELD_NUMBER: _ClassVar[int]
        start: int
        end: int
        holes: NumberArray
        def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ..., holes: _Optional[_Union[NumberArray, _Mapping]] = ...) -> None: ...
    class RangeWithBitmap(_message.Message):
        __slots__ = ("start", "end", "bitmap")
        START_FIELD_NUMBER: _ClassVar[int]
        END_FIELD_NUMBER: _ClassVar[int]
        BITMAP_FIELD_NUMBER: _ClassVar[int]
        start: int
        end: int
        bitmap: bytes
        def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ..., bitmap: _Optional[bytes] = ...) -> None: ...
    RANGE_FIELD_NUMBER: _ClassVar[int]
    RANGE_WITH_HOLES_FIELD_NUMBER: _ClassVar[int]
    RANGE_WITH_BITMAP_FIELD_NUMBER: _ClassVar[int]
    SORTED_ARRAY_FIELD_NUMBER: _ClassVar[int]
    ARRAY_FIELD_NUMBER: _ClassVar[int]
    range: Segment.Range
    range_with_holes: Segment.RangeWithHoles
    range_with_bitmap: Segment.RangeWithBitmap
    sorted_array: NumberArray
    array: NumberArray
    def __init__(self, range: _Optional[_Union[Segment.Range, _Mapping]] = ..., range_with_holes: _Optional[_Union[Segment.RangeWithHoles, _Mapping]] = ..., range_with_bitmap: _Optional[_Union[Segment.RangeWithBitmap, _Mapping]] = ..., sorted_array: _Optional[_Union[NumberArray, _Mapping]] = ..., array: _Optional[_Union[NumberArray, _Mapping]] = ...) -> None: ...

class NumberArray(_message.Message):
    __slots__ = ("u16", "u32", "u64")
    class Narrow16(_message.Message):
        __slots__ = ("base", "offsets")
        BASE_FIELD_NUMBER: _ClassVar[int]
        OFFSETS_FIELD_NUMBER: _ClassVar[int]
        base: int
        offsets: bytes
        def __init__(self, base: _Optional[int] = ..., offsets: _Optional[bytes] = ...) -> None: ...
    class Narrow32(_message.Message):
        __slots__ = ("base", "offsets")
        BASE_FIELD_NUMBER: _ClassVar[int]
        OFFSETS_FIELD_NUMBER: _ClassVar[int]
        base: int
        offsets: bytes
        def __init__(self, base: _Optional[int] = ..., offsets: _Optional[bytes] = ...) -> None: ...
    class Wide64(_message.Message):
        __slots__ = ("values",)
        VALUES_FIELD_NUMBER: _ClassVar[int]
        values: bytes
        def __init__(self, values: _Optional[bytes] = ...) -> None: ...
    U16_FIELD_NUMBER: _ClassVar[int]
    U32_FIELD_NUMBER: _ClassVar[int]
    U64_FIELD_NUMBER: _ClassVar[int]
    u16: NumberArray.Narrow16
    u32: NumberArray.Narrow32
    u64: NumberArray.Wide64
    def __init__(self, u16: _Optional[_Union[NumberArray.Narrow16, _Mapping]] = ..., u32: _Optional[_Union[NumberArray.Narrow32, _Mapping]] = ..., u64: _Optional[_Union[NumberArray.Wide64, _Mapping]] = ...) -> None: ...

class VersionSequence(_message.Message):
    __slots__ = ("runs",)
    RUNS_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[VersionRun]
    def __init__(self, runs: _Optional[_Iterable[_Union[VersionRun, _Mapping]]] = ...) -> None: ...

class VersionRun(_message.Message):
    __slots__ = ("span", "version")
    SPAN_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    span: Segment
    version: int
    def __init__(self, span: _Optional[_Union[Segment, _Mapping]] = ..., version: _Optional[int] = ...) -> None: ...

class VersionSequenceShell(_message.Message):
    __slots__ = ("runs",)
    RUNS_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, runs: _Optional[_Iterable[bytes]] = ...) -> None: ...

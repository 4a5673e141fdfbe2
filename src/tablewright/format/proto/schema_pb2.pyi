from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Field(_message.Message):
    __slots__ = ("kind", "name", "id", "parent_id", "logical_type", "nullable", "encoding", "dictionary", "extension_name", "metadata", "unenforced_primary_key", "unenforced_primary_key_position", "unenforced_clustering_key", "unenforced_clustering_key_position")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PARENT: _ClassVar[Field.Kind]
        REPEATED: _ClassVar[Field.Kind]
        LEAF: _ClassVar[Field.Kind]
    PARENT: Field.Kind
    REPEATED: Field.Kind
    LEAF: Field.Kind
    class Encoding(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NONE: _ClassVar[Field.Encoding]
        PLAIN: _ClassVar[Field.Encoding]
        VAR_BINARY: _ClassVar[Field.Encoding]
        DICTIONARY: _ClassVar[Field.Encoding]
        RLE: _ClassVar[Field.Encoding]
    NONE: Field.Encoding
    PLAIN: Field.Encoding
    VAR_BINARY: Field.Encoding
    DICTIONARY: Field.Encoding
    RLE: Field.Encoding
    class DictionaryPlace(_message.Message):
        __slots__ = ("offset", "length")
        OFFSET_FIELD_NUMBER: _ClassVar[int]
        LENGTH_FIELD_NUMBER: _ClassVar[int]
        offset: int
        length: int
        def __init__(self, offset: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_ID_FIELD_NUMBER: _ClassVar[int]
    LOGICAL_TYPE_FIELD_NUMBER: _ClassVar[int]
    NULLABLE_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    DICTIONARY_FIELD_NUMBER: _ClassVar[int]
    EXTENSION_NAME_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    UNENFORCED_PRIMARY_KEY_FIELD_NUMBER: _ClassVar[int]
    UNENFORCED_PRIMARY_KEY_POSITION_FIELD_NUMBER: _ClassVar[int]
    UNENFORCED_CLUSTERING_KEY_FIELD_NUMBER: _ClassVar[int]
    UNENFORCED_CLUSTERING_KEY_POSITION_FIELD_NUMBER: _ClassVar[int]
    kind: Field.Kind
    name: str
    id: int
    parent_id: int
    logical_type: str
    nullable: bool
    encoding: Field.Encoding
    dictionary: Field.DictionaryPlace
    extension_name: str
    metadata: _containers.ScalarMap[str, bytes]
    unenforced_primary_key: bool
    unenforced_primary_key_position: int
    unenforced_clustering_key: bool
    unenforced_clustering_key_position: int
    def __init__(self, kind: _Optional[_Union[Field.Kind, str]] = ..., name: _Optional[str] = ..., id: _Optional[int] = ..., parent_id: _Optional[int] = ..., logical_type: _Optional[str] = ..., nullable: _Optional[bool] = ..., encoding: _Optional[_Union[Field.Encoding, str]] = ..., dictionary: _Optional[_Union[Field.DictionaryPlace, _Mapping]] = ..., extension_name: _Optional[str] = ..., metadata: _Optional[_Mapping[str, bytes]] = ..., unenforced_primary_key: _Optional[bool] = ..., unenforced_primary_key_position: _Optional[int] = ..., unenforced_clustering_key: _Optional[bool] = ..., unenforced_clustering_key_position: _Optional[int] = ...) -> None: ...

class FileSchema(_message.Message):
    __slots__ = ("fields", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    fields: _containers.RepeatedCompositeFieldContainer[Field]
    metadata: _containers.ScalarMap[str, bytes]
    def __init__(self, fields: _Optional[_Iterable[_Union[Field, _Mapping]]] = ..., metadata: _Optional[_Mapping[str, bytes]] = ...) -> None: ...

class FileDescriptor(_message.Message):
    __slots__ = ("schema", "length")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    schema: FileSchema
    length: int
    def __init__(self, schema: _Optional[_Union[FileSchema, _Mapping]] = ..., length: _Optional[int] = ...) -> None: ...

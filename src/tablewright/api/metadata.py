"""Fragment metadata as people pass it around: pylance's classes and JSON, around our frozen values.

They are plain mutable dataclasses because scripts edit them; :meth:`FragmentMetadata.to_fragment` checks what comes in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tablewright.checks import byte_string, check_text, listed, whole_number
from tablewright.errors import InvalidRequest, WrongType
from tablewright.format import fragment as values
from tablewright.format.fragment import DeletionFileType, problems_of_fragment
from tablewright.format.naming import deletion_path
from tablewright.format.row_ids import RowIdSequence, decode_row_ids, encode_row_ids
from tablewright.operations.take import whole_numbers

__all__ = ["DataFile", "DeletionFile", "FragmentMetadata", "RowDatasetVersionMeta", "RowIdMeta"]

_DELETION_KINDS = {"array": DeletionFileType.ARROW_ARRAY, "bitmap": DeletionFileType.BITMAP}
_U32_MAX, _U64_MAX = (1 << 32) - 1, (1 << 64) - 1
_FIELD_MIN, _FIELD_MAX = -(1 << 31), (1 << 31) - 1
_DELETION_NAMES = {kind: name for name, kind in _DELETION_KINDS.items()}


@dataclass
class DataFile:
    """A data file of a fragment: its path below ``data/``, the field ids it holds and the columns they are in."""

    path: str
    fields: list[int]
    column_indices: list[int] = field(default_factory=list)
    file_major_version: int = 2
    file_minor_version: int = 2
    file_size_bytes: int | None = None
    base_id: int | None = None

    @classmethod
    def of(cls, file: values.DataFile) -> DataFile:
        """From the frozen value."""
        return cls(
            path=file.path,
            fields=list(file.fields),
            column_indices=list(file.column_indices),
            file_major_version=file.file_major_version,
            file_minor_version=file.file_minor_version,
            file_size_bytes=file.file_size_bytes or None,
            base_id=file.base_id,
        )

    def to_value(self) -> values.DataFile:
        """The frozen value that goes into a manifest."""
        fields = _field_numbers(self.fields, "fields")
        columns = () if self.column_indices is None else _field_numbers(self.column_indices, "column_indices")
        return values.DataFile(
            path=check_text(self.path, "path"),
            fields=fields,
            column_indices=columns or tuple(range(len(fields))),
            file_major_version=whole_number(self.file_major_version, "file_major_version", maximum=_U32_MAX),
            file_minor_version=whole_number(self.file_minor_version, "file_minor_version", maximum=_U32_MAX),
            file_size_bytes=_number_or_none(self.file_size_bytes, "file_size_bytes", _U64_MAX) or 0,
            base_id=_number_or_none(self.base_id, "base_id", _U32_MAX),
        )


@dataclass
class DeletionFile:
    """The deletion file of a fragment."""

    read_version: int
    id: int
    file_type: str
    num_deleted_rows: int
    base_id: int | None = None

    @classmethod
    def of(cls, file: values.DeletionFile) -> DeletionFile:
        """From the frozen value."""
        kind = _DELETION_NAMES[file.file_type]
        return cls(file.read_version, file.id, kind, file.num_deleted_rows, file.base_id)

    def to_value(self) -> values.DeletionFile:
        """The frozen value that goes into a manifest."""
        if check_text(self.file_type, "file_type") not in _DELETION_KINDS:
            raise InvalidRequest(f"Unknown deletion file type {self.file_type!r}: use 'array' or 'bitmap'.")
        return values.DeletionFile(
            file_type=_DELETION_KINDS[self.file_type],
            read_version=whole_number(self.read_version, "read_version", maximum=_U64_MAX),
            id=whole_number(self.id, "the id of a deletion file", maximum=_U64_MAX),
            num_deleted_rows=whole_number(self.num_deleted_rows, "num_deleted_rows", maximum=_U64_MAX),
            base_id=_number_or_none(self.base_id, "base_id", _U32_MAX),
        )

    def asdict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "read_version": self.read_version,
            "id": self.id,
            "file_type": self.file_type,
            "num_deleted_rows": self.num_deleted_rows,
            "base_id": self.base_id,
        }

    def path(self, fragment_id: int, base_uri: str | None = None) -> str:
        """Where the file lies, below the table's root or below ``base_uri``."""
        path = deletion_path(fragment_id, self.to_value())
        return path if base_uri is None else f"{base_uri.rstrip('/')}/{path}"


@dataclass(frozen=True)
class _InlineMeta:
    """Serialised row lineage, kept in the fragment itself."""

    data: bytes
    _key = "inline"

    @classmethod
    def _parse(cls, value: Mapping[str, Any]) -> bytes:
        if not isinstance(value, Mapping):
            raise WrongType(f"Row lineage must be an object with the key {cls._key!r}, got {value!r}.")
        for key, data in value.items():
            if str(key).lower() == "inline":
                return byte_string(data, cls.__name__)
        raise InvalidRequest(f"Only inline row lineage is supported, got {list(value)}.")

    @classmethod
    def _bytes_of(cls, meta: Any) -> bytes | None:
        if meta is not None and not isinstance(meta, cls):
            raise WrongType(f"Row lineage must be a {cls.__name__}, got {type(meta).__name__}.")
        return None if meta is None else byte_string(meta.data, cls.__name__)

    def asdict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {self._key: list(self.data)}

    def json(self) -> str:
        """As a JSON text."""
        return json.dumps(self.asdict())


class RowIdMeta(_InlineMeta):
    """Stable row ids of a fragment's rows."""

    _key = "Inline"

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> RowIdMeta:
        """From the JSON form."""
        return cls(cls._parse(value))

    @classmethod
    def of_ids(cls, ids: Any) -> RowIdMeta:
        """From row ids in row order.

        >>> RowIdMeta.of_ids([3, 4, 5]).to_ids()
        array([3, 4, 5], dtype=uint64)
        """
        return cls(encode_row_ids(RowIdSequence.from_values(whole_numbers(ids, "row id").view(np.uint64))))

    def to_ids(self) -> Any:
        """The row ids as a numpy array."""
        return decode_row_ids(self.data, "row_id_meta").to_numpy()


class RowDatasetVersionMeta(_InlineMeta):
    """Per-row versions (created at, last updated at) of a fragment."""

    @classmethod
    def from_json(cls, text: str) -> RowDatasetVersionMeta:
        """From the JSON text."""
        try:
            value = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidRequest(f"This is not the JSON of row versions: {error!r}.") from error
        return cls(cls._parse(value))


@dataclass
class FragmentMetadata:
    """Everything a manifest says about one fragment.

    >>> meta = FragmentMetadata(id=0, files=[DataFile("x.lance", [0], [0], 2, 2)], physical_rows=3)
    >>> FragmentMetadata.from_json(json.dumps(meta.to_json())) == meta
    True
    """

    id: int
    files: list[DataFile]
    physical_rows: int
    deletion_file: DeletionFile | None = None
    row_id_meta: RowIdMeta | None = None
    created_at_version_meta: RowDatasetVersionMeta | None = None
    last_updated_at_version_meta: RowDatasetVersionMeta | None = None
    overlays: list[Any] = field(default_factory=list)

    @property
    def num_deletions(self) -> int:
        """Rows that the deletion file hides."""
        return 0 if self.deletion_file is None else self.deletion_file.num_deleted_rows

    @property
    def num_rows(self) -> int:
        """Live rows."""
        return self.physical_rows - self.num_deletions

    @classmethod
    def of(cls, fragment: values.Fragment) -> FragmentMetadata:
        """From the frozen value."""
        return cls(
            id=fragment.id,
            files=[DataFile.of(file) for file in fragment.files],
            physical_rows=fragment.physical_rows,
            deletion_file=None if fragment.deletion is None else DeletionFile.of(fragment.deletion),
            row_id_meta=None if fragment.row_ids is None else RowIdMeta(fragment.row_ids),
            created_at_version_meta=None if fragment.created_at is None else RowDatasetVersionMeta(fragment.created_at),
            last_updated_at_version_meta=(
                None if fragment.last_updated_at is None else RowDatasetVersionMeta(fragment.last_updated_at)
            ),
        )

    def to_fragment(self) -> values.Fragment:
        """The frozen value; raises :class:`~tablewright.errors.InvalidRequest` with all that is wrong with it."""
        if self.overlays:
            raise InvalidRequest("Data overlays are not supported: compact the table with Lance first.")
        files = listed(self.files, "files")
        if not all(isinstance(file, DataFile) for file in files):
            raise WrongType(f"files must be a list of DataFile, got {files!r}.")
        if not isinstance(self.deletion_file, DeletionFile | None):
            raise WrongType(f"deletion_file must be a DeletionFile, got {self.deletion_file!r}.")
        fragment = values.Fragment(
            id=whole_number(self.id, "the id of a fragment", minimum=None),
            files=tuple(file.to_value() for file in files),
            physical_rows=whole_number(self.physical_rows, "physical_rows", minimum=None),
            deletion=None if self.deletion_file is None else self.deletion_file.to_value(),
            row_ids=RowIdMeta._bytes_of(self.row_id_meta),
            created_at=RowDatasetVersionMeta._bytes_of(self.created_at_version_meta),
            last_updated_at=RowDatasetVersionMeta._bytes_of(self.last_updated_at_version_meta),
        )
        problems = problems_of_fragment(fragment)
        if problems:
            raise InvalidRequest(f"Invalid fragment metadata: {'; '.join(problems)}.")
        return fragment

    def to_json(self) -> dict[str, Any]:
        """As a JSON object, in the form that pylance writes."""
        created, updated = self.created_at_version_meta, self.last_updated_at_version_meta
        return {
            "id": self.id,
            "files": [_file_to_json(file) for file in self.files],
            "overlays": list(self.overlays),
            "physical_rows": self.physical_rows,
            "deletion_file": None if self.deletion_file is None else self.deletion_file.asdict(),
            "row_id_meta": None if self.row_id_meta is None else self.row_id_meta.asdict(),
            "created_at_version_meta": None if created is None else created.asdict(),
            "last_updated_at_version_meta": None if updated is None else updated.asdict(),
        }

    @staticmethod
    def from_json(json_data: str | Mapping[str, Any]) -> FragmentMetadata:
        """From a JSON text (or object) that this class or pylance's wrote."""
        try:
            parsed = json.loads(json_data) if isinstance(json_data, str) else json_data
            if not isinstance(parsed, Mapping):
                raise WrongType(f"The JSON of a fragment is an object, got {type(parsed).__name__}.")
            return FragmentMetadata(
                id=parsed["id"],
                files=[DataFile(**file) for file in parsed["files"]],
                physical_rows=parsed["physical_rows"],
                deletion_file=_optional(parsed, "deletion_file", lambda value: DeletionFile(**value)),
                row_id_meta=_optional(parsed, "row_id_meta", RowIdMeta.from_dict),
                created_at_version_meta=_optional(parsed, "created_at_version_meta", _version_meta),
                last_updated_at_version_meta=_optional(parsed, "last_updated_at_version_meta", _version_meta),
                overlays=list(parsed.get("overlays") or ()),
            )
        except InvalidRequest:
            raise
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise InvalidRequest(f"This is not the JSON of a fragment: {error!r}.") from error


def _file_to_json(file: DataFile) -> dict[str, Any]:
    names = (
        "fields",
        "column_indices",
        "file_major_version",
        "file_minor_version",
        "file_size_bytes",
        "base_id",
        "path",
    )
    return {name: getattr(file, name) for name in names}


def _version_meta(value: Mapping[str, Any]) -> RowDatasetVersionMeta:
    return RowDatasetVersionMeta(RowDatasetVersionMeta._parse(value))


def _field_numbers(numbers: Any, name: str) -> tuple[int, ...]:
    each = f"each of {name}"
    return tuple(whole_number(number, each, minimum=_FIELD_MIN, maximum=_FIELD_MAX) for number in listed(numbers, name))


def _number_or_none(value: Any, name: str, maximum: int) -> int | None:
    return None if value is None else whole_number(value, name, maximum=maximum)


def _optional(parsed: Mapping[str, Any], key: str, parse: Any) -> Any:
    return None if parsed.get(key) is None else parse(parsed[key])

"""Filesystems."""

import enum
from typing import Any

class FileType(enum.Enum):
    NotFound = 0
    Unknown = 1
    File = 2
    Directory = 3

class FileInfo:
    def __init__(
        self,
        path: str,
        type: FileType = ...,
        *,
        mtime: Any = None,
        mtime_ns: int | None = None,
        size: int | None = None,
    ) -> None: ...
    @property
    def path(self) -> str: ...
    @property
    def type(self) -> FileType: ...
    @property
    def size(self) -> int | None: ...
    @property
    def is_file(self) -> bool: ...

class FileSystem: ...

class LocalFileSystem(FileSystem):
    def __init__(self, *, use_mmap: bool = False) -> None: ...

class PyFileSystem(FileSystem):
    def __init__(self, handler: FileSystemHandler) -> None: ...

class FileSystemHandler: ...

"""From an address to a store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tablewright.errors import WrongType
from tablewright.redact import remember_secrets
from tablewright.storage.address import parse_address
from tablewright.storage.base import Store
from tablewright.storage.local import open_local
from tablewright.storage.memory import open_memory
from tablewright.storage.options import warn_of_unknown
from tablewright.storage.remote import open_remote

__all__ = ["open_store"]


def open_store(uri: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> Store:
    """The store at an address. Nothing is created and nothing contacted until the first call.

    ``uri`` is a path, ``file://``, ``memory://``, ``s3://`` (or ``s3a://``), ``gs://``, ``az://`` or ``abfss://``;
    ``storage_options`` take pylance's keys, in any case; an unknown one is warned about once. Their values never occur
    in texts. ``fsync`` is ours: "false" leaves it to the operating system when files of a local table reach the disk.

    >>> store = open_store("memory://guide")
    >>> store.put_if_absent("hello.txt", b"first"), store.put_if_absent("hello.txt", b"second")
    (True, False)
    >>> store.get("hello.txt")
    b'first'
    """
    address = parse_address(uri)
    options = _text_options(storage_options)
    if options:
        remember_secrets(options)
        warn_of_unknown(options)
    if address.scheme == "file":
        return open_local(address, options)
    if address.scheme == "memory":
        return open_memory(address, options)
    return open_remote(address, options)


def _text_options(options: Mapping[str, Any] | None) -> dict[str, str]:
    if options is None:
        return {}
    if not isinstance(options, Mapping) or not all(isinstance(key, str) for key in options):
        raise WrongType(f"storage_options must map names to values, got {type(options).__name__}.")
    return {key: _text(key, value) for key, value in options.items() if value is not None}


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str | int | float):  # the value may be a secret: only its type is reported
        raise WrongType(f"storage_options[{key!r}] must be text, got a value of type {type(value).__name__}.")
    return str(value).lower() if isinstance(value, bool) else str(value)

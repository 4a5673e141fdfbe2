"""Addresses: what users type, in one normal form per location.

An address is a plain path (relative, absolute, ``~``, or ``pathlib``), ``file://…``, ``memory://…`` or the URL of an
object store. Two spellings of one place become the same :class:`Address`, so that a table and its branches
recognise each other by comparing ``uri``:

1. No scheme, or ``file:``: the absolute path without a trailing slash. Nothing is percent-decoded in a plain path; a
   ``file://`` URL is.
2. ``memory://name/…``: the same objects for every store of this process.
3. ``s3://`` (and Spark's ``s3a://``), ``gs://``, ``az://``, ``abfss://``: bucket and key. Keys in URLs are
   percent-encoded, as Lance clients read them, and ``uri`` is encoded again.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from tablewright.errors import InvalidRequest, WrongType
from tablewright.redact import redact_address

__all__ = ["SCHEMES", "Address", "join_uri", "parse_address"]

SCHEMES = ("file", "memory", "s3", "s3a", "gs", "az", "abfss")
"""The schemes that :func:`parse_address` knows, besides plain paths."""

_REMOTE = {"s3": "s3", "s3a": "s3", "gs": "gs", "az": "az", "abfss": "abfss"}
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]+):(//)?")
_NO_SCHEME = re.compile(r"[^/]*://")
_SAFE_IN_KEY = "/!$&'()*+,;=:@-._~"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One place: ``scheme`` is "file", "memory", "s3", "gs", "az" or "abfss".

    ``bucket`` is empty for "file" and "memory"; ``key`` has no leading or trailing slash.
    """

    scheme: str
    bucket: str
    key: str

    @property
    def uri(self) -> str:
        """The normal spelling: an absolute path for "file", else a URL."""
        if self.scheme == "file":
            return "/" + self.key
        if self.scheme == "memory":
            return f"memory://{self.key}"
        return f"{self.scheme}://{self.bucket}/{_encode(self.key)}".rstrip("/")


def parse_address(uri: str | os.PathLike[str]) -> Address:
    """The place that ``uri`` names.

    >>> parse_address("s3a://bucket/my table/").uri
    's3://bucket/my%20table'
    >>> parse_address("file:///data/docs.lance").uri
    '/data/docs.lance'
    >>> parse_address("ftp://host/docs")
    Traceback (most recent call last):
    tablewright.errors.InvalidRequest: Cannot open ftp://host/docs: the scheme 'ftp' is unknown...
    """
    text = os.fspath(uri) if isinstance(uri, str | os.PathLike) else None
    if not isinstance(text, str):
        raise WrongType(f"An address must be a path or a URL, not {uri!r}.")
    if not text.strip():
        raise InvalidRequest(f"An address must be a path or a URL, not {uri!r}.")
    address = _local(os.path.expanduser(text)) if isinstance(uri, os.PathLike) else _address_of(text)
    if "\0" in address.bucket + address.key:
        raise InvalidRequest(f"Cannot open {redact_address(text)!r}: an address has no NUL characters.")
    return address


def _address_of(text: str) -> Address:
    match = _SCHEME.match(text)
    scheme = match[1].lower() if match else ""
    if match is None or (match[2] is None and scheme != "file"):
        if scheme in SCHEMES or _NO_SCHEME.match(text):
            raise InvalidRequest(
                f"Cannot open {redact_address(text)}: a URL is spelled scheme://place, as in memory://name. "
                "If this is meant as a path, put ./ before it."
            )
        return _local(os.path.expanduser(text))
    rest = text[match.end() :]
    if scheme == "file":
        return _file_url(text, rest, has_authority=match[2] is not None)
    if scheme == "memory":
        return _memory(text, rest)
    if scheme in _REMOTE:
        return _remote(text, _REMOTE[scheme], rest)
    known = ", ".join(f"{name}://" for name in SCHEMES)
    shown = redact_address(text)
    raise InvalidRequest(f"Cannot open {shown}: the scheme {scheme!r} is unknown. Use a plain path or one of {known}.")


def join_uri(uri: str, path: str) -> str:
    """The address of ``path`` (relative, not encoded) below ``uri``."""
    if not path:
        return uri
    if "://" not in uri:
        return f"{uri.rstrip('/')}/{path}"
    if not uri.startswith("memory://"):
        path = _encode(path)
    return f"{uri.rstrip('/')}/{path}" if uri != "memory://" else f"memory://{path}"


def _local(path: str) -> Address:
    return Address(scheme="file", bucket="", key=os.path.abspath(path).strip("/"))


def _file_url(text: str, rest: str, *, has_authority: bool) -> Address:
    authority, slash, path = rest.partition("/") if has_authority else ("", rest[:1], rest[1:])
    if slash != "/" or authority not in ("", "localhost"):
        shown = redact_address(text)
        raise InvalidRequest(f"Cannot open {shown}: a file URL needs an absolute path, as in file:///data/table.lance.")
    return _local("/" + unquote(path))


def _memory(text: str, rest: str) -> Address:
    if "?" in rest or "#" in rest:
        raise InvalidRequest(f"Cannot open {redact_address(text)}: an address has no query; leave '?' and '#' out.")
    return Address(scheme="memory", bucket="", key=_clean_key(text, rest))


def _remote(text: str, scheme: str, rest: str) -> Address:
    bucket, _, key = rest.partition("/")
    shown = redact_address(text)
    if not bucket:
        raise InvalidRequest(f"Cannot open {shown}: the bucket is missing. Write {scheme}://bucket/path.")
    if ":" in bucket or ("@" in bucket and scheme != "abfss"):
        raise InvalidRequest(f"Cannot open {shown}: an address has no user or password. Give them in storage_options.")
    if "?" in rest or "#" in rest:
        raise InvalidRequest(
            f"Cannot open {shown}: an address has no query. Give tokens in storage_options; write '?' and '#' in a "
            "path as %3F and %23."
        )
    return Address(scheme=scheme, bucket=bucket, key=_clean_key(text, unquote(key)))


def _clean_key(text: str, key: str) -> str:
    key = key.strip("/")
    if any(part in ("", ".", "..") for part in key.split("/")) and key:
        raise InvalidRequest(f"Cannot open {redact_address(text)}: a path here has no empty, '.' or '..' parts.")
    return key


def _encode(key: str) -> str:
    return quote(key, safe=_SAFE_IN_KEY)

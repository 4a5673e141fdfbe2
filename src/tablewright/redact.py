"""Secrets stay out of texts: the one place that knows what a secret looks like.

Every message of :mod:`tablewright.errors` passes through :func:`redact`. It hides

1. the values of storage options that were given to this process (:func:`remember_secrets`), and those of environment
   variables that hold credentials, wherever they occur;
2. in URLs, ``user:password@`` (also after a single slash, ``s3:/user:password@``) and everything after ``?`` or ``#``
   (signed URLs carry their signature there), also where the ``?`` is escaped as ``%3F``, as in the address of an object
   whose name was a signed URL;
3. ``key=value``, ``"key": "value"`` and ``<Key>value</Key>`` where the key is one of a credential, as in the answers of
   object stores.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Mapping
from urllib.parse import quote

__all__ = ["HARMLESS_OPTIONS", "HIDDEN", "redact", "redact_address", "remember_secrets"]

HIDDEN = "***"

_HARMLESS = """
    account_name allow_http allow_invalid_certificates authority_host base_url bucket bucket_name checksum_algorithm
    client_max_retries client_retry_timeout conditional_put connect_timeout container_name copy_if_not_exists
    credential_type default_content_type default_region disable_bulk_delete disable_tagging download_retry_count
    endpoint endpoint_url expires_at fsync imdsv1_fallback io_parallelism metadata_endpoint pool_idle_timeout
    pool_max_idle_per_host randomize_addresses read_timeout region request_payer request_timeout s3_express
    server_side_encryption skip_signature sts_endpoint timeout unsigned_payload use_azure_cli use_emulator
    use_fabric_endpoint user_agent virtual_hosted_style_request
"""
HARMLESS_OPTIONS = frozenset(_HARMLESS.split())
"""Options (without ``aws_`` and the like) whose values may occur in messages. Of all others they may not."""

_PREFIX = re.compile(r"^(?:aws_|azure_storage_|azure_|google_)")
_VALUE_CHARS_MIN = 6  # "true" or "5" is no secret, and occurs everywhere
_VARIABLE_CHARS_MIN = 8
_VALUES_MAX = 512
_SECRET_VARIABLE = re.compile(r"^(?:AWS|AZURE|GOOGLE)_.*(?:KEY|SECRET|TOKEN|SAS|PASSWORD)", re.IGNORECASE)

_CREDENTIAL = (
    r"(?:sig|signature|secret\w*|password|passwd|pwd|token|access[_-]?token|session[_-]?token|sas[_-]?\w*"
    r"|account[_-]?key|access[_-]?key(?:[_-]?id)?|aws_?access_?key_?id|api[_-]?key|credential|authorization"
    r"|x-(?:amz|goog)-(?:signature|credential|security-token)|stringtosign\w*|signatureprovided|canonicalrequest\w*)"
)
_QUERY = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*://[^\s?#\"'<>]*?(?:[?#]|%3[Ff]))[^\s\"'<>)\]]*")
_USER = re.compile(r"(?<![A-Za-z0-9+.\-])((?!abfss?:|wasbs?:)[A-Za-z][A-Za-z0-9+.\-]*://)[^/\s\"'<>@]*@")
_PASSWORD = re.compile(r"(://)[^/\s\"'<>@]*:[^\s\"'<>]*@")
_ONE_SLASH = re.compile(r"\b((?:s3[an]?|gs|az|abfss?|wasbs?|https?|ftp|memory):/)[^/\s\"'<>@:]*:[^\s\"'<>]*@")
_SCHEME = re.compile(r"[^/]*?:/*")
_PAIR = re.compile(rf"(?<![A-Za-z0-9])({_CREDENTIAL})(=|\"\s*:\s*\")[^\s&,;\"'<>)]+", re.IGNORECASE)
_HEADER = re.compile(r"(authorization\"?\s*[:=]\s*\"?)[^\"\r\n<>]+", re.IGNORECASE)
_TAG = re.compile(rf"<({_CREDENTIAL})>[^<]*<", re.IGNORECASE)

_secrets: OrderedDict[str, None] = OrderedDict()


def remember_secrets(options: Mapping[str, str]) -> None:
    """Hide the values of these storage options from now on, except those that are no secrets."""
    for key, value in options.items():
        if len(value) >= _VALUE_CHARS_MIN and _PREFIX.sub("", key.lower()) not in HARMLESS_OPTIONS:
            _secrets[value] = None
            _secrets.move_to_end(value)
    while len(_secrets) > _VALUES_MAX:
        _secrets.popitem(last=False)


def redact(text: str) -> str:
    """``text`` without secrets.

    >>> redact("PUT https://me:pass@host/c/x?sv=1&sig=abc failed")
    'PUT https://***@host/c/x?*** failed'
    >>> redact("abfss://container@account.dfs.core.windows.net/t is not there")
    'abfss://container@account.dfs.core.windows.net/t is not there'
    """
    for value in _hidden_values():
        if value in text:
            text = text.replace(value, HIDDEN)
    if "://" in text:
        text = _QUERY.sub(rf"\1{HIDDEN}", text)
        text = _USER.sub(rf"\1{HIDDEN}@", _PASSWORD.sub(rf"\1{HIDDEN}@", text))
    if ":/" in text:
        text = _ONE_SLASH.sub(rf"\1{HIDDEN}@", text)
    text = _HEADER.sub(rf"\1{HIDDEN}", _PAIR.sub(rf"\1\2{HIDDEN}", text))
    return _TAG.sub(rf"<\1>{HIDDEN}<", text) if "<" in text else text


def redact_address(text: str) -> str:
    """An address that could not be understood, without what may be a secret in it.

    >>> redact_address("ftp://me:pa/ss@host/docs?token=1")
    'ftp://***@host/docs?***'
    >>> redact_address("s3:/me:pass@bucket/docs#signature")
    's3:/***@bucket/docs#***'
    """
    match = _SCHEME.match(text)
    if match is None:
        return redact(text)
    before, at, after = text[match.end() :].rpartition("@")
    is_secret = ":" in before or not match[0].lower().startswith("abfs")
    place = f"{HIDDEN if is_secret else before}@{after}" if at else after
    mark = re.search("[?#]", place)
    return redact(match[0] + (place if mark is None else place[: mark.end()] + HIDDEN))


def _hidden_values() -> list[str]:
    variables = (value for name, value in os.environ.items() if _SECRET_VARIABLE.match(name))
    values = {*_secrets, *(value for value in variables if len(value) >= _VARIABLE_CHARS_MIN)}
    values.update([quote(value, safe="") for value in values])
    return sorted(values, key=len, reverse=True)

"""Tables in object stores: Amazon S3 and its likes, Google Cloud Storage, Azure Blob Storage.

``storage_options`` are pylance's: the keys of the ``object_store`` library with or without prefix
(``aws_access_key_id`` or ``access_key_id``, ``endpoint``, ``allow_http``, ``account_name``, ``timeout``…), in any case,
plus Lance's own ``client_max_retries``, ``client_retry_timeout``, ``request_timeout`` and ``google_storage_token``. The
same mapping goes to the data-file codec unchanged. Steps:

1. Lower the case, drop doubles that agree, refuse those that don't.
2. Take out what is ours to translate (retries, token); the rest is the client's configuration.
3. Where the client does not know a key, leave it out, as pylance does.

Environment variables fill what is missing; for S3, also profiles (``AWS_PROFILE``, ``~/.aws``) if ``boto3`` is
installed. Clients are kept per bucket, options and environment, so tasks share connections.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from obstore.exceptions import BaseError, UnknownConfigurationKeyError
from obstore.store import AzureStore, GCSStore, S3Store

from tablewright.errors import InvalidRequest
from tablewright.redact import HIDDEN
from tablewright.storage.address import Address
from tablewright.storage.base import Location
from tablewright.storage.objects import ObjectStore
from tablewright.storage.options import is_on, without_prefix

__all__ = ["RemoteStore", "client_settings", "open_remote"]

_VARIABLES = ("aws_", "azure_", "google_", "http", "no_proxy", "timeout", "connect_timeout", "allow_", "proxy_")
_RETRIES_DEFAULT = 10
_RETRY_SECONDS_DEFAULT = 180
_NUMBER_MAX = 1_000_000_000
_UNKNOWN_KEY = re.compile(r"[Cc]onfiguration key: '([^']+)'")


class RemoteStore(ObjectStore):
    """A table's root in a bucket."""

    __slots__ = ("lists_in_order",)

    answers_slowly = True
    lists_in_order: bool

    def __init__(self, client: Any, key: str, location: Location, *, lists_in_order: bool) -> None:
        super().__init__(client, key, location)
        self.lists_in_order = lists_in_order


def open_remote(address: Address, options: dict[str, str]) -> RemoteStore:
    """The store at an object store's URL. Nothing is contacted yet."""
    client = _client(address.scheme, address.bucket, tuple(sorted(options.items())), _environment())
    express = address.scheme == "s3" and (address.bucket.endswith("--x-s3") or is_on(options, "s3_express"))
    return RemoteStore(client, address.key, Location(address.uri, options), lists_in_order=not express)


def client_settings(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Any], str | None]:
    """Pylance's options as (the client's configuration, its retry configuration, a bearer token for Google).

    >>> client_settings({"AWS_REGION": "eu-west-1", "region": "eu-west-1", "client_max_retries": "3"})[0]
    {'aws_region': 'eu-west-1'}
    """
    config: dict[str, str] = {}
    names: dict[str, str] = {}
    for given, value in options.items():
        key = "timeout" if given.lower() == "request_timeout" else given.lower()
        bare = without_prefix(key)
        earlier = names.setdefault(bare, key)
        if earlier in config and config[earlier] != value:
            raise InvalidRequest(f"storage_options give {bare!r} twice, with different values: keep one of them.")
        config[earlier] = value
    retry = {
        "max_retries": _number(config, "client_max_retries", _RETRIES_DEFAULT),
        "retry_timeout": timedelta(seconds=_number(config, "client_retry_timeout", _RETRY_SECONDS_DEFAULT)),
    }
    return config, retry, config.pop("google_storage_token", None)


def _environment() -> tuple[tuple[str, str], ...]:
    """What the process's environment says about object stores: other variables mean another client."""
    return tuple(sorted((key, value) for key, value in os.environ.items() if key.lower().startswith(_VARIABLES)))


@lru_cache(maxsize=64)
def _client(
    scheme: str, bucket: str, options: tuple[tuple[str, str], ...], environment: tuple[tuple[str, str], ...]
) -> Any:
    config, retry, token = client_settings(dict(options))
    where = f"{scheme}://{bucket}"
    while True:
        try:
            return _connect(scheme, bucket, config, retry, token)
        except UnknownConfigurationKeyError as error:
            match = _UNKNOWN_KEY.search(str(error))
            if match is None or config.pop(match[1], None) is None:
                raise _refused(where, error, config) from None
        except (BaseError, ValueError) as error:
            raise _refused(where, error, config) from None


def _connect(scheme: str, bucket: str, config: Any, retry: Any, token: str | None) -> Any:
    if scheme == "s3":
        return S3Store(bucket, config=config, retry_config=retry, credential_provider=_s3_profile(config))
    if scheme == "gs":
        return GCSStore(bucket, config=config, retry_config=retry, credential_provider=_google_token(token))
    if scheme == "az":
        return AzureStore(bucket, config=config, retry_config=retry)
    return AzureStore.from_url(f"abfss://{bucket}", config=config, retry_config=retry)


def _google_token(token: str | None) -> Any:
    return None if token is None else lambda: {"token": token, "expires_at": None}


def _s3_profile(config: Mapping[str, str]) -> Any:
    """Credentials of the user's AWS profile, if neither options nor environment name others."""
    environment = {key.lower().removeprefix("aws_") for key in os.environ if key.lower().startswith("aws_")}
    given = environment | {without_prefix(key) for key in config}
    direct = ("access_key_id", "skip_signature", "web_identity_token_file", "container_credentials_relative_uri")
    if any(key in given for key in direct):
        return None
    files = (Path.home() / ".aws" / name for name in ("credentials", "config"))
    if "profile" not in given and not any(file.exists() for file in files):
        return None
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        return None
    try:
        return Boto3CredentialProvider()
    except ValueError:
        return None  # The profile names no credentials: let the client look for those of the machine.


def _number(config: dict[str, str], key: str, default: int) -> int:
    text = config.pop(key, None)
    if text is None:
        return default
    if not text.isdecimal() or int(text) > _NUMBER_MAX:
        raise InvalidRequest(f"storage_options[{key!r}] must be a whole number from 0 to {_NUMBER_MAX}.")
    return int(text)


def _refused(where: str, error: Exception, config: Mapping[str, str]) -> InvalidRequest:
    """What the client says about its options, without any of their values: one may be a secret in the wrong place."""
    text = str(error).split("\n", 1)[0].strip().rstrip(".")
    for value in sorted(filter(None, config.values()), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", HIDDEN, text)
    return InvalidRequest(f"Cannot open {where}: {text}. Check storage_options.")

"""``storage_options``: which names are known, and the warning about the others.

Scripts carry one mapping through several tools, so a name that we don't know is no error; but a misspelled
``aws_regoin`` should not go unnoticed either. Each unknown name is warned about once per process, without its value.
Key and value are easily exchanged, so a name is shown only if it reads like one: close to a name that we know, or words
in lower case. Any other may be a secret.
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Iterable, Mapping

__all__ = ["is_off", "is_on", "unknown_options", "warn_of_unknown", "without_prefix"]

_PREFIXES = ("aws_", "azure_storage_", "azure_", "google_")

_S3 = """
    access_key_id bucket bucket_name checksum_algorithm conditional_put container_authorization_token_file
    container_credentials_full_uri container_credentials_relative_uri copy_if_not_exists default_region
    disable_bulk_delete disable_tagging endpoint endpoint_url endpoint_url_s3 endpoint_url_sts imdsv1_fallback
    metadata_endpoint region request_payer role_arn role_session_name s3_express secret_access_key
    server_side_encryption session_token skip_signature sse_bucket_key_enabled sse_customer_key_base64 sse_kms_key_id
    sts_endpoint token unsigned_payload virtual_hosted_style_request web_identity_token_file
"""
_GOOGLE = """
    application_credentials base_url bearer_token service_account service_account_key service_account_path
    google_storage_token
"""
_AZURE = """
    access_key account_key account_name authority_host authority_id client_id client_secret container_name
    credential_type encryption_key fabric_cluster_identifier fabric_session_token fabric_token_service_url
    fabric_workload_host federated_token_file identity_endpoint master_key msi_endpoint msi_resource_id object_id
    sas_key sas_token tenant_id use_azure_cli use_emulator use_fabric_endpoint
"""
_CLIENT = """
    allow_http allow_invalid_certificates client_max_retries client_retry_timeout connect_timeout
    default_content_type default_headers download_retry_count expires_at expires_at_millis http1_only http2_only
    http2_keep_alive_interval http2_keep_alive_timeout http2_keep_alive_while_idle http2_max_frame_size
    io_parallelism pool_idle_timeout pool_max_idle_per_host proxy_ca_certificate proxy_excludes proxy_url
    randomize_addresses read_timeout refresh_offset_millis request_timeout root_certificate timeout user_agent
"""
_OURS = "fsync"
_KNOWN = frozenset(" ".join((_S3, _GOOGLE, _AZURE, _CLIENT, _OURS)).split())

_NAME_CHARS_MAX = 40
_READS_LIKE_A_NAME = re.compile(r"[a-z]+[0-9]?[a-z]*(?:[._-][a-z]+[0-9]?[a-z]*)*")

_warned: set[str] = set()


def without_prefix(key: str) -> str:
    """A lower-case name without ``aws_`` and the like."""
    for prefix in _PREFIXES:
        if key.startswith(prefix) and key != "google_storage_token":
            return key.removeprefix(prefix)
    return key


def unknown_options(names: Iterable[str]) -> tuple[str, ...]:
    """The names that mean nothing for any store. ``headers.…`` are Lance's, for any header.

    >>> unknown_options(["AWS_REGION", "azure_storage_account_key", "aws_regoin", "headers.x-id"])
    ('aws_regoin',)
    """
    return tuple(
        name
        for name in names
        if without_prefix(name.lower()) not in _KNOWN and not name.lower().startswith(("headers.", "header."))
    )


def warn_of_unknown(names: Iterable[str]) -> None:
    """Warn once per name and process about names that mean nothing."""
    for name in unknown_options(names):
        if name in _warned:
            continue
        _warned.add(name)
        close = difflib.get_close_matches(without_prefix(name.lower()), _KNOWN, n=1)
        shown = repr(name) if close or _reads_like_a_name(name) else "an option whose name is not shown"
        hint = f" Did you mean {close[0]!r}?" if close else ""
        warnings.warn(f"storage_options has {shown}, which no store knows; it is ignored.{hint}", stacklevel=2)


def _reads_like_a_name(name: str) -> bool:
    return len(name) <= _NAME_CHARS_MAX and _READS_LIKE_A_NAME.fullmatch(name) is not None


def is_on(options: Mapping[str, str], name: str) -> bool:
    """Whether an option is "true"."""
    return _has(options, name, ("true", "1", "yes", "on"))


def is_off(options: Mapping[str, str], name: str) -> bool:
    """Whether an option is "false"."""
    return _has(options, name, ("false", "0", "no", "off"))


def _has(options: Mapping[str, str], name: str, values: tuple[str, ...]) -> bool:
    return any(without_prefix(key.lower()) == name and value.lower() in values for key, value in options.items())

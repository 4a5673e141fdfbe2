"""An S3 server on loopback, one per test process, and a fresh bucket per test."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.slow_proxy import SlowProxy, slow_proxy

_buckets = itertools.count()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _start(port: int) -> subprocess.Popen[bytes] | None:
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("moto_server.py")), "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/", timeout=5).close()
            return server
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    server.kill()
    server.wait()
    return None


@contextmanager
def s3_server() -> Iterator[str]:
    """A moto server; its address."""
    for _ in range(5):  # Another process may take the port between our look and the server's start.
        port = _free_port()
        server = _start(port)
        if server is not None:
            break
    else:
        raise RuntimeError("the moto server did not start")
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """The address of a moto server that lives as long as this test process."""
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def s3_options(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Storage options in pylance's words for the loopback server."""
    for name in [name for name in os.environ if name.upper().startswith("AWS_")]:
        monkeypatch.delenv(name)
    return options_for(s3_endpoint)


def options_for(endpoint: str) -> dict[str, str]:
    """Storage options in pylance's words for a loopback server."""
    return {
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
        "aws_region": "us-east-1",
        "aws_endpoint": endpoint,
        "allow_http": "true",
        "virtual_hosted_style_request": "false",
        "client_max_retries": "2",
        "TIMEOUT": "20s",
    }


@pytest.fixture
def s3_bucket(s3_options: dict[str, str]) -> str:
    """The name of a new, empty bucket."""
    return new_bucket(s3_options["aws_endpoint"])


def new_bucket(endpoint: str) -> str:
    """The name of a new, empty bucket."""
    import boto3

    name = f"bucket-{os.getpid()}-{next(_buckets)}"
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id="key",
        aws_secret_access_key="secret",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket=name)
    return name


@pytest.fixture
def slow_s3(s3_endpoint: str, s3_options: dict[str, str]) -> Iterator[tuple[SlowProxy, dict[str, str]]]:
    """A proxy in front of the server, which counts requests, and storage options that lead through it."""
    with slow_proxy(s3_endpoint) as proxy:
        yield proxy, {**s3_options, "aws_endpoint": proxy.endpoint}

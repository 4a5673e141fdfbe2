from __future__ import annotations

import re
import warnings
from pathlib import Path

import obstore
import pytest

from tablewright.storage import open_store, options
from tablewright.storage.options import is_off, is_on, unknown_options


@pytest.fixture(autouse=True)
def _nothing_warned_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "_warned", set())


@pytest.mark.parametrize("uri", ["s3://bucket/t", "memory://options", "a/path"])
def test_unknown_names_are_warned_about_once_without_values(uri: str, tmp_path: Path) -> None:
    given = {"aws_regoin": "planted-value", "skip_signature": "true"}
    with pytest.warns(UserWarning, match="'aws_regoin'.*Did you mean 'region'") as caught:
        open_store(uri, given)
    assert "planted-value" not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_store(uri, given)


def test_what_has_no_neighbour() -> None:
    with pytest.warns(UserWarning, match="'zzzz', which no store knows; it is ignored.$"):
        open_store("memory://options", {"zzzz": "1"})


@pytest.mark.parametrize(
    "name",
    ["SECRETKEYaaaa1111", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "0f1e2d3c4b5a69788796a5b4c3d2e1f0", "x" * 41],
)
def test_a_secret_given_as_the_name_is_not_shown(name: str) -> None:
    with pytest.warns(UserWarning, match="an option whose name is not shown, which no store knows") as caught:
        open_store("s3://bucket/t", {name: "1", "skip_signature": "true"})
    assert not any(name in str(warning.message) for warning in caught)


@pytest.mark.parametrize("name", ["AWS_REGOIN", "fs.s3a.committer.name", "my_option"])
def test_names_that_read_like_names_are_shown(name: str) -> None:
    with pytest.warns(UserWarning, match=f"storage_options has '{re.escape(name)}'"):
        open_store("memory://options", {name: "1"})


def test_every_name_of_the_clients_is_known() -> None:
    """The clients' type stubs list the names of their configuration."""
    stubs = Path(obstore.__file__).parent / "_store"
    for stub in ("_aws.pyi", "_gcs.pyi", "_azure.pyi", "_client.pyi"):
        names = re.findall(r"^    ([a-z_0-9]+): ", (stubs / stub).read_text(), re.MULTILINE)
        assert len(names) > 5
        assert unknown_options(names) == ()
    assert unknown_options(["AWS_ENDPOINT_URL", "azure_storage_account_key", "google_storage_token", "headers.x"]) == ()


def test_switches() -> None:
    assert is_off({"FSYNC": "False"}, "fsync") and not is_off({"fsync": "true"}, "fsync") and not is_off({}, "fsync")
    assert is_on({"aws_s3_express": "TRUE"}, "s3_express") and not is_on({}, "s3_express")

"""Secrets are planted in every option and every part of a URL; no text shows them."""

from __future__ import annotations

import io
import logging
import pickle
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from obstore.exceptions import GenericError

import tablewright as tw
from tablewright.data.codec_errors import reading, writing
from tablewright.errors import InvalidRequest, StorageError, TablewrightError
from tablewright.redact import redact, remember_secrets
from tablewright.storage import Location, open_store, options
from tablewright.storage.failures import cause_of, translate_error

PLANTED = "Pl4nted/Secret+Value=="


def shown_by(act: Callable[[], object]) -> str:
    """All that a person would see of ``act``: its error with causes and notes, warnings, logs."""
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                act()
                text = ""
            except Exception as error:
                lines = traceback.TracebackException.from_exception(error).format()
                text = f"{error!r} {error} {''.join(lines)} {vars(error)} {pickle.loads(pickle.dumps(error))!r}"
        return text + "".join(str(warning.message) for warning in caught) + log.getvalue()
    finally:
        logging.getLogger().removeHandler(handler)


@pytest.mark.parametrize("scheme", ["s3://bucket/t", "gs://bucket/t", "az://container/t"])
def test_no_option_is_shown(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "_warned", set())
    for key in sorted(options._KNOWN | {"no_such_option"}):
        given = {"client_max_retries": "0", "client_retry_timeout": "0", "allow_http": "true", key: PLANTED}
        text = shown_by(lambda given=given: open_store(scheme, given)) + repr(Location(scheme, given))
        assert PLANTED not in text, key


KEYS = ["access_key_id", "secret_access_key", "session_token", "account_key", "sas_token", "bearer_token"]


@pytest.mark.parametrize("key", KEYS)
def test_errors_of_a_store_show_no_credentials(key: str) -> None:
    """Nothing listens there: the client's errors hold the URL that it asked for."""
    given = {key: PLANTED, "access_key_id": "AKIA" + PLANTED, "secret_access_key": "s" + PLANTED, "account_name": "me"}
    given |= {"client_max_retries": "0", "allow_http": "true", "region": "eu", "endpoint": "http://127.0.0.1:1"}
    scheme = "az" if key.startswith(("account", "sas")) else "gs" if key == "bearer_token" else "s3"
    given = {name: value for name, value in given.items() if scheme == "s3" or name not in KEYS or name == key}
    for act in (
        lambda: open_store(f"{scheme}://bucket/t", given).get("a"),
        lambda: open_store(f"{scheme}://bucket/t", given).put_if_absent("a", b""),
        lambda: list(open_store(f"{scheme}://bucket/t", given).list("")),
        lambda: tw.dataset(f"{scheme}://bucket/t", storage_options=given),
        lambda: tw.write_dataset(pa.table({"a": [1]}), f"{scheme}://bucket/t", storage_options=given),
    ):
        if scheme == "gs":
            continue  # its address can't be changed: it would look for the real one
        text = shown_by(act)
        assert "Error" in text or "InvalidRequest" in text
        assert PLANTED not in text


@pytest.mark.parametrize(
    "uri",
    [
        f"s3://user:{PLANTED}@bucket/t",
        f"s3://{PLANTED.replace('/', '')}@bucket/t",
        f"s3://bucket/t?sig={PLANTED}",
        f"s3://bucket?sig={PLANTED}",
        f"az://container/t?sv=2&sig={PLANTED}&se=3",
        f"abfss://container:{PLANTED}@account.dfs.core.windows.net/t",
        f"abfss://container@account.dfs.core.windows.net/t?sig={PLANTED}",
        f"https://account.blob.core.windows.net/c/t?sv=1&sig={PLANTED}",
        f"ftp://me:{PLANTED}@host/t",
        f"ftp://me:a@{PLANTED}@host/t",
        f"file://me:{PLANTED}@host/t",
        f"s3:user:{PLANTED}@bucket/t",
        f"s3://user:{PLANTED}@bucket/t#x",
        f"gs://user:{PLANTED}@bucket/a//b",
        f"s3://bucket/t#{PLANTED}",
        f"s3:/user:{PLANTED}@bucket/t",
        f"gs:/bucket/t#{PLANTED}",
        f"abfss:/container@account.dfs.core.windows.net/t?sig={PLANTED}",
        f"memory://t?token={PLANTED}",
        f"memory://t/u#{PLANTED}",
    ],
)
def test_no_part_of_a_url_is_shown(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablewright.redact._secrets", OrderedDict())  # hidden for what it looks like
    for act in (lambda: tw.dataset(uri), lambda: tw.write_dataset(pa.table({"a": [1]}), uri)):
        text = shown_by(act)
        assert "InvalidRequest" in text
        assert "Pl4nted" not in text, text


ANSWERS = [
    f"PUT https://a.blob.core.windows.net/c/x?sv=1&sig={PLANTED}&se=2 failed",
    f"GET http://me:{PLANTED}@proxy:3128/ refused",
    f"<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>{PLANTED}</AWSAccessKeyId></Error>",
    f"<StringToSign>AWS4-HMAC-SHA256 {PLANTED}</StringToSign><SignatureProvided>{PLANTED}</SignatureProvided>",
    f'header "authorization": "Bearer {PLANTED}" was refused',
    f"Authorization: AWS4-HMAC-SHA256 Credential={PLANTED}/2026, Signature={PLANTED}",
    f'{{"access_token": "{PLANTED}", "password": "{PLANTED}"}}',
    f"account_key={PLANTED};x=1",
    f"X-Amz-Security-Token={PLANTED}",
    f"HEAD http://host/bucket/x%3Fsig%3D{PLANTED} failed",
    f"Could not look at s3://bucket/x%3fkind={PLANTED}",
    f"Could not look at s3://bucket/x#{PLANTED}",
    f"Could not open s3:/user:{PLANTED}@bucket/x",
]


@pytest.mark.parametrize("answer", ANSWERS)
def test_answers_of_libraries(answer: str) -> None:
    location = Location("s3://bucket/t")

    def raised(kind: type[Exception]) -> None:
        try:
            raise kind(answer)
        except kind as error:
            raise translate_error(error, "read", location, "x") from cause_of(error)

    def codec(what: Callable[[str], object], kind: type[Exception]) -> None:
        with what("s3://bucket/t/x"):  # type: ignore[attr-defined]
            raise kind(answer)

    texts = [shown_by(lambda kind=kind: raised(kind)) for kind in (GenericError, OSError, FileNotFoundError)]
    texts += [shown_by(lambda what=what: codec(what, OSError)) for what in (reading, writing)]
    texts.append(shown_by(lambda: raise_ours(answer)))
    for text in texts:
        assert PLANTED not in text.replace("answer = ", ""), text


def raise_ours(answer: str) -> None:
    raise InvalidRequest(f"Something refused: {answer}")


def test_values_that_were_given_are_hidden_anywhere() -> None:
    remember_secrets({"secret_access_key": "very-own-secret", "region": "eu-central-1"})
    assert redact("a very-own-secret of eu-central-1") == "a *** of eu-central-1"
    assert "very-own-secret" not in str(StorageError("it said very-own-secret"))


def test_environment_variables_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "environment-secret")
    assert redact("key environment-secret") == "key ***"


@pytest.mark.parametrize(
    "text",
    [
        "There is no object at s3://bucket/t/a%20b.",
        "abfss://container@account.dfs.core.windows.net/t",
        "column 'token' = 5, password is not null",
        "/data/me:you@home/t?x=1",
        "There is no object at s3://bucket/t/a%23b.",
        "C:/data/me:you@home",
        "See /data/t#1",
        "Expected token: )",
        'Set storage_options={"region": …}.',
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text
    assert str(TablewrightError(text)) == text


def test_plans_and_tasks_print_no_options(tmp_path: Path) -> None:
    """A table on disk with options that it does not need: every value that travels prints."""
    given = {"secret_access_key": PLANTED, "sas_token": PLANTED}
    ds = tw.write_dataset(pa.table({"a": [1, 2, 3]}), tmp_path / "t", storage_options=given)
    scanner = ds.scanner(filter="a > 1")
    merge = ds.merge_insert("a").when_matched_update_all().when_not_matched_insert_all()
    rows = pa.table({"a": [1]})
    texts = [
        repr(ds),
        str(ds.uri),
        repr(ds._snapshot),
        repr(ds._world),
        repr(ds._snapshot.location),
        scanner.explain_plan(verbose=True),
        scanner.analyze_plan(),
        repr(scanner),
        merge.explain_plan(rows.schema),
        repr(merge),
        repr(ds.get_fragments()),
    ]
    assert all(texts)
    assert not [text for text in texts if PLANTED in text]
    assert pickle.loads(pickle.dumps(Location("s3://b", given))).storage_options == given


def test_a_base_path_shows_no_credentials() -> None:
    shown = repr(tw.DatasetBasePath(f"s3://me:{PLANTED}@bucket/t?sig={PLANTED}", "archive", id=3))
    assert "Pl4nted" not in shown and "archive" in shown

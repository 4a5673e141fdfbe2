"""What ``describe`` is given: a whole table, a data file, or any other file of a table.

1. A place with versions below it is a table.
2. A name that ends in ``.lance`` is a data file or a file of an index. It is opened and not read as a whole.
3. Everything else is read, and recognised by its name or its bytes (:mod:`.files`).

Tests: tests/unit/cli/test_app.py
"""

from __future__ import annotations

import os

from tablewright.describe.files import describe_file
from tablewright.describe.lance_files import describe_data, manifest_facts, manifest_rows
from tablewright.describe.report import Report
from tablewright.errors import InvalidRequest
from tablewright.format.manifest import Manifest
from tablewright.snapshot.files import read_manifest
from tablewright.snapshot.locate import list_versions
from tablewright.snapshot.refs import list_branches, list_tags
from tablewright.storage import open_store
from tablewright.storage.base import ObjectNotFound, Store

__all__ = ["describe_place"]


def describe_place(path: str, kind: str | None = None) -> Report:
    """What is at an address.

    >>> import tablewright as tw
    >>> _ = tw.write_dataset({"id": [1, 2]}, "memory://describe-example")
    >>> report = describe_place("memory://describe-example")
    >>> report.title, dict(report.facts)["rows"]
    ('Lance table', 2)
    """
    if "://" not in path:
        path = os.path.normpath(path)
    place, _, name = path.rstrip("/").rpartition("/")
    parent = place or ("/" if path.startswith("/") else ".")
    if kind is None and (table := _table(path)) is not None:
        return table
    if name in ("", ".", "..") or parent.endswith(":/"):
        raise InvalidRequest(f"There is no table at {path}.")
    store = open_store(parent)
    try:
        if kind is None and name.endswith(".lance"):
            store.head(name)  # a missing file is none of a damaged table
            return describe_data(store, name)
        return describe_file(store.get(name), path, kind)
    except ObjectNotFound:
        if next(iter(open_store(path).list("")), None) is not None:
            raise InvalidRequest(
                f"{path} is a directory without versions of a Lance table. For a Paimon table name one of its files, "
                "such as snapshot/snapshot-1."
            ) from None
        raise InvalidRequest(f"There is no file and no table at {path}.") from None


def _table(path: str) -> Report | None:
    store = open_store(path)
    versions = list_versions(store)
    if not versions:
        return None
    manifest = read_manifest(store, versions[-1]).manifest
    return Report(
        title="Lance table",
        facts=(
            *manifest_facts(manifest),
            ("versions", f"{len(versions)}, from {versions[0].version} to {versions[-1].version}"),
            ("data files", _data_files(manifest)),
            ("tags", _tags(store)),
            ("branches", ", ".join(sorted(list_branches(store))) or "none"),
            ("schema", "; ".join(f"{field.name}: {field.type}" for field in manifest.schema.to_arrow())),
        ),
        columns=("fragment", "rows", "deleted", "files"),
        rows=manifest_rows(manifest),
    )


def _data_files(manifest: Manifest) -> str:
    files = [file for fragment in manifest.fragments for file in fragment.files]
    sizes = [file.file_size_bytes or 0 for file in files]
    return f"{len(files)} of version {manifest.data_storage_version}, {sum(sizes):,} bytes"


def _tags(store: Store) -> str:
    return ", ".join(f"{name} ({tag.version})" for name, tag in sorted(list_tags(store).items())) or "none"

"""Which files of a table cleanup may remove: their kind, and the name under which a manifest refers to them.

What is not listed here is never touched: tags, branches, the version hint, detached versions, unfinished manifests of
local writers (``….manifest#1``), and everything of a shape that we don't know.

=============================  ===========  ================================================================
path                           kind         a manifest names
=============================  ===========  ================================================================
``data/{name}.lance``          data         the file
``data/{stem}/{id}.blob``      blob         ``data/{stem}.lance``, with which its bytes live and die
``data/.tmp{name}``            data         nothing: a writer that died on a local disk left it
``_deletions/{name}.arrow``    deletion     the file; also ``.bin``
``_transactions/{name}.txn``   transaction  the file
``_indices/{uuid}/…``          index        the directory; not ``part-{uuid}.lance`` in it
``{one of these}#{number}``    the same     nothing: a writer that was killed on a local disk left it
=============================  ===========  ================================================================

Format: ``docs/format/table.md#directory-layout``.
"""

from __future__ import annotations

import re

from tablewright.format.naming import DATA_DIR, DELETIONS_DIR, INDICES_DIR, TRANSACTIONS_DIR

__all__ = ["BLOB", "DATA", "DELETION", "DIRECTORIES", "INDEX", "MANIFEST", "TRANSACTION", "classify"]

MANIFEST, DATA, BLOB = "manifest", "data", "blob"
DELETION, TRANSACTION, INDEX = "deletion", "transaction", "index"

DIRECTORIES = (TRANSACTIONS_DIR, DELETIONS_DIR, INDICES_DIR, DATA_DIR)
"""The directories that are searched for files that no version needs."""

_DATA = re.compile(rf"{DATA_DIR}/(?:[^/]+\.lance|\.tmp[^/]*)")
_BLOB = re.compile(rf"({DATA_DIR}/[^/]+)/[^/]+\.blob")
_DELETION = re.compile(rf"{DELETIONS_DIR}/[^/]+\.(?:arrow|bin)")
_TRANSACTION = re.compile(rf"{TRANSACTIONS_DIR}/[^/]+\.txn")
_UNFINISHED = re.compile(r"(.*[^#])#\d+")
_INDEX = re.compile(rf"({INDICES_DIR}/[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})/.+")


def classify(path: str) -> tuple[str, str] | None:
    """The kind of a file and the name that manifests know it by; ``None`` if cleanup must not touch it.

    >>> classify("data/0001.lance"), classify("data/0001/00000001.blob")
    (('data', 'data/0001.lance'), ('blob', 'data/0001.lance'))
    >>> classify("_indices/00000000-0000-0000-0000-000000000001/index.idx")
    ('index', '_indices/00000000-0000-0000-0000-000000000001')
    >>> classify("_deletions/0-1-7.arrow#123"), classify("data/notes.txt")
    (('deletion', '_deletions/0-1-7.arrow#123'), None)
    """
    if (unfinished := _UNFINISHED.fullmatch(path)) is not None:
        of = classify(unfinished[1])
        return None if of is None else (of[0], path)
    if _DATA.fullmatch(path):
        return DATA, path
    if match := _BLOB.fullmatch(path):
        return BLOB, f"{match[1]}.lance"
    if _DELETION.fullmatch(path):
        return DELETION, path
    if _TRANSACTION.fullmatch(path):
        return TRANSACTION, path
    if match := _INDEX.fullmatch(path):
        return INDEX, match[1]
    return None

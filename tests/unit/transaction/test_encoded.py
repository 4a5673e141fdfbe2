"""Row lineage that the manifest has is not stored twice."""

from __future__ import annotations

import numpy as np
import pytest

from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.row_ids import RowIdSequence, encode_row_ids
from tablewright.format.transaction import (
    Append,
    Delete,
    Operation,
    Rewrite,
    RewriteGroup,
    Transaction,
    decode_transaction,
    encode_transaction,
)
from tablewright.transaction.encoded import encoded

ROWS = 4_000
IDS = encode_row_ids(RowIdSequence.from_values(np.random.default_rng(0).permutation(ROWS)))
FILE = DataFile(path="a.lance", fields=(0,), column_indices=(0,), file_major_version=2, file_minor_version=2)
LONG = Fragment(id=3, files=(FILE,), physical_rows=ROWS, row_ids=IDS)
SHORT = Fragment(id=3, files=(FILE,), physical_rows=ROWS)


def transaction(operation: Operation) -> Transaction:
    return Transaction(read_version=1, uuid="0-1", operation=operation)


@pytest.mark.parametrize("kind", ["delete", "rewrite"])
def test_long_lineage_is_left_out(kind: str) -> None:
    group = RewriteGroup(old_fragments=(LONG,), new_fragments=(LONG,))
    long = Delete(updated_fragments=(LONG,)) if kind == "delete" else Rewrite(groups=(group,))
    bare = RewriteGroup(old_fragments=(SHORT,), new_fragments=(SHORT,))
    short = Delete(updated_fragments=(SHORT,)) if kind == "delete" else Rewrite(groups=(bare,))
    assert decode_transaction(encoded(transaction(long), 100), "t").operation == short
    assert encoded(transaction(long), 10**6) == encode_transaction(transaction(long))


def test_new_rows_keep_theirs() -> None:
    append = transaction(Append(fragments=(LONG,)))
    assert encoded(append, 0) == encode_transaction(append)

"""Apache Paimon tables: read them, look into their index files, delete from them, assign keys to their buckets.

>>> import tablewright.paimon as paimon
>>> paimon.open("memory://no-table")
Traceback (most recent call last):
tablewright.paimon.metadata.NotPaimon: There is no Paimon table at memory://no-table...
"""

from tablewright.paimon.assign import BucketAssignment, assign_buckets
from tablewright.paimon.delete import DeleteResult
from tablewright.paimon.format.bucket_index import BucketIndex, BucketOptions, HashFile
from tablewright.paimon.format.key_hash import fixed_buckets, hash_keys
from tablewright.paimon.format.snapshot import Snapshot
from tablewright.paimon.opening import open
from tablewright.paimon.table import FileVector, PaimonTable, TableFile

__all__ = [
    "BucketAssignment",
    "BucketIndex",
    "BucketOptions",
    "DeleteResult",
    "FileVector",
    "HashFile",
    "PaimonTable",
    "Snapshot",
    "TableFile",
    "assign_buckets",
    "fixed_buckets",
    "hash_keys",
    "open",
]

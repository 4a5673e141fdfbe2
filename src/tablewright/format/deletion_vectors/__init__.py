"""Deletion vectors, a codec per format: Lance's deletion files, Paimon's index files, Delta Lake's, Iceberg's Puffin.

All of them encode one value, :class:`~tablewright.format.row_set.RowSet`. Format: ``docs/format/deletion-vectors.md``.
"""

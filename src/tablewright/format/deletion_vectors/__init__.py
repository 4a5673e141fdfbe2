"""Deletion vectors of other formats, a codec each: Paimon's index files, Delta Lake's, Iceberg's Puffin files.

All of them decode to the value that Lance's deletion files hold too. Format: ``docs/format/deletion-vectors.md``.
"""

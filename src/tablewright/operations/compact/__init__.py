"""Compaction: fragments that are small, or hold much that is dead, are written again as few full ones.

1. :mod:`.options`: what the caller asks for, and what the table's config says.
2. :mod:`.plan`: which fragments are rewritten together, decided from the manifest alone.
3. :mod:`.task`: one group, read in order and written without its dead rows and columns.
4. :mod:`.groups`: what others did meanwhile: rows become deletion files of the new fragments, columns are stale.
5. :mod:`.carry`: columns that others wrote meanwhile, written beside the new files.
6. :mod:`.metrics`: what was replaced by what, and what it cost.
"""

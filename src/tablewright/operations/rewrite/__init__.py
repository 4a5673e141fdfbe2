"""What the verbs share that change rows of existing fragments.

- :mod:`.costs`: rows or columns, by the bytes that either way would write.
- :mod:`.groups`: which fragments' rows move together.
- :mod:`.move`: rows written again to new fragments (:mod:`.row_order`), hidden where they were (:mod:`.hide`).
- :mod:`.column_values`: old and new values of a column put together.
- :mod:`.file_version`: the version of the new data files.
"""

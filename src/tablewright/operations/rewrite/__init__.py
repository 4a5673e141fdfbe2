"""What the verbs share that change rows of existing fragments.

1. *weigh*: rows or columns, by the bytes that either way would write (:mod:`.costs`); which fragments' rows move
   together (:mod:`.groups`, :mod:`.limits`); the version of the new data files (:mod:`.file_version`).
2. *write*: rows move to new fragments (:mod:`.move`), in an order that keeps row ids short (:mod:`.row_order`);
   columns change in place (:mod:`.patch`, :mod:`.column_values`); rows go (:mod:`.hide`). A verb says which rows of a
   fragment it changes (:mod:`.fragment_change`), and gives their new values as ``NewRows`` or ``NewColumns``.
3. *finish* (pure): one Update transaction, and the rows that it touches (:mod:`.finish`).
"""

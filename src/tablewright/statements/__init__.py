"""SQL statements over Lance tables: ``tw.sql(spark, "…")``.

1. *parse* (pure): a text becomes a frozen value (:mod:`.values`). Statements that name our tables are ours, all others
   are Spark's. ``sqlglot`` reads them (:mod:`.parse`, :mod:`.merges`, :mod:`.schemas`), a few short ones are read word
   by word (:mod:`.words`).
2. Expressions over single rows become Lance's dialect (:mod:`.expressions`); queries stay text, with places for our
   tables (:mod:`.queries`), and are computed by Spark.
3. *run* (:mod:`.run`): a value becomes calls of the Python API, and its result a DataFrame (:mod:`.frames`).

What can't be done is refused with its place in the text (:mod:`.place`), before anything changes.
"""

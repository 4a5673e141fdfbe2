"""The change feed: which rows came, changed and went between two versions, and what they looked like.

``span.py`` finds the versions. ``pairs.py`` finds the rows by metadata alone, with ``touched.py`` and ``runs.py``.
``columns.py`` and ``fields.py`` show old rows in the columns of the last version. ``plan.py`` decides, ``task.py``
reads.
"""

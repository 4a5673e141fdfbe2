"""``batch_udf``: a Python function that makes new columns, with what is known about it beforehand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from tablewright.errors import WrongType

__all__ = ["BatchUDF", "batch_udf"]


class BatchUDF:
    """A function over record batches for :meth:`LanceDataset.add_columns`. Calling it calls the function itself."""

    def __init__(
        self,
        func: Callable[[pa.RecordBatch], Any],
        output_schema: pa.Schema | None = None,
        checkpoint_file: str | Path | None = None,
    ) -> None:
        if not callable(func):
            raise WrongType(f"A batch_udf is made of a function, not {func!r}.")
        if output_schema is not None and not isinstance(output_schema, pa.Schema):
            raise WrongType(f"output_schema must be a pyarrow.Schema, not {output_schema!r}.")
        if checkpoint_file is not None and not isinstance(checkpoint_file, str | Path):
            raise WrongType(f"checkpoint_file must be a path, not {checkpoint_file!r}.")
        self.func, self.output_schema, self.checkpoint_file = func, output_schema, checkpoint_file

    def __call__(self, batch: pa.RecordBatch) -> Any:
        return self.func(batch)

    def __repr__(self) -> str:
        return f"BatchUDF({getattr(self.func, '__name__', self.func)!s})"


def batch_udf(
    output_schema: pa.Schema | None = None, checkpoint_file: str | Path | None = None
) -> Callable[[Callable[[pa.RecordBatch], Any]], BatchUDF]:
    """Make a function usable with ``add_columns``. It gets record batches and returns one, or a pandas DataFrame.

    Without ``output_schema`` the function is called once with a first row to learn what it returns. With
    ``checkpoint_file`` (a path on this machine) finished batches are kept in that file until the columns are
    committed: a run that died goes on where it was.

    >>> import pyarrow as pa
    >>> import tablewright as tw
    >>> @tw.batch_udf(output_schema=pa.schema({"length": pa.int64()}))
    ... def length(batch):
    ...     return pa.record_batch({"length": [len(text) for text in batch["text"].to_pylist()]})
    >>> ds = tw.write_dataset({"text": ["one", "three"]}, "memory://batch-udf-example")
    >>> ds.add_columns(length)
    >>> ds.to_table().to_pydict()
    {'text': ['one', 'three'], 'length': [3, 5]}
    """

    def decorated(func: Callable[[pa.RecordBatch], Any]) -> BatchUDF:
        return BatchUDF(func, output_schema, checkpoint_file)

    return decorated

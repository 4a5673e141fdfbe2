"""Settings of a table as ``LanceDataset`` offers them: config, and metadata of the table, the schema and fields.

Tests: ``tests/unit/api/test_dataset.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tablewright.api.auto_cleanup import commits
from tablewright.api.pinned import Pinned, move, table_of
from tablewright.checks import listed
from tablewright.errors import InvalidRequest
from tablewright.format.transaction import MapUpdate, UpdateConfig
from tablewright.jobs.commit import commit_operation

__all__ = ["SettingsVerbs"]


class SettingsVerbs(Pinned):
    """The part of a dataset that reads and changes settings."""

    @property
    def metadata(self) -> dict[str, str]:
        """Table metadata."""
        return dict(self._table.snapshot.manifest.table_metadata)

    @property
    def schema_metadata(self) -> dict[str, str]:
        """Schema metadata as text."""
        return {key: value.decode() for key, value in self._table.snapshot.schema.metadata.items()}

    def config(self) -> dict[str, str]:
        """Table config."""
        return dict(self._table.snapshot.manifest.config)

    @commits
    def update_config(
        self, values: Mapping[str, str | None], replace: bool = False, *, skip_auto_cleanup: bool = False
    ) -> dict[str, str]:
        """Set config keys (``None`` removes one) and return the new state."""
        _update_maps(self, values, "config", replacing=replace)
        return self.config()

    @commits
    def delete_config_keys(self, keys: Iterable[str], *, skip_auto_cleanup: bool = False) -> None:
        """Remove config keys."""
        self.update_config(dict.fromkeys(listed(keys, "keys")))

    @commits
    def update_metadata(
        self, values: Mapping[str, str | None], replace: bool = False, *, skip_auto_cleanup: bool = False
    ) -> dict[str, str]:
        """Set table metadata (``None`` removes a key) and return the new state."""
        _update_maps(self, values, "table_metadata", replacing=replace)
        return self.metadata

    @commits
    def update_schema_metadata(
        self, values: Mapping[str, str | None], replace: bool = False, *, skip_auto_cleanup: bool = False
    ) -> dict[str, str]:
        """Set schema metadata (``None`` removes a key) and return the new state."""
        _update_maps(self, values, "schema_metadata", replacing=replace)
        return self.schema_metadata

    @commits
    def update_field_metadata(
        self, values: Mapping[str, Mapping[str, str | None]], replace: bool = False, *, skip_auto_cleanup: bool = False
    ) -> None:
        """Set metadata of fields, by column path."""
        schema = self._table.snapshot.schema
        for entries in _checked_texts(values, nested=True).values():
            _checked_texts(entries)
        updates = {schema.resolve(path).id: MapUpdate(entries=dict(v), replace=replace) for path, v in values.items()}
        move(self, commit_operation(self._table, UpdateConfig(field_metadata_updates=updates)))


def _update_maps(dataset: Pinned, updates: Mapping[str, str | None], which: str, *, replacing: bool) -> None:
    """Commit a change of ``config``, ``table_metadata`` or ``schema_metadata``; ``None`` removes a key."""
    update = MapUpdate(entries=_checked_texts(updates), replace=replacing)
    none = UpdateConfig()
    match which:
        case "config":
            operation = replace(none, config_updates=update)
        case "table_metadata":
            operation = replace(none, table_metadata_updates=update)
        case _:
            operation = replace(none, schema_metadata_updates=update)
    move(dataset, commit_operation(table_of(dataset), operation))


def _checked_texts(entries: Any, *, nested: bool = False) -> dict[str, Any]:
    """A map of texts to texts (or ``None``, which removes a key; or maps, if ``nested``), or an error that says so."""
    allowed = Mapping if nested else str | None
    if not isinstance(entries, Mapping):
        raise InvalidRequest(f"Metadata is a dict of texts, not {entries!r}.")
    for key, value in entries.items():
        if not isinstance(key, str) or not isinstance(value, allowed):
            raise InvalidRequest(f"Metadata keys and values must be text, got {key!r}: {value!r}.")
    return dict(entries)

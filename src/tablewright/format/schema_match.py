"""Whether rows of one schema may be appended to a table of another, in Lance's words.

The rules are those of Lance 14.0.2, found by experiment (the tests ask it again):

===================================  ==========================================================================
accepted                             columns and struct members in any order; nullable columns and members left
                                     out, also within lists (they read as null); other schema or field metadata;
                                     other nullability (a null in a non-null column is refused when it is written);
                                     views for their plain types; names and nullability inside fixed-size lists
refused                              unknown columns or members; non-null ones left out; any other type, also
                                     int32 for int64, large_string for string, UTC for +00:00, plain values for a
                                     dictionary and the other way round; another extension type, or none
===================================  ==========================================================================

The question is whether rows go in as they are. Which types our entries cast on the way is another one
(``data/fit_types.py``), and so is whether a column may be cast when asked for (``expressions/casts.py``).

Deliberate difference: the name of a list's item and the names below a map mean nothing, and writers do not agree on
them (``item``, ``element``, ``array``). Lance compares them; we look at the place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tablewright.format.field import EXTENSION_METADATA, EXTENSION_NAME, TOP_LEVEL, Children, Field, children_by_parent
from tablewright.format.logical_types import MAP, fixed_list_of_structs, is_list

__all__ = ["differences"]


def differences(expected: Sequence[Field], actual: Sequence[Field]) -> tuple[str, ...]:
    """Every reason why ``actual`` does not fit; columns left out and unknown come first, as one sentence."""
    return tuple(_below(TOP_LEVEL, TOP_LEVEL, children_by_parent(expected), children_by_parent(actual), ""))


def _below(table_id: int, data_id: int, table: Children, data: Children, prefix: str) -> Iterator[str]:
    wanted = {node.name: node for node in table.get(table_id, ())}
    given = {node.name: node for node in data.get(data_id, ())}
    missing = [prefix + name for name, node in wanted.items() if name not in given and not node.nullable]
    unexpected = [prefix + name for name in given if name not in wanted]
    if missing or unexpected:
        yield f"fields did not match, missing=[{', '.join(missing)}], unexpected=[{', '.join(unexpected)}]"
    for name, node in given.items():
        if name in wanted:
            yield from _of_node(wanted[name], node, table, data, prefix + name)


def _of_node(
    wanted: Field, given: Field, table: Children, data: Children, path: str, *, is_entries: bool = False
) -> Iterator[str]:
    if wanted.logical_type != given.logical_type:
        yield f"`{path}` should have type {wanted.logical_type} but type was {given.logical_type}"
    elif _extension(wanted) != _extension(given):
        yield f"`{path}` should have {_words(_extension(wanted))} but it was {_words(_extension(given))}"
    if is_entries or (_is_repeated(wanted) and _is_repeated(given)):
        below: list[str] = []
        for ours, theirs in zip(table.get(wanted.id, ()), data.get(given.id, ()), strict=False):
            is_map = wanted.logical_type == MAP
            below += _of_node(ours, theirs, table, data, f"{path}.{ours.name}", is_entries=is_map)
    else:
        below = list(_below(wanted.id, given.id, table, data, f"{path}."))
    if below:
        yield f"`{path}` had mismatched children: {', '.join(below)}"


def _is_repeated(node: Field) -> bool:
    kind = node.logical_type
    return is_list(kind) or kind == MAP or fixed_list_of_structs(kind) is not None


def _extension(node: Field) -> tuple[str, str]:
    metadata = node.arrow_metadata
    name, details = metadata.get(EXTENSION_NAME, b""), metadata.get(EXTENSION_METADATA, b"")
    return name.decode(errors="replace"), details.decode(errors="replace") if name else ""


def _words(extension: tuple[str, str]) -> str:
    name, details = extension
    if not name:
        return "no extension type"
    return f"extension type {name} ({details})" if details else f"extension type {name}"

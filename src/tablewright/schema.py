"""A shop window under pylance's name: schemas with field ids."""

from tablewright.api.schema import LanceField, LanceSchema

__all__ = ["LanceField", "LanceSchema"]

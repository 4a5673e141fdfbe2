"""Re-exports under pylance's module name: schemas with field ids."""

from tablewright.api.schema import LanceField, LanceSchema

__all__ = ["LanceField", "LanceSchema"]

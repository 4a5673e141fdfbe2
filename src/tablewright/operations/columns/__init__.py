"""Column evolution: new columns, casts, and changes of the schema alone."""

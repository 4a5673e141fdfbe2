"""The source of a merge: fitted to the table, kept for reading it again, shared with workers, one row per key."""

"""Merge insert as a job: the source while it runs, the attempts, and the columns that it adds first."""

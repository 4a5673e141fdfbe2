"""Which rows of the table meet which rows of the source: the strategy, its stages and tasks, and what they find."""

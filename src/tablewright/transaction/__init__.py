"""Commits: conflict table, rebase, apply (the next manifest), and the commit loop."""

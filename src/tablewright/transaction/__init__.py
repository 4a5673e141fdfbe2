"""Who wins, and what the next version is: conflict table, rebase, apply and the commit loop."""

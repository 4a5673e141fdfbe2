"""One verb each: its options, plan, run and finish."""

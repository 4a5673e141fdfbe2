"""Running verbs: one attempt loop (plan, run, commit, again or tidy up), and one small client for each verb."""

"""What BITMAP, LABEL_LIST and NGRAM share: a column of keys and, for each key, the set of rows that have it."""

"""Keys of a merge: which columns they are, values as numbers, and the table in which they are looked up."""

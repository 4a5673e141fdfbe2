"""Rows to data files and back: the only room that knows the file codec."""

"""Rows to data files and back: the only package that uses the file codec."""

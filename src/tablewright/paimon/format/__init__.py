"""Paimon's files as values: bytes in, frozen values out, no I/O."""

"""NGRAM: for every three letters or digits in a row the set of rows whose text has them. Answers are rechecked."""

from tablewright.indices.ngram.index import answers, build, estimate, remap, search, supported

__all__ = ["answers", "build", "estimate", "remap", "search", "supported"]

"""Fragments: the values, their bytes, the lazy list that a manifest holds, and their JSON form."""

from tablewright.format.fragment.codec import (
    data_file_from_message,
    data_file_to_message,
    decode_fragment,
    encode_fragment,
    fragment_from_message,
    fragment_to_message,
)
from tablewright.format.fragment.external import SequenceFile, with_external
from tablewright.format.fragment.facts import FragmentFacts
from tablewright.format.fragment.sequence import FragmentList
from tablewright.format.fragment.text import fragment_from_json, fragment_to_json
from tablewright.format.fragment.value import (
    PHYSICAL_ROWS_MAX,
    TOMBSTONE,
    DataFile,
    DeletionFile,
    DeletionFileType,
    Fragment,
    problems_of_fragment,
)

__all__ = [
    "PHYSICAL_ROWS_MAX",
    "TOMBSTONE",
    "DataFile",
    "DeletionFile",
    "DeletionFileType",
    "Fragment",
    "FragmentFacts",
    "FragmentList",
    "SequenceFile",
    "data_file_from_message",
    "data_file_to_message",
    "decode_fragment",
    "encode_fragment",
    "fragment_from_json",
    "fragment_from_message",
    "fragment_to_json",
    "fragment_to_message",
    "problems_of_fragment",
    "with_external",
]

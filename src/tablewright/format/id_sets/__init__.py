"""Many sets of row ids at once: bytes of a whole column of an index to numbers and back, without a loop over sets."""

from tablewright.format.id_sets.bitmaps import Bitmaps
from tablewright.format.id_sets.forms import ADDRESS_MAP, TREEMAP, Form, join_sets, split_sets
from tablewright.format.id_sets.pack import pack
from tablewright.format.id_sets.sets import count_sets, decode_sets, encode_sets, unite_sets
from tablewright.format.id_sets.unpack import unpack

__all__ = [
    "ADDRESS_MAP",
    "TREEMAP",
    "Bitmaps",
    "Form",
    "count_sets",
    "decode_sets",
    "encode_sets",
    "join_sets",
    "pack",
    "split_sets",
    "unite_sets",
    "unpack",
]

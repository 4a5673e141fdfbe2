"""What pylance's datasets have and ours do not: every such name says so."""

from __future__ import annotations

import pickle

import lance
import pytest

import tablewright as tw
from tablewright.errors import UnsupportedFeature


def _public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.fixture
def ds() -> tw.LanceDataset:
    return tw.write_dataset({"id": [1]}, "memory://not-offered", mode="overwrite")


@pytest.mark.parametrize("name", sorted(_public(lance.LanceDataset) - _public(tw.LanceDataset)))
def test_a_name_of_pylance_says_that_it_is_missing(ds: tw.LanceDataset, name: str) -> None:
    with pytest.raises(UnsupportedFeature, match=f"{name} is pylance's and not part of this release: .*"):
        getattr(ds, name)
    assert not hasattr(ds, name)


def test_other_names_are_unknown_as_ever(ds: tw.LanceDataset) -> None:
    with pytest.raises(AttributeError, match="'LanceDataset' object has no attribute 'to_tabel'"):
        ds.to_tabel  # noqa: B018
    assert pickle.loads(pickle.dumps(ds)).version == ds.version

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.differential.paimon.referee import Pypaimon


@pytest.fixture(scope="session")
def _process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pypaimon]:
    referee = Pypaimon(tmp_path_factory.mktemp("pypaimon"))
    yield referee
    referee.close()


@pytest.fixture(scope="module")
def pypaimon(_process: Pypaimon, request: pytest.FixtureRequest) -> Pypaimon:
    """pypaimon with a database for each module; the tests of one take tables of different names."""
    _process.use(request.module.__name__.rpartition(".")[2])
    return _process

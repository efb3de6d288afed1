"""What every test of clusters begins without."""

from collections.abc import Iterator

import pytest

from clusters.metrics import sources


@pytest.fixture(autouse=True)
def without_rotations() -> Iterator[None]:
    """Begin sweeps with the first query, whatever a test before has left."""
    sources._first_queries.clear()
    yield
    sources._first_queries.clear()

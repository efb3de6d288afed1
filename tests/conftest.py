"""What every test of the project shares: the markers. Fixtures live beside the tests that need them."""

import pytest

from tests.cast import Cast, make_cast


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "controllers: needs a cluster whose garbage collector and namespace controller run (MUSTER_TEST_CONTROLLERS=1)"
    )


@pytest.fixture
def cast(db: None) -> Cast:
    """Alice, Bob, Vera and Mallory, their two projects, and a cluster that does not answer."""
    return make_cast()

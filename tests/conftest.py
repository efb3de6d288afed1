"""What every test of the project shares: the markers. Fixtures live beside the tests that need them."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "controllers: needs a cluster whose garbage collector and namespace controller run (MUSTER_TEST_CONTROLLERS=1)"
    )

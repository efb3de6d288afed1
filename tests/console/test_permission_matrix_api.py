"""The API's half of the permission matrix: `test_permission_matrix` says what it is."""

import pytest

from tests.console.address_world import World
from tests.console.permission_subjects import (
    ASKED,
    Subject,
    permission_world,
    wrongly_let_in_or_refused,
)

__all__ = ["permission_world"]

pytestmark = pytest.mark.timeout(1200)


@pytest.mark.sweep
@pytest.mark.parametrize("name", [name for name in ASKED if name.startswith("api-")])
def test_every_role_in_every_scope_is_let_in_as_the_table_says(
    permission_world: tuple[World, list[Subject]], db: None, name: str
) -> None:
    wrong = wrongly_let_in_or_refused(*permission_world, name)
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in ASKED if name.startswith("api-")])
def test_everybody_who_may_is_let_in(
    permission_world: tuple[World, list[Subject]], db: None, name: str
) -> None:
    wrong = wrongly_let_in_or_refused(*permission_world, name, with_all=True)
    assert not wrong, "\n".join(wrong)

"""Service accounts: made, rotated and deleted by those who manage the project."""

import pytest
from django.http import Http404

from console.errors import Clash, NotAllowed, UserError
from projects import actions
from projects.models import ServiceAccount
from projects.permissions import VIEWER
from tests.cast import Cast


def test_its_secret_is_told_once_and_not_kept(cast: Cast) -> None:
    account, secret = actions.create_service_account(
        cast.team_a, "ci runner", by=cast.alice, role=VIEWER
    )
    assert actions.is_secret_of(account, secret)
    assert not actions.is_secret_of(account, secret + "x")
    assert secret not in str(ServiceAccount.objects.values().get())
    assert account.user.access_rules.get().role == VIEWER
    assert (account.user.is_service, account.user.has_usable_password()) == (True, False)


def test_only_who_manages_the_project_may(cast: Cast) -> None:
    with pytest.raises(NotAllowed):
        actions.create_service_account(cast.team_a, "ci", by=cast.bob)
    with pytest.raises(Http404):
        actions.create_service_account(cast.team_a, "ci", by=cast.mallory)
    account, _ = actions.create_service_account(cast.team_a, "ci", by=cast.alice)
    for action in (actions.rotate_secret, actions.delete_service_account):
        with pytest.raises(Http404):
            action(account, cast.mallory)
    assert ServiceAccount.objects.get() == account


def test_a_name_is_given_once_in_a_project_and_again_after_deletion(cast: Cast) -> None:
    account, _ = actions.create_service_account(cast.team_a, "ci", by=cast.alice)
    with pytest.raises(Clash) as refused:
        actions.create_service_account(cast.team_a, "ci", by=cast.alice)
    assert refused.value.field == "name"
    user = account.user
    actions.delete_service_account(account, cast.alice)
    user.refresh_from_db()
    assert (
        user.is_active,
        user.access_rules.exists(),
        user.username.startswith("team-a/ci (deleted "),
    ) == (False, False, True)
    actions.create_service_account(cast.team_a, "ci", by=cast.alice)


@pytest.mark.parametrize("name", ["", " ci", "a" * 41, "a/b", "a\x00", "é"])
def test_a_name_that_cannot_be_is_refused(cast: Cast, name: str) -> None:
    with pytest.raises(UserError) as refused:
        actions.create_service_account(cast.team_a, name, by=cast.alice)
    assert refused.value.field == "name"

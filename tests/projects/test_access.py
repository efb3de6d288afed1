"""The one door."""

import pytest
from django.http import Http404

from console.errors import NotAllowed
from projects.access import Action, actionable, require
from projects.models import Project
from tests.cast import Cast


def test_a_member_may_submit_and_not_manage(cast: Cast) -> None:
    require(cast.bob, Action.SUBMIT, cast.team_a.pk)
    with pytest.raises(NotAllowed, match="must be its administrator"):
        require(cast.bob, Action.MANAGE, cast.team_a.pk)


def test_another_teams_project_is_not_there(cast: Cast) -> None:
    with pytest.raises(Http404):
        require(cast.mallory, Action.VIEW, cast.team_a.pk)


def test_everybody_sees_their_own_projects(cast: Cast) -> None:
    assert set(Project.objects.visible_to(cast.alice)) == {cast.team_a, cast.team_b}
    assert list(Project.objects.visible_to(cast.vera)) == [cast.team_a]
    assert list(actionable(cast.vera, Action.SUBMIT)) == []

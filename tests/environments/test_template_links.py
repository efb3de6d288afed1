"""Templates keep the assets that they name, and nobody keeps what is others' by naming it."""

import pytest

from environments import actions
from environments.models import Link, Template
from projects.models import AccessRule
from projects.permissions import PROJECT
from projects.scopes import project_scope
from tests.api.calling import Caller
from tests.cast import Cast
from tests.environments.assets import BY_NAME

pytestmark = pytest.mark.django_db
PASSWORD = BY_NAME["credential-password"]


def test_a_template_keeps_no_asset_that_its_writer_does_not_see(cast: Cast) -> None:
    credential = PASSWORD.make(project_scope(cast.team_a), cast.alice, "theirs")
    variables = [{"name": "TOKEN", "value": str(credential.pk)}]
    template = {
        "meta": {"name": "mine", "scope": "project", "projectId": cast.team_b.pk},
        "spec": {"image": "any", "environmentVariables": variables},
    }
    Caller(cast.mallory)("POST", "/workload-templates", template, 202)
    assert not Link.objects.exists()
    actions.remove(credential, cast.alice)


def test_a_link_stays_when_somebody_changes_the_template_who_does_not_see_its_asset(
    cast: Cast,
) -> None:
    scope, elsewhere = project_scope(cast.team_a), project_scope(cast.team_b)
    credential = PASSWORD.make(elsewhere, cast.alice, "elsewhere")
    values = {"name": "mine", "form": {"setup": {"x": [str(credential.pk)]}}}
    template = actions.create(Template, values, scope=scope, user=cast.alice)
    AccessRule.objects.create(user=cast.bob, project=cast.team_a, role=PROJECT)
    actions.change(template, {"name": "other"}, scope=scope, user=cast.bob)
    assert list(Link.objects.values_list("asset", flat=True)) == [credential.pk]
    actions.change(template, {"form": {}}, scope=scope, user=cast.bob)
    assert not Link.objects.exists()

"""A credential that one person takes while another deletes it: one of them is refused, in words."""

from typing import Any

import pytest
from django.db import connection

from console.errors import Clash
from environments import actions
from environments.models import Asset, Credential, DataSource
from projects import departments
from projects.models import Department, User
from projects.scopes import TENANT, Scope, department_scope, project_scope
from tests.cast import Cast
from tests.environments.assets import BY_NAME

pytestmark = pytest.mark.django_db


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_changed", [False, True])
@pytest.mark.parametrize("loss", ["deleted", "narrowed"])
def test_a_data_source_whose_credential_goes_while_it_is_saved_is_refused(
    cast: Cast, loss: str, is_changed: bool
) -> None:
    """A form finds the credential good, and then somebody is faster."""
    scope = project_scope(cast.team_a)
    credential = BY_NAME["credential-password"].make(TENANT, cast.alice, "login")
    source = BY_NAME["data-source-git"].make(scope, cast.alice, "theirs")
    chosen = {"credential": Credential.objects.get(pk=credential.pk)}
    if loss == "deleted":
        actions.remove(credential, cast.alice)
    else:
        actions.change(credential, {}, scope=project_scope(cast.team_b), user=cast.alice)
    with pytest.raises(Clash, match="The credential login was meanwhile deleted") as refusal:
        if is_changed:
            actions.change(source, chosen, scope=scope, user=cast.alice)
        else:
            values = {"name": "new", "kind": "git", "origin": {}, "path": "/code", **chosen}
            actions.create(DataSource, values, scope=scope, user=cast.alice)
    assert refusal.value.field == "credential"
    assert [(each.name, each.credential) for each in DataSource.objects.all()] == [("theirs", None)]


def take_before_deletion(credential: Asset, scope: Scope, user: User) -> Any:
    """Have a data source take the credential once it was found to be used by nothing."""
    done: list[str] = []

    def run(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith('INSERT INTO "projects_auditentry"') and not done:
            done.append(sql)
            source = BY_NAME["data-source-git"].make(scope, user, "late")
            DataSource.objects.filter(pk=source.pk).update(credential=credential.pk)
        return execute(sql, params, many, context)

    return connection.execute_wrapper(run)


def test_a_credential_that_is_taken_while_it_is_deleted_stays(cast: Cast) -> None:
    scope = project_scope(cast.team_a)
    credential = BY_NAME["credential-password"].make(scope, cast.alice, "login")
    with (
        take_before_deletion(credential, scope, cast.alice),
        pytest.raises(Clash, match="cannot be deleted, because it is used by data source late"),
    ):
        actions.remove(credential, cast.alice)
    assert list(Credential.objects.values_list("name", flat=True)) == ["login"]


def test_credentials_that_are_taken_while_their_scope_is_deleted_stay(cast: Cast) -> None:
    other = Department.objects.create(name="other")
    credential = BY_NAME["credential-password"].make(department_scope(other), cast.alice, "login")
    with (
        take_before_deletion(credential, project_scope(cast.team_a), cast.alice),
        pytest.raises(Clash, match="somebody chose one of its credentials"),
    ):
        departments.delete(other, cast.alice)
    assert Department.objects.filter(name="other").exists()
    assert list(Credential.objects.values_list("name", flat=True)) == ["login"]

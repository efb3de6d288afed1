"""An asset for a scope that is deleted at the same moment is refused, in words."""

from collections.abc import Callable

import pytest
from django.test import Client

from clusters import actions as cluster_actions
from console.errors import Clash
from environments import actions
from environments.models import Asset
from projects import access, departments, project_removal
from projects.models import Department
from projects.scopes import TENANT, Scope, cluster_scope, department_scope, project_scope
from tests.cast import Cast
from tests.environments.assets import SAMPLES, Sample

pytestmark = pytest.mark.django_db(transaction=True)

ByDeleting = Callable[[str], Scope]


@pytest.fixture
def delete_while_asked(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> ByDeleting:
    """Have a scope of a level deleted as soon as somebody is found to be permitted to write."""

    def prepare(level: str) -> Scope:
        department = Department.objects.create(name="passing")
        scopes: dict[str, tuple[Scope, Callable[[], None]]] = {
            "project": (
                project_scope(cast.team_b),
                lambda: project_removal.remove_project(cast.team_b, cast.alice),
            ),
            "department": (
                department_scope(department),
                lambda: departments.delete(department, cast.alice),
            ),
            "cluster": (
                cluster_scope(cast.cluster.pk),
                lambda: cluster_actions.remove(cast.cluster, cast.alice, force=True),
            ),
        }
        scope, delete = scopes[level]
        require = access.require

        def require_and_delete(*arguments: object) -> None:
            require(*arguments)  # type: ignore[arg-type]
            monkeypatch.setattr(access, "require", require)
            if arguments[-1] == scope:
                delete()
            else:
                monkeypatch.setattr(access, "require", require_and_delete)

        monkeypatch.setattr(access, "require", require_and_delete)
        return scope

    return prepare


def count_rows(model: type[Asset], scope: Scope) -> int:
    return model.objects.at(scope).count()


@pytest.mark.parametrize("level", ["project", "department", "cluster"])
@pytest.mark.parametrize("sample", [SAMPLES[0], SAMPLES[-1]], ids=str)
def test_a_new_asset_is_refused(
    cast: Cast, delete_while_asked: ByDeleting, sample: Sample, level: str
) -> None:
    scope = delete_while_asked(level)
    with pytest.raises(Clash, match=f"The {level} was deleted a moment ago") as refusal:
        sample.make(scope, cast.alice)
    assert refusal.value.field == "scope"
    assert count_rows(sample.form.model, scope) == 0


@pytest.mark.parametrize("level", ["project", "department", "cluster"])
def test_an_asset_does_not_move_there(
    cast: Cast, delete_while_asked: ByDeleting, level: str
) -> None:
    asset = SAMPLES[0].make(TENANT, cast.alice)
    scope = delete_while_asked(level)
    with pytest.raises(Clash, match=f"The {level} was deleted a moment ago"):
        actions.change(asset, {}, scope=scope, user=cast.alice)
    asset.refresh_from_db()
    assert asset.scope == TENANT


def test_the_form_says_so(cast: Cast, delete_while_asked: ByDeleting) -> None:
    scope = delete_while_asked("department")
    client = Client()
    client.force_login(cast.alice)
    sample = SAMPLES[0]
    answer = client.post(sample.new, sample.typed | {"name": "mine", "scope": str(scope)})
    assert answer.status_code in (409, 422)
    assert "The department was deleted a moment ago" in answer.content.decode()

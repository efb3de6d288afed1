"""The page of roles: the matrix, and custom roles made, changed, copied and deleted."""

import re

import pytest
from django.test import Client

from console.edit_conflicts import sign_start
from console.errors import Clash, UserError
from projects import custom_roles, granting
from projects.api.bodies import ROLE_IDS
from projects.models import AuditEntry, CustomRole
from projects.permissions import ROLES, VIEWER, Entity
from projects.scopes import project_scope
from tests.cast import Cast


@pytest.fixture
def alice(client: Client, cast: Cast) -> Client:
    client.force_login(cast.alice)
    return client


def create_role(cast: Cast, name: str = "Curator", *permissions: str) -> CustomRole:
    return custom_roles.create(
        name, "Keeps things tidy", permissions or ("templates:delete",), by=cast.alice
    )


def text(client: Client, at: str) -> str:
    answer = client.get(at)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_matrix_shows_every_role_and_every_kind_of_thing(client: Client, cast: Cast) -> None:
    client.force_login(cast.vera)
    page = text(client, "/roles")
    assert all(role.label in page for role in ROLES.values())
    assert all(entity.label[1:] in page for entity in Entity)
    row = re.search(r"Workloads</th>(.*?)</tr>", page, re.S)
    assert row
    cells = re.findall(r'screen-reader">(.*?)</span>', row[1])
    assert len(cells) == len(ROLES)
    assert cells[list(ROLES).index(VIEWER)].split() == ["view"]
    assert cells[0].split() == ["view", "create", "edit", "delete"]


def test_custom_roles_are_shown_to_who_may_give_them_only(client: Client, cast: Cast) -> None:
    create_role(cast)
    for user, is_shown in ((cast.mallory, True), (cast.vera, False)):
        client.force_login(user)
        assert ("Curator" in text(client, "/roles")) is is_shown
        assert ("Curator" in text(client, "/roles?format=csv")) is is_shown
        assert 'href="/roles/new"' not in text(client, "/roles")


def test_a_custom_role_is_made_with_what_its_permissions_need(alice: Client, cast: Cast) -> None:
    sent = {"name": "Launcher", "description": "", "permissions": ["workloads:create"]}
    assert alice.post("/roles/new", sent).status_code == 302
    role = CustomRole.objects.get()
    assert {"workloads:view", "projects:view", "environments:view"} <= set(role.permissions)
    entry = AuditEntry.objects.get(event="create", entity="role")
    assert entry.after is not None
    assert entry.after["permissions"] == role.permissions


def test_the_form_has_the_order_of_the_matrix(alice: Client, cast: Cast) -> None:
    rows = r'<th scope="row" class="mu-name">([^<]+)</th>'
    form, page = (re.findall(rows, text(alice, at)) for at in ("/roles/new", "/roles"))
    assert form == page
    assert len(form) == len(Entity)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"name": "curator"}, "There is a role curator already"),
        ({"name": "Viewer"}, "There is a role Viewer already"),
        ({"name": ""}, "required"),
        ({"permissions": []}, "Choose at least one permission"),
        ({"permissions": ["moon:create"]}, "not for you to choose"),
        ({"permissions": ["audit:delete"]}, "Choose at least one permission"),
    ],
)
def test_what_cannot_be_a_role_is_told(
    alice: Client, cast: Cast, fields: dict[str, str], problem: str
) -> None:
    create_role(cast, "curator")
    answer = alice.post(
        "/roles/new",
        {"name": "Other", "description": "", "permissions": ["projects:view"]} | fields,
    )
    assert (answer.status_code, CustomRole.objects.count()) == (422, 1)
    assert problem in answer.content.decode()


@pytest.mark.parametrize("name", [" ", "x\ny\u200b", "\u202ereweiV", "Viewer\u200b"])
def test_a_role_has_a_name_that_can_be_read(cast: Cast, name: str) -> None:
    with pytest.raises(UserError, match="a name of visible characters") as refusal:
        create_role(cast, name)
    assert refusal.value.field == "name"


@pytest.mark.parametrize("name", ["System administrator ", "System\u00a0 administrator"])
def test_a_role_has_no_name_that_looks_like_a_predefined_one(cast: Cast, name: str) -> None:
    with pytest.raises(Clash, match="There is a role System administrator already"):
        create_role(cast, name)


def test_a_copy_begins_with_what_the_other_permits(alice: Client, cast: Cast) -> None:
    for key in ("viewer", f"custom:{create_role(cast).pk}"):
        page = text(alice, f"/roles/new?copy={key}")
        assert "(copy)" in page
        assert re.search(r'value="templates:view"[^>]*checked', page)
    assert not re.search(
        r'value="workloads:create"[^>]*checked', text(alice, "/roles/new?copy=viewer")
    )
    assert alice.get("/roles/new?copy=nonsense").status_code == 422


def test_a_change_holds_for_everybody_who_has_the_role(alice: Client, cast: Cast) -> None:
    role = create_role(cast)
    granting.grant_role(
        f"custom:{role.pk}", to=cast.vera, scope=project_scope(cast.team_b), by=cast.alice
    )
    sent = {"name": "Curator", "description": "", "permissions": ["environments:view"]}
    started = re.search(
        r'name="started_from" value="([^"]+)"', text(alice, f"/roles/{role.pk}/edit")
    )
    assert started
    assert (
        alice.post(f"/roles/{role.pk}/edit", sent | {"started_from": started[1]}).status_code == 302
    )
    rule = cast.vera.access_rules.get(project=cast.team_b)
    assert "templates:delete" not in {str(each) for each in rule.permissions}
    noted = AuditEntry.objects.get(event="update", entity="role")
    assert "templates:delete" in noted.before["permissions"]  # type: ignore[index]


def test_the_second_of_two_administrators_is_told_what_the_first_changed(
    alice: Client, cast: Cast
) -> None:
    role = create_role(cast)
    old = sign_start(
        role.version,
        {"name": [role.name], "description": [role.description], "permissions": role.permissions},
    )
    custom_roles.edit(role.pk, "Curator", "Was changed first", role.permissions, by=cast.alice)
    sent = {
        "name": "Custodian",
        "description": "Was changed second",
        "permissions": role.permissions,
        "started_from": old,
    }
    answer = alice.post(f"/roles/{role.pk}/edit", sent)
    page = answer.content.decode()
    assert answer.status_code == 409
    for words in (
        "Description",
        "Keeps things tidy",
        "Was changed first",
        "by alice",
        'value="Custodian"',
    ):
        assert words in page
    again = re.search(r'name="started_from" value="([^"]+)"', page)
    assert again
    assert (
        alice.post(f"/roles/{role.pk}/edit", sent | {"started_from": again[1]}).status_code == 302
    )
    assert CustomRole.objects.get().name == "Custodian"


def test_one_that_is_in_use_is_not_deleted_and_says_by_whom(alice: Client, cast: Cast) -> None:
    role = create_role(cast)
    rule = granting.grant_role(
        f"custom:{role.pk}", to=cast.vera, scope=project_scope(cast.team_b), by=cast.alice
    )
    for answer in (alice.get(f"/roles/{role.pk}/delete"), alice.post(f"/roles/{role.pk}/delete")):
        assert "Curator is the role of vera in Project team-b" in answer.content.decode()
    rule.delete()
    assert alice.post(f"/roles/{role.pk}/delete").status_code == 302
    assert not CustomRole.objects.exists()
    assert AuditEntry.objects.get(event="delete", entity="role").entity_name == "Curator"


def test_every_predefined_role_has_a_number_of_its_own_in_the_api() -> None:
    assert set(ROLE_IDS) == set(ROLES)
    assert len(set(ROLE_IDS.values())) == len(ROLE_IDS)

"""Nobody becomes more than they are: not by a rule, a role, a key, an account or a form, on pages
or over REST.
"""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import certifi
import pytest
from django.test import Client
from django.utils import timezone

from clusters.models import ConnectionWay
from projects import actions, custom_roles, granting, personal_keys, tokens
from projects.models import (
    AccessRule,
    CustomRole,
    Department,
    PersonalKey,
    ServiceAccount,
    User,
)
from projects.permissions import DEPARTMENT, L1, MANAGER, PROJECT, ROLES, SYSTEM, VIEWER
from projects.scopes import TENANT, cluster_scope, department_scope, project_scope
from tests.api.calling import Caller
from tests.cast import PASSWORD, Cast
from tests.projects.editing import edit


@pytest.fixture
def mallory(client: Client, cast: Cast) -> Client:
    client.force_login(cast.mallory)
    return client


def rights() -> list[Any]:
    people = list(
        User.objects.order_by("pk").values_list(
            "username", "is_superuser", "is_staff", "is_active", "is_service", "password"
        )
    )
    return [
        people,
        list(AccessRule.objects.order_by("pk").values_list("key")),
        list(CustomRole.objects.values_list("name", "permissions")),
    ]


def helpdesk(cast: Cast, *permissions: str) -> User:
    """Somebody of a custom role in the whole of Muster, who is no system administrator."""
    role = custom_roles.create("Helpdesk", "", permissions, by=cast.alice)
    user = User.objects.create(username="hanna", password=cast.bob.password)
    granting.grant_role(f"custom:{role.pk}", to=user, scope=TENANT, by=cast.alice)
    return User.objects.get(pk=user.pk)


# A role above one's own.

ABOVE = [
    (SYSTEM, "tenant"),
    (SYSTEM, "here"),
    (DEPARTMENT, "department"),
    (DEPARTMENT, "here"),
    (PROJECT, "other"),
    (VIEWER, "tenant"),
]


@pytest.mark.parametrize(("role", "where"), ABOVE)
def test_a_project_administrator_gives_nothing_above_or_beside(
    mallory: Client, cast: Cast, role: str, where: str
) -> None:
    scope = {
        "tenant": TENANT,
        "here": project_scope(cast.team_b),
        "department": department_scope(cast.research),
        "other": project_scope(cast.team_a),
    }[where]
    before = rights()
    sent = {
        "kind": "user",
        "subjects": "mallory",
        "role": role,
        "scope": str(scope),
        "name": "robot",
        "expires": "",
    }
    for at in ("/access-rules/new", "/service-accounts/new"):
        assert mallory.post(at, sent).status_code in (403, 422)
    body = {
        "subjectType": "user",
        "subjectId": "mallory",
        "roleId": role,
        "scopeType": scope.level,
        "scopeId": str(scope.id or ""),
    }
    by_rest = Caller(cast.mallory)
    assert by_rest.raw("POST", "/authorization/access-rules", body).status_code in (400, 403, 404)
    assert by_rest.raw("POST", "/service-accounts", body | {"name": "robot"}).status_code in (
        400,
        403,
        404,
    )
    mallory.post(f"/projects/{cast.team_b.pk}/people", {"username": "bob", "role": role})
    mallory.post(f"/projects/{cast.team_b.pk}/service-accounts", {"name": "robot", "role": role})
    if (role, where) not in ((PROJECT, "other"), (VIEWER, "tenant")):
        assert rights() == before
    assert not ServiceAccount.objects.exclude(project=cast.team_b).exists()
    assert {each.scope for each in AccessRule.objects.filter(user=cast.mallory)} == {
        project_scope(cast.team_b)
    }


def test_nobody_makes_a_custom_role_of_more_than_they_may(client: Client, cast: Cast) -> None:
    hanna = helpdesk(cast, "roles:create", "roles:edit", "users:view", "access-rules:create")
    client.force_login(hanna)
    sent = {"name": "Mine", "description": "", "permissions": ["users:edit"]}
    assert "which you may not do there yourself" in client.post("/roles/new", sent).content.decode()
    own = CustomRole.objects.get()
    before = rights()
    for more in (["users:edit"], ["roles:create", "clusters:delete"]):
        assert client.post(f"/roles/{own.pk}/edit", sent | {"permissions": more}).status_code in (
            409,
            422,
        )
        body = {
            "name": "Mine",
            "permissions": [
                {"resourceType": each.split(":")[0], "actions": [each.split(":")[1]]}
                for each in more
            ],
        }
        assert Caller(hanna).raw("POST", "/authorization/roles", body).status_code == 403
        assert (
            Caller(hanna).raw("PUT", f"/authorization/roles/custom:{own.pk}", body).status_code
            == 403
        )
    assert rights() == before
    assert (
        client.post(
            "/access-rules/new",
            {"kind": "user", "subjects": "hanna", "role": SYSTEM, "scope": "tenant"},
        ).status_code
        == 422
    )


def test_a_role_of_somebody_greater_is_not_theirs_to_change(client: Client, cast: Cast) -> None:
    hanna = helpdesk(cast, "roles:edit", "users:view")
    greater = custom_roles.create("Greater", "", ["clusters:edit"], by=cast.alice)
    body = {"name": "Greater", "permissions": [{"resourceType": "users", "actions": ["read"]}]}
    assert (
        Caller(hanna).raw("PUT", f"/authorization/roles/custom:{greater.pk}", body).status_code
        == 403
    )


@pytest.mark.parametrize("path", ["/roles/new", "/roles/{role}/edit", "/roles/{role}/delete"])
def test_only_who_may_handles_roles(mallory: Client, cast: Cast, path: str) -> None:
    role = custom_roles.create("Some", "", ["projects:view"], by=cast.alice)
    before = rights()
    for method in (mallory.get, mallory.post):
        assert method(path.format(role=role.pk)).status_code == 403
    assert rights() == before


# Becoming somebody greater.


def test_whoever_handles_users_does_not_get_in_as_an_administrator(
    client: Client, cast: Cast
) -> None:
    hanna = helpdesk(cast, "users:create", "users:edit", "users:delete", "access-rules:create")
    client.force_login(hanna)
    before = rights()
    for action in ("reset", "look-as", "active"):
        assert client.post(f"/users/{cast.alice.pk}/{action}", {"active": "0"}).status_code == 403
        assert client.post(f"/users/{cast.bob.pk}/{action}", {"active": "0"}).status_code == 403
    assert (
        Caller(hanna).raw("PATCH", f"/users/{cast.alice.pk}", {"isActive": False}).status_code
        == 403
    )
    assert rights() == before
    assert (
        client.post("/users/new", {"username": "helper", "is_superuser": "on"}).status_code == 200
    )
    assert not User.objects.get(username="helper").rights.everything
    assert "is_superuser" not in client.get("/users/new").content.decode()


def test_the_secret_of_an_account_that_may_more_is_not_made_anew(
    mallory: Client, cast: Cast
) -> None:
    account, secret = actions.create_service_account(cast.team_b, "robot", by=cast.mallory)
    granting.grant_role(VIEWER, to=account.user, scope=project_scope(cast.team_a), by=cast.alice)
    for path in (
        f"/service-accounts/{account.pk}/secret",
        f"/projects/{cast.team_b.pk}/service-accounts/{account.pk}/secret",
    ):
        assert mallory.post(path).status_code == 403
    assert (
        Caller(cast.mallory).raw("POST", f"/service-accounts/{account.pk}/secret").status_code
        == 403
    )
    assert actions.is_secret_of(ServiceAccount.objects.get(), secret)


# Mass assignment.

EXTRA: dict[str, Any] = {
    "is_superuser": True,
    "isSuperuser": True,
    "is_staff": True,
    "is_service": True,
    "password": "x",
    "user": 1,
    "key": "user:1",
    "created_by": 1,
    "client_id": "pk-1",
    "secret_hash": "x",
    "clientId": "sa-1",
    "clientSecret": "x",
    "role": SYSTEM,
    "groups": [1],
}


def test_no_form_and_no_body_sets_what_is_not_in_it(client: Client, cast: Cast) -> None:
    alice = Caller(cast.alice)
    alice("POST", "/users", EXTRA | {"username": "carla"}, 201)
    alice("PATCH", f"/users/{cast.bob.pk}", EXTRA | {"isActive": True})
    Caller(cast.bob)(
        "POST", "/access-keys", EXTRA | {"name": "mine", "user_id": cast.alice.pk}, 201
    )
    assert list(User.objects.filter(is_superuser=True)) == [cast.alice]
    carla = User.objects.get(username="carla")
    assert (
        carla.is_staff,
        carla.is_service,
        carla.check_password("x"),
        carla.rights.everything,
    ) == (False, False, False, frozenset())
    key = PersonalKey.objects.get()
    assert (key.user, key.client_id == "pk-1", key.secret_hash == "x") == (cast.bob, False, False)
    client.force_login(cast.alice)
    client.post(
        "/users/new", {"username": "carlo", "is_staff": "on", "is_active": "", "password": "x"}
    )
    carlo = User.objects.get(username="carlo")
    assert (carlo.is_staff, carlo.is_active) == (False, True)


def test_a_rule_cannot_be_put_under_another_name_or_owner(cast: Cast) -> None:
    body = {
        "subjectType": "user",
        "subjectId": "vera",
        "roleId": VIEWER,
        "scopeType": "project",
        "scopeId": str(cast.team_b.pk),
    }
    answer = Caller(cast.mallory)(
        "POST", "/authorization/access-rules", body | EXTRA | {"project_id": cast.team_a.pk}, 201
    )
    rule = AccessRule.objects.get(pk=answer["id"])
    assert (rule.role, rule.project, rule.created_by, rule.user) == (
        VIEWER,
        cast.team_b,
        cast.mallory,
        cast.vera,
    )


# Somebody stays in charge.


def test_the_last_system_administrator_stays_whichever_way_it_is_tried(
    client: Client, cast: Cast
) -> None:
    User.objects.filter(pk=cast.alice.pk).update(is_superuser=False)
    rule = AccessRule.objects.create(user=cast.alice, role=SYSTEM)
    client.force_login(cast.alice)
    assert client.post(f"/access-rules/{rule.pk}/delete").status_code == 422
    assert client.post(f"/users/{cast.alice.pk}/active", {"active": "0"}).status_code == 422
    alice = Caller(User.objects.get(pk=cast.alice.pk))
    alice("DELETE", f"/authorization/access-rules/{rule.pk}", status=400)
    alice("PATCH", f"/users/{cast.alice.pk}", {"isActive": False}, 400)
    assert AccessRule.objects.filter(pk=rule.pk).exists()
    granting.grant_role(SYSTEM, to=cast.bob, scope=TENANT, by=User.objects.get(pk=cast.alice.pk))
    assert client.post(f"/access-rules/{rule.pk}/delete").status_code == 302


def test_an_administrator_made_on_the_page_is_one_by_a_rule(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    client.post("/users/new", {"username": "carla", "is_superuser": "on"})
    carla = User.objects.get(username="carla")
    assert (carla.is_superuser, carla.access_rules.get().role) == (False, SYSTEM)


# What ends with somebody.


def token(client_id: str, secret: str, status: int = 200) -> Any:
    return Caller()(
        "POST",
        "/token",
        {"grantType": "client_credentials", "clientId": client_id, "clientSecret": secret},
        status,
    )


def test_who_is_deactivated_has_no_keys_and_no_tokens(client: Client, cast: Cast) -> None:
    key, secret = personal_keys.create_key("laptop", owner=cast.bob)
    caller = Caller(token=token(key.client_id, secret)["accessToken"])
    assert [each["name"] for each in caller("GET", "/org-unit/projects")["projects"]] == ["team-a"]
    client.force_login(cast.alice)
    client.post(f"/users/{cast.bob.pk}/active", {"active": "0"})
    caller("GET", "/org-unit/projects", status=401)
    assert "not right" in token(key.client_id, secret, 403)["message"]


@pytest.mark.parametrize("way", ["rotated", "deleted", "expired"])
def test_a_token_ends_with_the_key_that_it_was_got_with_and_no_other(cast: Cast, way: str) -> None:
    key, secret = personal_keys.create_key("laptop", owner=cast.bob)
    other, other_secret = personal_keys.create_key("cluster", owner=cast.bob)
    ended, going_on = (
        Caller(token=token(*pair)["accessToken"])
        for pair in ((key.client_id, secret), (other.client_id, other_secret))
    )
    if way == "rotated":
        personal_keys.rotate_secret(key)
    elif way == "deleted":
        personal_keys.revoke_key(key, cast.bob)
    else:
        PersonalKey.objects.filter(pk=key.pk).update(expires_at=timezone.now())
    ended("GET", "/access-keys", status=401)
    assert going_on("GET", "/access-keys")
    assert Caller(cast.bob)("GET", "/access-keys")
    token(key.client_id, secret, 403)


def test_an_expired_service_account_gets_no_token_and_is_told_so(cast: Cast) -> None:
    account, secret = actions.create_service_account(
        cast.team_a, "old", by=cast.alice, expires_at=timezone.now() + timedelta(seconds=60)
    )
    answer = token(account.client_id, secret)
    assert answer["expiresIn"] <= 60
    program = Caller(token=answer["accessToken"])
    program("GET", "/clusters")
    ServiceAccount.objects.update(expires_at=timezone.now() - timedelta(days=1))
    assert "old has expired" in program("GET", "/clusters", status=401)["message"]
    assert "service account old expired on" in token(account.client_id, secret, 403)["message"]
    assert "expired" not in token(account.client_id, "wrong", 403)["message"]


def test_a_key_makes_no_keys_and_a_service_account_has_none(cast: Cast) -> None:
    key, secret = personal_keys.create_key(
        "laptop", owner=cast.bob, expires_at=timezone.now() + timedelta(days=1)
    )
    lasting, _ = personal_keys.create_key("cluster", owner=cast.bob)
    program = Caller(token=token(key.client_id, secret)["accessToken"])
    assert "makes no keys" in program("POST", "/access-keys", {"name": "forever"}, 403)["message"]
    program("POST", f"/access-keys/{lasting.pk}/secret", status=403)
    assert program("POST", f"/access-keys/{key.pk}/secret")["expiresAt"] is not None
    account, secret = actions.create_service_account(cast.team_a, "robot", by=cast.alice)
    robot = Caller(token=token(account.client_id, secret)["accessToken"])
    assert (
        "has a secret of its own" in robot("POST", "/access-keys", {"name": "more"}, 403)["message"]
    )


def test_somebody_elses_key_is_not_there(client: Client, cast: Cast) -> None:
    key, secret = personal_keys.create_key("laptop", owner=cast.bob)
    client.force_login(cast.alice)
    for action in ("secret", "delete"):
        assert client.post(f"/account/keys/{key.pk}/{action}").status_code == 404
    alice = Caller(cast.alice)
    alice("DELETE", f"/access-keys/{key.pk}", status=404)
    alice("POST", f"/access-keys/{key.pk}/secret", status=404)
    assert actions.is_secret_of(PersonalKey.objects.get(), secret)


def test_a_token_of_one_person_is_not_made_another_persons(cast: Cast) -> None:
    key, _ = personal_keys.create_key("laptop", owner=cast.bob)
    bound = tokens.issue_token(cast.alice, key)[0]
    Caller(token=bound)("GET", "/clusters", status=401)
    key.user = cast.vera
    key.save()
    Caller(token=tokens.issue_token(cast.bob, key)[0])("GET", "/clusters", status=401)


def test_a_password_of_a_person_is_never_a_way_in_for_their_keys(cast: Cast) -> None:
    key, _ = personal_keys.create_key("laptop", owner=cast.bob)
    token(key.client_id, PASSWORD, 403)
    token("pk-0000", "x", 403)
    assert set(ROLES) >= {L1}
    assert json.dumps(Caller(cast.bob)("GET", "/access-keys")).count("secret") == 0


def move_project(by: User, cast: Cast, department: Department, status: int) -> Any:
    return Caller(User.objects.get(pk=by.pk))(
        "PATCH",
        f"/org-unit/projects/{cast.team_a.pk}",
        {"departmentId": str(department.pk)},
        status=status,
    )


def test_a_project_is_not_taken_over_by_moving_it_to_ones_own_department(cast: Cast) -> None:
    eve = User.objects.create(username="eve")
    own = Department.objects.create(name="own")
    granting.grant_role(DEPARTMENT, to=eve, scope=department_scope(own), by=cast.alice)
    granting.grant_role(MANAGER, to=eve, scope=department_scope(cast.research), by=cast.alice)
    assert "You cannot move team-a to own" in str(move_project(eve, cast, own, 400))
    granting.grant_role(DEPARTMENT, to=eve, scope=department_scope(cast.research), by=cast.alice)
    move_project(eve, cast, own, 200)
    cast.team_a.refresh_from_db()
    assert cast.team_a.department == own


def test_who_may_only_edit_a_project_does_not_take_it_out_of_its_department(cast: Cast) -> None:
    editor = CustomRole.objects.create(
        name="Editor", permissions=["projects:view", "projects:edit", "projects:create"]
    )
    eve = User.objects.create(username="eve")
    own = Department.objects.create(name="own")
    for scope in (department_scope(own), department_scope(cast.research)):
        granting.grant_role(f"custom:{editor.pk}", to=eve, scope=scope, by=cast.alice)
    move_project(eve, cast, own, 400)
    move_project(cast.alice, cast, own, 200)


def test_who_edits_one_cluster_does_not_make_it_the_one_that_muster_runs_in(
    cast: Cast, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("token")
    (tmp_path / "ca.crt").write_text(certifi.contents().split("\n\n")[0])
    settings.SERVICE_ACCOUNT = tmp_path
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    editor = CustomRole.objects.create(
        name="Cluster editor", permissions=["clusters:view", "clusters:edit"]
    )
    eve = User.objects.create(username="eve")
    scope = cluster_scope(cast.cluster.pk)
    granting.grant_role(f"custom:{editor.pk}", to=eve, scope=scope, by=cast.alice)
    path = f"/clusters/{cast.cluster.pk}"
    Caller(eve)("PATCH", path, {"inCluster": True}, status=403)
    page = Client()
    page.force_login(eve)
    for button in ({}, {"test": "1"}):
        answer = edit(page, f"{path}/edit", {"name": "here", "way": "in-cluster", **button})
        assert answer.status_code in (403, 422), button
    cast.cluster.refresh_from_db()
    assert cast.cluster.way != ConnectionWay.INSIDE

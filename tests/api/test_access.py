"""`/api/v1/authorization`, users, service accounts and access keys."""

import json
from typing import Any

import pytest

from projects import actions, custom_roles, granting, personal_keys
from projects.models import AccessRule, AuditEntry, CustomRole, ServiceAccount, User
from projects.permissions import DEPARTMENT, EVERYTHING, L1, L2, PROJECT, ROLES, SYSTEM, VIEWER
from projects.scopes import TENANT, department_scope, project_scope
from tests.api.calling import Caller
from tests.cast import PASSWORD, Cast


def a_rule(cast: Cast, **changes: Any) -> dict[str, Any]:
    return {
        "subjectType": "user",
        "subjectId": "vera",
        "roleId": VIEWER,
        "scopeType": "project",
        "scopeId": str(cast.team_b.pk),
    } | changes


def test_the_roles_are_those_of_the_table_and_the_custom_ones(cast: Cast) -> None:
    role = custom_roles.create("Curator", "", ["templates:delete"], by=cast.alice)
    roles = {each["key"]: each for each in Caller(cast.mallory)("GET", "/authorization/roles")}
    assert set(roles) == {*ROLES, f"custom:{role.pk}"}
    assert {"resourceType": "templates", "actions": ["read", "delete"]} in roles[
        f"custom:{role.pk}"
    ]["permissions"]
    assert {each["key"] for each in Caller(cast.bob)("GET", "/authorization/roles")} == set(ROLES)
    assert Caller(cast.bob)("GET", "/authorization/roles/viewer")["name"] == "Viewer"
    Caller(cast.bob)("GET", f"/authorization/roles/custom:{role.pk}", status=404)


def test_pages_of_roles_go_over_those_of_the_table_and_the_custom_ones(cast: Cast) -> None:
    for name in ("Curator", "Tidier"):
        custom_roles.create(name, "", ["templates:delete"], by=cast.alice)
    alice, pages, offset = Caller(cast.alice), [], "0"
    expected = [each["key"] for each in alice("GET", "/authorization/roles")]
    while offset:
        answer = alice.raw("GET", f"/authorization/roles?limit=5&offset={offset}")
        pages.append([each["key"] for each in json.loads(answer.content)])
        offset = answer.headers.get("X-Next-Offset", "")
    assert [key for page in pages for key in page] == expected
    assert {len(page) for page in pages[:-1]} == {5}
    assert 0 < len(pages[-1]) <= 5
    # The last page of those of the table alone has no following one either.
    bob = Caller(cast.bob).raw("GET", f"/authorization/roles?limit={len(ROLES)}")
    assert len(json.loads(bob.content)) == len(ROLES)
    assert "X-Next-Offset" not in bob.headers


def test_a_custom_role_is_made_changed_and_deleted(cast: Cast) -> None:
    alice = Caller(cast.alice)
    body = {
        "name": "Curator",
        "permissions": [{"resourceType": "templates", "actions": ["update"]}],
    }
    role = alice("POST", "/authorization/roles", body, 201)
    at = f"/authorization/roles/{role['id']}"
    alice("POST", "/authorization/roles", body, 409)
    changed = alice("PUT", at, body | {"description": "Tidy", "version": role["version"]})
    assert (changed["description"], changed["version"]) == ("Tidy", 2)
    assert "changed meanwhile" in alice("PUT", at, body | {"version": 1}, 409)["message"]
    granting.grant_role(role["key"], to=cast.vera, scope=TENANT, by=cast.alice)
    assert "vera" in alice("DELETE", at, status=409)["message"]
    AccessRule.objects.filter(custom_role__isnull=False).delete()
    alice("DELETE", at)
    assert not CustomRole.objects.exists()
    alice("DELETE", "/authorization/roles/viewer", status=404)


@pytest.mark.parametrize(
    "permissions",
    [
        None,
        "x",
        [{}],
        [{"resourceType": "moon", "actions": ["read"]}],
        [{"resourceType": "users", "actions": "x"}],
    ],
)
def test_what_is_no_permission_is_400(cast: Cast, permissions: Any) -> None:
    Caller(cast.alice)(
        "POST", "/authorization/roles", {"name": "x", "permissions": permissions}, 400
    )


def test_rules_are_counted_and_shown_where_one_may_see_them(cast: Cast) -> None:
    granting.grant_role(VIEWER, to=cast.vera, scope=TENANT, by=cast.alice)
    answer = Caller(cast.alice)("GET", "/authorization/access-rules")
    assert (answer["totalRecords"], answer["displayRecords"], len(answer["accessRules"])) == (
        4,
        4,
        4,
    )
    mine = Caller(cast.mallory)("GET", "/authorization/access-rules")
    assert (mine["totalRecords"], [each["subjectId"] for each in mine["accessRules"]]) == (
        1,
        ["mallory"],
    )
    one = Caller(cast.alice)(
        "GET", "/authorization/access-rules?limit=1&filterBy=subjectName==vera"
    )
    assert (one["totalRecords"], one["displayRecords"], one["next"]) == (2, 1, 1)
    Caller(cast.bob)("GET", "/authorization/access-rules", status=403)


def test_a_rule_is_made_and_deleted(cast: Cast) -> None:
    mallory = Caller(cast.mallory)
    rule = mallory("POST", "/authorization/access-rules", a_rule(cast), 201)
    assert (rule["scopeName"], rule["roleName"], rule["createdBy"]) == (
        "Project team-b",
        "Viewer",
        "mallory",
    )
    mallory("POST", "/authorization/access-rules", a_rule(cast), 409)
    at = f"/authorization/access-rules/{rule['id']}"
    assert mallory("GET", at)["subjectId"] == "vera"
    Caller(cast.vera)("GET", at, status=404)
    mallory("DELETE", at)
    mallory("DELETE", at, status=404)
    theirs = AccessRule.objects.get(user=cast.bob).pk
    mallory("DELETE", f"/authorization/access-rules/{theirs}", status=404)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"subjectType": "dog"}, 400),
        ({"subjectId": "nobody"}, 400),
        ({"roleId": "emperor"}, 400),
        ({"roleId": True}, 400),
        ({"roleId": [7]}, 400),
        ({"roleId": 999}, 400),
        ({"roleId": "custom:x"}, 400),
        ({"scopeType": "moon"}, 400),
        ({"scopeId": "x"}, 400),
        ({"scopeId": None}, 400),
        ({"scopeId": "999999"}, 404),
        ({"scopeType": "department", "scopeId": "999999"}, 404),
        ({"roleId": "system-administrator"}, 400),
        ({"subjectId": "x" * 300}, 400),
    ],
)
def test_what_cannot_be_a_rule_is_told(cast: Cast, changes: dict[str, Any], status: int) -> None:
    Caller(cast.alice)("POST", "/authorization/access-rules", a_rule(cast, **changes), status)
    Caller(cast.alice)("POST", "/authorization/access-rules", [], 400)


def test_the_caller_learns_what_they_may_and_where(cast: Cast) -> None:
    granting.grant_role(
        DEPARTMENT, to=cast.vera, scope=department_scope(cast.research), by=cast.alice
    )
    vera = Caller(User.objects.get(pk=cast.vera.pk))
    assert {
        "resourceType": "access-rules",
        "actions": ["read", "create", "update", "delete"],
    } in vera("GET", "/authorization/permissions")
    where = vera("GET", "/authorization/permitted-scopes?resourceType=workloads&action=create")
    assert where == {
        "tenant": False,
        "clusters": [],
        "departments": [str(cast.research.pk)],
        "projects": [],
    }
    assert Caller(cast.bob)("GET", "/authorization/permitted-scopes?resourceType=workloads")[
        "projects"
    ] == [str(cast.team_a.pk)]
    assert (
        Caller(cast.alice)(
            "GET", "/authorization/permitted-scopes?resourceType=users&action=delete"
        )["tenant"]
        is True
    )
    vera("GET", "/authorization/permitted-scopes?resourceType=moon", status=400)
    permissions = Caller(cast.alice)("GET", "/authorization/permissions")
    assert sum(len(each["actions"]) for each in permissions) == len(EVERYTHING)


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("", ["resourceType"]),
        ("?resourceType=moon", ["resourceType"]),
        ("?resourceType=projects&action=fly", ["action"]),
        ("?resourceType=moon&action=fly", ["resourceType", "action"]),
    ],
)
def test_what_is_no_permission_is_told_at_its_field_with_what_there_is(
    cast: Cast, query: str, fields: list[str]
) -> None:
    refusal = Caller(cast.bob)("GET", f"/authorization/permitted-scopes{query}", status=400)
    assert [each["field"] for each in refusal["details"]] == fields
    assert all("must be one of" in each["message"] for each in refusal["details"])


def test_users_are_the_administrators_to_see_and_to_make(cast: Cast) -> None:
    alice = Caller(cast.alice)
    made = alice("POST", "/users", {"username": "carla", "email": "carla@example.com"}, 201)
    carla = User.objects.get(username="carla")
    assert carla.check_password(made["temporaryPassword"])
    assert carla.must_change_password
    users = alice("GET", "/users?filterBy=username==carla")
    assert [(each["username"], "temporaryPassword" in each) for each in users] == [("carla", False)]
    assert alice("PATCH", f"/users/{carla.pk}", {"isActive": False})["isActive"] is False
    assert alice("GET", f"/users/{carla.pk}")["isActive"] is False
    alice("POST", "/users", {"username": "CARLA"}, 409)
    alice("POST", "/users", {"username": "a/b"}, 400)
    alice("POST", "/users", {"username": "x", "email": "not"}, 400)
    for method, at in (
        ("GET", "/users"),
        ("POST", "/users"),
        ("GET", f"/users/{carla.pk}"),
        ("PATCH", f"/users/{carla.pk}"),
    ):
        Caller(cast.mallory)(method, at, {"username": "z", "isActive": True}, 403)


def test_a_service_account_is_made_rotated_and_deleted(cast: Cast) -> None:
    mallory = Caller(cast.mallory)
    body = {
        "name": "ci",
        "roleId": L2,
        "scopeType": "project",
        "scopeId": str(cast.team_b.pk),
        "expiresInDays": 30,
    }
    answer = mallory("POST", "/service-accounts", body, 201)
    account = ServiceAccount.objects.get()
    assert actions.is_secret_of(account, answer["clientSecret"])
    assert answer["expiresAt"] is not None
    at = f"/service-accounts/{answer['id']}"
    assert "clientSecret" not in mallory("GET", at)
    new = mallory("POST", f"{at}/secret")["clientSecret"]
    assert actions.is_secret_of(ServiceAccount.objects.get(), new)
    for method, path in (("GET", at), ("DELETE", at), ("POST", f"{at}/secret")):
        Caller(cast.bob)(method, path, status=404)
    assert [each["name"] for each in mallory("GET", "/service-accounts")["serviceAccounts"]] == [
        "ci"
    ]
    Caller(cast.bob)("GET", "/service-accounts", status=403)
    mallory("DELETE", at)
    mallory("GET", at, status=404)
    for wrong in ({"expiresInDays": 0}, {"expiresInDays": "30"}, {"name": ""}, {"name": "a/b"}):
        mallory("POST", "/service-accounts", body | wrong, 400)


def test_ones_own_keys_and_nobody_elses(cast: Cast) -> None:
    personal_keys.create_key("of vera", owner=cast.vera)
    by_password = Caller()(
        "POST", "/token", {"grantType": "password", "username": "bob", "password": PASSWORD}
    )["accessToken"]
    bob = Caller(token=by_password)
    key = bob("POST", "/access-keys", {"name": "laptop", "expiresInDays": 7}, 201)
    assert [
        (each["name"], "clientSecret" in each) for each in bob("GET", "/access-keys")["accessKeys"]
    ] == [("laptop", False)]
    answer = bob.raw("POST", f"/access-keys/{key['id']}/secret")
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    bob("DELETE", f"/access-keys/{key['id']}")
    assert bob("GET", "/access-keys") == {"accessKeys": []}


def test_a_rule_gets_another_role_and_another_scope(cast: Cast) -> None:
    alice = Caller(cast.alice)
    rule = AccessRule.objects.get(user=cast.vera)
    at = f"/authorization/access-rules/{rule.pk}"
    answer = alice("PATCH", at, {"roleId": L1})
    assert (answer["id"], answer["roleKey"], answer["scopeName"]) == (rule.pk, L1, "Project team-a")
    answer = alice("PATCH", at, {"scopeType": "project", "scopeId": str(cast.team_b.pk)})
    assert (answer["id"], answer["roleKey"], answer["scopeName"]) == (rule.pk, L1, "Project team-b")
    answer = alice("PATCH", at, {"scopeType": "tenant"})
    assert (answer["scopeType"], answer["scopeId"], answer["subjectId"]) == ("tenant", "", "vera")
    # An answer can be sent back, and changes nothing.
    before = AuditEntry.objects.count()
    assert alice("PATCH", at, answer) == answer
    assert AuditEntry.objects.count() == before
    entries = AuditEntry.objects.filter(entity="access-rule", entity_id=rule.pk).order_by("id")
    assert [each.event for each in entries] == ["revoke", "grant"] * 3
    assert AccessRule.objects.filter(user=cast.vera).count() == 1


def test_a_change_of_a_rule_gives_no_more_than_making_one(cast: Cast) -> None:
    mallory = Caller(cast.mallory)
    granting.grant_role(VIEWER, to=cast.vera, scope=project_scope(cast.team_b), by=cast.alice)
    rule = AccessRule.objects.get(user=cast.vera, project=cast.team_b)
    at = f"/authorization/access-rules/{rule.pk}"
    wider: list[tuple[dict[str, Any], int]] = [
        ({"scopeType": "tenant"}, 403),
        ({"scopeType": "project", "scopeId": str(cast.team_a.pk)}, 404),
        ({"roleId": "department-administrator"}, 403),
        ({"roleId": "system-administrator", "scopeType": "tenant"}, 403),
    ]
    for body, status in wider:
        mallory("PATCH", at, body, status)
    assert AccessRule.objects.get(pk=rule.pk).role_key == VIEWER
    mallory("PATCH", at, {"roleId": L1})
    theirs = AccessRule.objects.get(user=cast.bob).pk
    mallory("PATCH", f"/authorization/access-rules/{theirs}", {"roleId": L1}, 404)
    Caller(cast.vera)("PATCH", at, {"roleId": PROJECT}, 404)
    # What is taken away has to be one's to take away.
    assert AccessRule.objects.get(pk=rule.pk).role_key == L1


def test_a_rule_that_there_is_already_is_not_made_by_a_change(cast: Cast) -> None:
    granting.grant_role(L1, to=cast.vera, scope=project_scope(cast.team_a), by=cast.alice)
    rule = AccessRule.objects.get(user=cast.vera, role=VIEWER)
    at = f"/authorization/access-rules/{rule.pk}"
    Caller(cast.alice)("PATCH", at, {"roleId": L1}, 409)
    assert AccessRule.objects.get(pk=rule.pk).role == VIEWER


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "object"),
        ({"subjectId": "bob"}, "cannot be changed"),
        ({"subjectType": "group"}, "cannot be changed"),
        ({"roleId": "emperor"}, "role"),
        ({"roleId": []}, "roleId"),
        ({"scopeType": "department"}, "scopeId"),
        ({"scopeId": "x" * 300}, "scopeId"),
        ({"scopeType": "tenant", "scopeId": "5"}, "leave scopeId out"),
        ({"scopeType": "project", "scopeId": "²"}, "scopeId"),
    ],
)
def test_what_cannot_be_a_changed_rule_is_told(cast: Cast, body: Any, words: str) -> None:
    at = f"/authorization/access-rules/{AccessRule.objects.get(user=cast.vera).pk}"
    assert words in Caller(cast.alice)("PATCH", at, body, 400)["message"]


def test_a_scope_id_alone_is_not_for_a_rule_of_the_tenant(cast: Cast) -> None:
    rule = granting.grant_role(VIEWER, to=cast.vera, scope=TENANT, by=cast.alice)
    at = f"/authorization/access-rules/{rule.pk}"
    refused = Caller(cast.alice)("PATCH", at, {"scopeId": str(cast.team_b.pk)}, 400)
    assert refused["details"][0]["field"] == "scopeId"
    assert AccessRule.objects.get(pk=rule.pk).scope == TENANT


@pytest.mark.parametrize(("method", "body"), [("DELETE", None), ("PATCH", {"roleId": L1})])
def test_what_a_rule_became_meanwhile_is_not_taken_away_as_what_it_was(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, method: str, body: Any
) -> None:
    rule = granting.grant_role(
        VIEWER, to=cast.vera, scope=project_scope(cast.team_b), by=cast.alice
    )
    at = f"/authorization/access-rules/{rule.pk}"
    revoke_rule = granting.revoke_rule

    def revoke_after_a_change(loaded: AccessRule, by: User) -> None:
        monkeypatch.setattr(granting, "revoke_rule", revoke_rule)
        current = AccessRule.objects.get(pk=rule.pk)
        granting.change_rule(current, SYSTEM, TENANT, User.objects.get(pk=cast.alice.pk))
        revoke_rule(loaded, by)

    monkeypatch.setattr(granting, "revoke_rule", revoke_after_a_change)
    refused = Caller(cast.mallory)(method, at, body, 409)
    if method == "DELETE":
        assert "changed this access rule" in refused["message"]
        # Of a PATCH it is within the same transaction, and rolled back with it.
        assert AccessRule.objects.get(pk=rule.pk).role == SYSTEM
    assert AccessRule.objects.filter(pk=rule.pk).exists()


def test_the_last_administrator_is_not_changed_away(cast: Cast) -> None:
    granting.grant_role("system-administrator", to=cast.vera, scope=TENANT, by=cast.alice)
    User.objects.filter(pk=cast.alice.pk).update(is_superuser=False)
    vera = Caller(User.objects.get(pk=cast.vera.pk))
    rule = AccessRule.objects.get(role="system-administrator")
    at = f"/authorization/access-rules/{rule.pk}"
    assert "only system administrator" in vera("PATCH", at, {"roleId": VIEWER}, 400)["message"]

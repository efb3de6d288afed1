"""Access rules and service accounts of every scope, as pages."""

import html
import json
import re
import shlex
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from console.errors import Clash
from projects import actions, granting
from projects.models import AccessRule, AuditEntry, Department, Project, ServiceAccount, User
from projects.permissions import DEPARTMENT, L2, PROJECT, SYSTEM, VIEWER
from projects.scopes import TENANT, cluster_scope, department_scope, project_scope
from tests.cast import Cast


def body(client: Client, at: str) -> str:
    answer = client.get(at)
    assert answer.status_code == 200, (at, answer.status_code)
    return answer.content.decode()


def post_rule(client: Client, cast: Cast, **fields: str) -> tuple[int, str]:
    sent = {
        "kind": "user",
        "subjects": "vera",
        "role": VIEWER,
        "scope": f"project:{cast.team_b.pk}",
    } | fields
    answer = client.post("/access-rules/new", sent)
    return answer.status_code, answer.content.decode()


@pytest.fixture
def alice(client: Client, cast: Cast) -> Client:
    client.force_login(cast.alice)
    return client


def test_an_administrator_sees_every_rule_with_its_subject_role_and_scope(
    alice: Client, cast: Cast
) -> None:
    text = body(alice, "/access-rules")
    for words in (
        "bob",
        "L1 researcher",
        "Project team-a",
        "mallory",
        "Project administrator",
        "Authorized by",
    ):
        assert words in text


def test_a_service_account_of_everybody_stands_there_by_its_name(alice: Client, cast: Cast) -> None:
    actions.create_service_account(TENANT, "export", by=cast.alice, role=VIEWER)
    actions.create_service_account(cast.team_a, "nightly", by=cast.alice)
    text = body(alice, "/access-rules")
    assert "all:all" not in text
    assert re.search(r"</svg> export\s*<", text)
    assert "team-a/nightly" in text


def test_a_scope_leads_to_what_it_is(alice: Client, cast: Cast) -> None:
    granting.grant_role(VIEWER, to=cast.bob, scope=department_scope(cast.research), by=cast.alice)
    text = body(alice, "/access-rules")
    assert f'<a href="/departments/{cast.research.pk}">Department research</a>' in text
    assert f'<a href="/projects/{cast.team_a.pk}">Project team-a</a>' in text


def test_a_project_administrator_sees_the_rules_of_their_project_and_none_elsewhere(
    client: Client, cast: Cast
) -> None:
    granting.grant_role(VIEWER, to=cast.bob, scope=TENANT, by=cast.alice)
    granting.grant_role(VIEWER, to=cast.vera, scope=department_scope(cast.research), by=cast.alice)
    client.force_login(cast.mallory)
    text = body(client, "/access-rules")
    assert "mallory" in text
    for hidden in ("bob", "vera", "team-a", "Department research"):
        assert hidden not in text
    assert "bob" not in body(client, "/access-rules?format=csv")


def test_a_department_administrator_sees_what_is_below(client: Client, cast: Cast) -> None:
    lea = User.objects.create(username="lea")
    granting.grant_role(DEPARTMENT, to=lea, scope=department_scope(cast.research), by=cast.alice)
    granting.grant_role(VIEWER, to=cast.vera, scope=TENANT, by=cast.alice)
    client.force_login(lea)
    text = body(client, "/access-rules")
    assert all(
        name in text for name in ("lea", "bob", "mallory", "Department research", "Project team-a")
    )
    assert "Everybody</td>" not in text


def test_who_may_see_no_rules_is_told_who_could_let_them(client: Client, cast: Cast) -> None:
    client.force_login(cast.bob)
    answer = client.get("/access-rules")
    assert answer.status_code == 403
    text = answer.content.decode()
    assert "You may not view access rules" in text
    assert 'href="/why?permission=access-rules%3Aview&amp;scope=tenant"' in text


def test_a_rule_is_made_for_several_at_once_and_noted(alice: Client, cast: Cast) -> None:
    status, _ = post_rule(alice, cast, subjects="vera, BOB ,vera", role=L2)
    assert status == 302
    assert set(
        AccessRule.objects.filter(project=cast.team_b, role=L2).values_list(
            "user__username", flat=True
        )
    ) == {"vera", "bob"}
    noted = AuditEntry.objects.filter(event="grant", entity="access-rule")
    assert {(each.entity_name, each.scope, each.subject) for each in noted} == {
        (name, f"project:{cast.team_b.pk}", "alice") for name in ("bob", "vera")
    }


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"subjects": "vera, nobody"}, "There is no user nobody"),
        ({"subjects": " , "}, "Say for whom"),
        ({"subjects": ",".join(f"u{number}" for number in range(11))}, "10 at once"),
        ({"subjects": "vera\x00"}, "It has a null character"),
        ({"kind": "service-account", "subjects": "nothing"}, "no service account nothing"),
        ({"role": "emperor"}, "not for you to choose"),
        ({"scope": "project:999"}, "not for you to choose"),
        ({"scope": "nonsense"}, "not for you to choose"),
        ({"role": SYSTEM}, "is a role in the whole of Muster"),
        (
            {"subjects": "mallory, vera", "role": PROJECT},
            "mallory is Project administrator there already",
        ),
    ],
)
def test_what_cannot_be_is_told_and_makes_no_rule_at_all(
    alice: Client, cast: Cast, fields: dict[str, str], problem: str
) -> None:
    before = AccessRule.objects.count()
    status, text = post_rule(alice, cast, **fields)
    assert (status, AccessRule.objects.count()) == (422, before)
    assert problem in text


def test_a_rule_may_be_for_a_group_that_nobody_was_of_yet(alice: Client, cast: Cast) -> None:
    assert post_rule(alice, cast, kind="group", subjects="ml-team")[0] == 302
    cast.vera.groups.add(Group.objects.get(name="ml-team"))
    assert set(Project.objects.visible_to(User.objects.get(pk=cast.vera.pk))) == {
        cast.team_a,
        cast.team_b,
    }
    assert "ml-team" in body(alice, "/access-rules?type=group")


def test_a_rule_may_be_for_a_service_account_by_its_client_id(alice: Client, cast: Cast) -> None:
    account, _ = actions.create_service_account(cast.team_a, "ci", by=cast.alice)
    for name in ("ci", account.client_id):
        assert (
            post_rule(
                alice,
                cast,
                kind="service-account",
                subjects=name,
                role=L2 if name == "ci" else VIEWER,
            )[0]
            == 302
        )
    assert account.user.access_rules.count() == 3


def test_a_deleted_rule_is_over_and_noted(alice: Client, cast: Cast) -> None:
    rule = AccessRule.objects.get(user=cast.vera)
    assert alice.post(f"/access-rules/{rule.pk}/delete").status_code == 302
    assert alice.post(f"/access-rules/{rule.pk}/delete").status_code == 404
    assert AuditEntry.objects.get(event="revoke").before == {"role": "Viewer"}


def test_a_rule_of_elsewhere_is_not_there_to_be_deleted(client: Client, cast: Cast) -> None:
    client.force_login(cast.mallory)
    assert (
        client.post(f"/access-rules/{AccessRule.objects.get(user=cast.vera).pk}/delete").status_code
        == 404
    )
    above = granting.grant_role(
        VIEWER, to=cast.vera, scope=department_scope(cast.research), by=cast.alice
    )
    assert client.post(f"/access-rules/{above.pk}/delete").status_code == 404


def test_only_scopes_are_offered_in_which_one_may_give(client: Client, cast: Cast) -> None:
    client.force_login(cast.mallory)
    options = re.findall(
        r'<option value="(tenant|(?:project|department|cluster):[^"]*)"',
        body(client, "/access-rules/new"),
    )
    assert options == [f"project:{cast.team_b.pk}"]


def test_nobody_gets_a_role_everywhere_by_not_choosing_a_scope(alice: Client, cast: Cast) -> None:
    text = body(alice, "/access-rules/new")
    assert '<option value="" selected>Choose a scope</option>' in text
    status, text = post_rule(alice, cast, scope="")
    assert (status, "Choose one: it cannot be empty." in text) == (422, True)
    assert post_account(alice, scope="")[0] == 422


# Service accounts.


def post_account(client: Client, **fields: str) -> tuple[int, str]:
    answer = client.post(
        "/service-accounts/new", {"name": "ci", "role": VIEWER, "expires": ""} | fields
    )
    return answer.status_code, answer.content.decode()


@pytest.mark.parametrize("level", ["tenant", "cluster", "department", "project"])
def test_a_service_account_is_made_at_any_scope_and_its_secret_is_shown_once(
    alice: Client, cast: Cast, level: str
) -> None:
    scope = {
        "tenant": TENANT,
        "cluster": cluster_scope(cast.cluster.pk),
        "department": department_scope(cast.research),
        "project": project_scope(cast.team_a),
    }[level]
    status, text = post_account(alice, scope=str(scope), expires="30")
    assert status == 200
    account = ServiceAccount.objects.get()
    secret = re.search(r'id="secret-secret">([^<]+)<', text)[1]  # type: ignore[index]
    assert actions.is_secret_of(account, secret)
    assert account.scope == account.user.access_rules.get().scope == scope
    assert account.expires_at is not None
    assert timedelta(days=29) < account.expires_at - timezone.now() <= timedelta(days=30)
    text = body(alice, "/service-accounts")
    assert account.client_id in text
    assert secret not in text
    assert secret not in str(list(AuditEntry.objects.values()))
    assert post_account(alice, scope=str(scope))[0] == 422


def test_the_command_beside_a_new_secret_gets_a_token_as_the_documents_do(
    alice: Client, cast: Cast
) -> None:
    _, text = post_account(alice, scope=str(project_scope(cast.team_a)))
    secret = re.search(r'id="secret-secret">([^<]+)<', text)[1]  # type: ignore[index]
    command = re.search(r'id="secret-curl">(.*?)</code>', text, re.DOTALL)[1]  # type: ignore[index]
    command = html.unescape(re.sub("</?em>", "", command)).replace("the secret", secret)
    _, _, address, *options = shlex.split(command)
    sent = json.loads(options[options.index("-d") + 1])
    assert sent["grantType"] == "client_credentials"
    assert set(sent) == {"grantType", "clientId", "clientSecret"}
    answer = Client().post(address.removeprefix("http://testserver"), sent, "application/json")
    assert (answer.status_code, answer.json()["tokenType"]) == (200, "Bearer")


def test_the_same_name_is_given_once_in_a_scope_whoever_is_first(cast: Cast) -> None:
    for scope in (TENANT, department_scope(cast.research), cluster_scope(cast.cluster.pk)):
        actions.create_service_account(scope, "ci", by=cast.alice)
        with pytest.raises(Clash):
            actions.create_service_account(scope, "ci", by=cast.alice)


def test_what_does_not_say_enabled_or_disabled_changes_no_account(
    alice: Client, cast: Cast
) -> None:
    account, _ = actions.create_service_account(TENANT, "ci", by=cast.alice)
    at = f"/service-accounts/{account.pk}/enabled"
    for sent in ({}, {"enabled": ""}, {"enabled": "yes"}):
        assert alice.post(at, sent).status_code == 400
        account.refresh_from_db()
        assert account.is_enabled
    for sent, expected in (({"enabled": "0"}, False), ({"enabled": "1"}, True)):
        assert alice.post(at, sent).status_code == 302
        account.refresh_from_db()
        assert account.is_enabled is expected


def test_a_department_may_have_the_name_of_one_whose_account_there_was(cast: Cast) -> None:
    actions.create_service_account(department_scope(cast.research), "ci", by=cast.alice)
    Department.objects.filter(pk=cast.research.pk).update(name="old")
    again = Department.objects.create(name="research")
    account, _ = actions.create_service_account(department_scope(again), "ci", by=cast.alice)
    assert account.user.username.startswith("department:research/ci (")


def test_a_project_administrator_sees_and_handles_those_of_the_project_only(
    client: Client, cast: Cast
) -> None:
    above, _ = actions.create_service_account(TENANT, "overseer", by=cast.alice)
    theirs, _ = actions.create_service_account(cast.team_a, "robot", by=cast.alice)
    own, _ = actions.create_service_account(cast.team_b, "mine", by=cast.mallory)
    client.force_login(cast.mallory)
    text = body(client, "/service-accounts")
    assert "mine" in text
    for hidden in ("overseer", "robot", above.client_id, theirs.client_id):
        assert hidden not in text
    for account in (above, theirs):
        for action in ("secret", "delete"):
            assert client.post(f"/service-accounts/{account.pk}/{action}").status_code == 404
    assert client.post(f"/service-accounts/{own.pk}/secret").status_code == 200
    assert client.post(f"/service-accounts/{own.pk}/delete").status_code == 302
    assert set(ServiceAccount.objects.all()) == {above, theirs}
    assert list(
        AuditEntry.objects.filter(entity="service-account", subject="mallory")
        .order_by("pk")
        .values_list("event", flat=True)
    ) == [
        "create",
        "secret",
        "delete",
    ]


def test_an_expired_one_gets_no_new_secret(alice: Client, cast: Cast) -> None:
    account, _ = actions.create_service_account(
        cast.team_a, "old", by=cast.alice, expires_at=timezone.now() - timedelta(seconds=1)
    )
    answer = alice.post(f"/service-accounts/{account.pk}/secret")
    assert answer.status_code == 422
    assert "old has expired" in answer.content.decode()
    assert "Expired" in body(alice, "/service-accounts?state=expired")
    assert "old" not in re.findall(
        r'class="mu-name"[^>]*>([^<]+)<', body(alice, "/service-accounts?state=valid")
    )


def test_a_project_page_makes_one_that_expires(alice: Client, cast: Cast) -> None:
    alice.post(
        f"/projects/{cast.team_a.pk}/service-accounts",
        {"name": "nightly", "role": L2, "expires": "90"},
    )
    assert ServiceAccount.objects.get().expires_at is not None

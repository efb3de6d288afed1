"""Credentials: a secret is written and never read back, and what something logs in with is not
deleted under it.
"""

import json
import re
from typing import Any

import pytest
from django.core import serializers
from django.db import connection
from django.utils import timezone

from console.errors import Clash
from console.templatetags.muster import TYPE_AGAIN
from console.typed_forms import to_query_dict
from environments import actions, cluster_secrets, credentials, scope_removal, uses
from environments.kinds import CREDENTIAL, DATA_SOURCE
from environments.models import Credential, DataSource, Template
from projects.models import AccessRule, AuditEntry, Department, Project, User
from projects.permissions import SYSTEM
from projects.scopes import TENANT, cluster_scope, department_scope, project_scope
from tests.cast import Cast, a_spec
from tests.environments.assets import BY_NAME, CREDENTIALS, SECRET, Api, Sample, client_of
from workloads import asset_rules, journal
from workloads.models import UsedAsset, Workload
from workloads.specs import Git

pytestmark = pytest.mark.django_db
EACH = pytest.mark.parametrize("sample", CREDENTIALS, ids=str)


def get_changes(entry: AuditEntry) -> dict[str, Any]:
    return dict(entry.after or {})


@EACH
def test_a_secret_is_in_no_page_no_row_in_clear_and_no_log(
    cast: Cast, sample: Sample, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of(cast.mallory)
    given = sample.typed | {"name": "mine", "scope": f"project:{cast.team_b.pk}"}
    assert client.post(sample.new, given).status_code == 302
    made = Credential.objects.get(name="mine")
    for path in (
        "",
        f"/{made.pk}",
        f"/{made.pk}/edit",
        f"/{made.pk}/copy",
        f"/{made.pk}/delete",
        "?format=csv",
    ):
        page = client.get(f"/credentials{path}").content.decode()
        assert SECRET not in page, path
        for seal in re.findall(r'name="started_from" value="([^"]+)"', page):
            assert SECRET not in str(seal)
    with connection.cursor() as cursor:
        cursor.execute("SELECT secret FROM environments_credential")
        assert SECRET not in str(cursor.fetchall())
    assert SECRET not in serializers.serialize("json", AuditEntry.objects.all())
    assert get_changes(AuditEntry.objects.get(entity="credential"))["secret"] == "changed"
    assert SECRET not in caplog.text


@EACH
def test_an_empty_secret_keeps_the_one_that_is_stored(cast: Cast, sample: Sample) -> None:
    made = sample.make(project_scope(cast.team_b), cast.mallory)
    before = Credential.objects.get(pk=made.pk)
    client, address = client_of(cast.mallory), f"/credentials/{made.pk}/edit"
    page = client.get(address)
    sent = {name: page.context["form"].data.getlist(name) for name in page.context["form"].data}
    sent |= {"started_from": page.context["started_from"], "description": "other"}
    assert client.post(address, sent).status_code == 302
    after = Credential.objects.get(pk=made.pk)
    assert (after.secret, after.secret_at, after.description) == (
        before.secret,
        before.secret_at,
        "other",
    )
    assert "secret" not in get_changes(AuditEntry.objects.get(event="update"))


@EACH
def test_a_new_secret_takes_its_place(cast: Cast, sample: Sample) -> None:
    made = sample.make(project_scope(cast.team_b), cast.mallory)
    before = Credential.objects.get(pk=made.pk)
    status, _ = Api(cast.mallory)(
        "patch",
        f"{sample.api}/{made.pk}",
        json.loads(json.dumps({"spec": sample.spec}).replace(SECRET, "anew")),
    )
    after = Credential.objects.get(pk=made.pk)
    assert status == 202
    assert "anew" in after.secret
    assert SECRET not in after.secret
    assert after.secret_at > before.secret_at
    assert get_changes(AuditEntry.objects.get(event="update"))["secret"] == "changed"


@EACH
def test_a_copy_needs_its_secret_anew(cast: Cast, sample: Sample) -> None:
    made = sample.make(project_scope(cast.team_b), cast.mallory)
    client = client_of(cast.mallory)
    page = client.get(f"/credentials/{made.pk}/copy")
    sent = {name: page.context["form"].data.getlist(name) for name in page.context["form"].data}
    assert client.post(f"/credentials/{made.pk}/copy", sent).status_code == 422
    assert Credential.objects.count() == 1


@EACH
def test_a_refused_form_says_that_the_secret_has_to_be_typed_again(
    cast: Cast, sample: Sample
) -> None:
    client = client_of(cast.mallory)
    scope = f"project:{cast.team_b.pk}"
    refused = client.post(sample.new, sample.typed | {"name": "", "scope": scope})
    page = refused.content.decode()
    assert (refused.status_code, SECRET in page, TYPE_AGAIN in page) == (422, False, True)
    # A new one that is lost would leave the old one in use, without a word.
    client.post(sample.new, sample.typed | {"name": "mine", "scope": scope})
    edit = f"/credentials/{Credential.objects.get(name='mine').pk}/edit"
    page = client.get(edit).content.decode()
    assert TYPE_AGAIN not in page
    seal = re.findall(r'name="started_from" value="([^"]+)"', page)[0]
    given = sample.typed | {"name": "", "scope": scope, "started_from": seal}
    page = client.post(edit, given).content.decode()
    assert (SECRET in page, TYPE_AGAIN in page) == (False, True)


def test_keys_of_a_generic_secret_come_go_and_stay(cast: Cast) -> None:
    made = BY_NAME["credential-generic"].make(
        project_scope(cast.team_b), cast.mallory, **{"keys-1-key": "old", "keys-1-value": "gone"}
    )
    pairs = [{"key": "token", "value": ""}, {"key": "new", "value": "there"}]
    status, _ = Api(cast.mallory)(
        "patch",
        f"/api/v1/asset/credentials/generic-secret/{made.pk}",
        {"spec": {"keyValuePairs": pairs}},
    )
    after = Credential.objects.get(pk=made.pk)
    assert status == 202
    assert after.public == {"keys": ["token", "new"]}
    assert json.loads(after.secret) == {"token": SECRET, "new": "there"}


@pytest.mark.parametrize(
    ("name", "type_", "keys"),
    [
        ("credential-registry", "kubernetes.io/dockerconfigjson", {".dockerconfigjson"}),
        ("credential-access-key", "Opaque", {"AccessKeyId", "SecretKey"}),
        ("credential-password", "kubernetes.io/basic-auth", {"username", "password"}),
        ("credential-ssh-key", "kubernetes.io/ssh-auth", {"ssh-privatekey", "known_hosts"}),
        ("credential-generic", "Opaque", {"token"}),
    ],
)
def test_a_clusters_secret_is_made_of_what_was_typed(
    cast: Cast, name: str, type_: str, keys: set[str]
) -> None:
    made = Credential.objects.get(
        pk=BY_NAME[name].make(project_scope(cast.team_b), cast.mallory).pk
    )
    data = credentials.build_secret_data(made)
    assert (credentials.SECRET_TYPES[Credential.Kind(made.kind)], set(data)) == (type_, keys)
    assert any(SECRET in value for value in data.values())


def create_source(cast: Cast, credential: Credential, project: str = "team_b") -> DataSource:
    sample = BY_NAME["data-source-git"]
    scope, by = project_scope(getattr(cast, project)), cast.alice
    made = sample.make(scope, by, f"source-of-{project}", credential=str(credential.pk))
    assert isinstance(made, DataSource)
    return made


def create_password(cast: Cast) -> Credential:
    made = BY_NAME["credential-password"].make(TENANT, cast.alice, "common")
    assert isinstance(made, Credential)
    return made


def test_what_logs_in_with_it_is_named_as_far_as_one_may_see(cast: Cast) -> None:
    password = create_password(cast)
    create_source(cast, password, "team_a")
    create_source(cast, password, "team_b")
    workload = journal.create_workload(
        a_spec(cast.team_a, "train1"), project=cast.team_a, user=cast.bob
    )
    UsedAsset.objects.create(
        workload=workload, kind="credential", asset=password.pk, name="common", version=1
    )
    template = actions.create(
        Template,
        {"name": "starts-with-it", "form": {"setup": {"x": [str(password.pk)]}}},
        scope=project_scope(cast.team_a),
        user=cast.alice,
    )
    with pytest.raises(Clash, match=r"source-of-team_a.*source-of-team_b.*train1.*starts-with-it"):
        actions.remove(password, cast.alice)
    client = client_of(cast.alice)
    assert (
        "cannot be deleted yet" in client.get(f"/credentials/{password.pk}/delete").content.decode()
    )
    assert client.post(f"/credentials/{password.pk}/delete").status_code == 409
    assert Api(cast.alice)("delete", f"/api/v1/asset/credentials/password/{password.pk}")[0] == 409
    usage = actions.find_uses(password, cast.mallory)
    assert [use.name for use in usage.visible] == ["source-of-team_b"]
    assert usage.hidden == 3
    assert "source-of-team_a" not in usage.description
    assert usage.description.endswith("3 that you may not see")
    DataSource.objects.all().delete()
    UsedAsset.objects.all().delete()
    actions.remove(template, cast.alice)
    actions.remove(password, cast.alice)
    assert not Credential.objects.exists()


def test_a_data_source_takes_no_credential_from_beside_or_below(cast: Cast) -> None:
    theirs = BY_NAME["credential-password"].make(project_scope(cast.team_a), cast.alice, "theirs")
    given = BY_NAME["data-source-git"].typed | {"name": "x", "credential": str(theirs.pk)}
    new = "/data-sources/new/git"
    beside = client_of(cast.mallory).post(new, given | {"scope": f"project:{cast.team_b.pk}"})
    assert (beside.status_code, "theirs" in beside.content.decode()) == (422, False)
    below = client_of(cast.alice).post(new, given | {"scope": "tenant"})
    assert (
        below.status_code,
        "and this data source is seen beyond that" in below.content.decode(),
    ) == (422, True)
    assert (
        client_of(cast.alice).post(new, given | {"scope": f"project:{cast.team_a.pk}"}).status_code
        == 302
    )


def test_a_credential_stays_in_reach_of_what_logs_in_with_it(cast: Cast) -> None:
    password = create_password(cast)
    create_source(cast, password)
    body = {"meta": {"scope": "project", "projectId": cast.team_a.pk}}
    status, answer = Api(cast.alice)(
        "patch", f"/api/v1/asset/credentials/password/{password.pk}", body
    )
    assert (
        status,
        "is used beyond it by data source source-of-team_b. Choose a wider scope"
        in answer["message"],
    ) == (409, True)


def create_workload(cast: Cast, credential: Credential, name: str = "train1") -> Workload:
    """A workload of team-a that has the credential's Secret."""
    workload = journal.create_workload(
        a_spec(cast.team_a, name), project=cast.team_a, user=cast.bob
    )
    UsedAsset.objects.create(
        workload=workload, kind="credential", asset=credential.pk, name=credential.name, version=1
    )
    return workload


def list_secret_names(project: Project) -> set[str]:
    """The Secrets that its namespace is to have."""
    return {
        each.name
        for each in cluster_secrets.build_wanted_secrets([Project.objects.get(pk=project.pk)])[
            project.pk
        ]
    }


def test_a_credential_stays_where_workloads_and_templates_have_it(cast: Cast) -> None:
    password = create_password(cast)
    create_workload(cast, password)
    form = {"name": "starts-with-it", "form": {"setup": {"x": [str(password.pk)]}}}
    template = actions.create(Template, form, scope=project_scope(cast.team_a), user=cast.alice)
    address, api = f"/api/v1/asset/credentials/password/{password.pk}", Api(cast.alice)
    away = {"meta": {"scope": "project", "projectId": cast.team_b.pk}}
    status, answer = api("patch", address, away)
    assert (
        status,
        "beyond it by workload train1, template starts-with-it. Choose" in answer["message"],
    ) == (409, True)
    assert credentials.secret_name(password) in list_secret_names(cast.team_a)
    there = {"meta": {"scope": "department", "departmentId": cast.research.pk}}
    assert api("patch", address, there)[0] == 202
    actions.remove(template, cast.alice)
    assert api("patch", address, away)[0] == 409
    Workload.objects.update(released_at=timezone.now())
    assert api("patch", address, away)[0] == 202


def test_a_wider_scope_takes_it_from_nobody(cast: Cast) -> None:
    """Whatever uses it from beyond its scope has less of it before than after."""
    theirs = BY_NAME["credential-password"].make(project_scope(cast.team_a), cast.alice, "theirs")
    actions.create(
        Template,
        {"name": "t", "form": {"setup": {"x": [str(theirs.pk)]}}},
        scope=TENANT,
        user=cast.alice,
    )
    body = {"meta": {"scope": "department", "departmentId": cast.research.pk}}
    assert (
        Api(cast.alice)("patch", f"/api/v1/asset/credentials/password/{theirs.pk}", body)[0] == 202
    )


def test_who_loses_it_is_named_as_far_as_one_may_see(cast: Cast) -> None:
    AccessRule.objects.create(user=cast.mallory, role=SYSTEM)
    password = create_password(cast)
    create_workload(cast, password)
    for number in range(uses.MAX_USES + 2):
        create_workload(cast, password, f"w{number}")
    AccessRule.objects.filter(user=cast.mallory, role=SYSTEM).delete()
    lost = uses.find_uses_outside(password, project_scope(cast.team_b), cast.mallory)
    assert (lost.description, bool(lost)) == (
        f"{uses.MAX_USES + 3} uses that you may not see",
        True,
    )
    assert uses.find_uses_outside(
        password, project_scope(cast.team_b), cast.alice
    ).description.endswith(" and 3 more")
    assert actions.find_uses(password, cast.alice).hidden == 0
    for scope in (
        project_scope(cast.team_a),
        department_scope(cast.research),
        cluster_scope(cast.cluster.pk),
    ):
        assert not uses.find_uses_outside(password, scope, cast.alice)


def test_a_project_stays_where_it_has_its_credentials(cast: Cast) -> None:
    other = Department.objects.create(name="other")
    at = department_scope(cast.research)
    one, two, idle = (
        BY_NAME["credential-password"].make(at, cast.alice, name) for name in ("one", "two", "idle")
    )
    assert isinstance(one, Credential)
    assert isinstance(two, Credential)
    workload, source = create_workload(cast, one), create_source(cast, two, "team_a")
    page, api = client_of(cast.alice), Api(cast.alice)
    address, body = f"/api/v1/org-unit/projects/{cast.team_a.pk}", {"departmentId": str(other.pk)}
    status, answer = api("patch", address, body)
    assert (
        status,
        "use credentials of research: one, two. Make them everybody's" in answer["message"],
    ) == (409, True)
    opened = page.get(f"/projects/{cast.team_a.pk}/edit").context
    sent = {name: opened["form"][name].value() or "" for name in opened["form"].fields} | {
        "department": "other",
        "node_pools": [],
    }
    response = page.post(
        f"/projects/{cast.team_a.pk}/edit", sent | {"started_from": opened["started_from"]}
    )
    assert "use credentials of research: one, two" in str(
        response.context["form"].errors["department"]
    )
    assert Project.objects.get(pk=cast.team_a.pk).department == cast.research
    assert "that you may not see" in scope_removal.describe_lost_credentials(
        cast.team_a, cast.research.pk, User.objects.create(username="nobody")
    )
    assert credentials.secret_name(one) in list_secret_names(cast.team_a)
    Workload.objects.filter(pk=workload.pk).update(released_at=timezone.now())
    assert "use credentials of research: two. Make" in api("patch", address, body)[1]["message"]
    actions.remove(source, cast.alice)
    assert api("patch", address, body)[0] == 200
    assert {each.name for each in (one, two, idle)} == set(
        Credential.objects.values_list("name", flat=True)
    )


def test_a_data_source_is_a_volume_with_the_credentials_secret(cast: Cast) -> None:
    password = create_password(cast)
    volume = asset_rules.build_volume(DATA_SOURCE.get_copied_values(create_source(cast, password)))
    assert isinstance(volume, Git)
    assert (volume.secret, volume.credential, volume.path) == (
        credentials.secret_name(password),
        "password",
        "/code",
    )


def test_what_is_stored_is_not_read_for_a_table(cast: Cast) -> None:
    create_password(cast)
    row = actions.list_visible(Credential, cast.alice).get()
    assert "secret" in row.get_deferred_fields()
    assert SECRET not in str(to_query_dict(CREDENTIAL.build_typed(row)))


@EACH
def test_whom_a_new_one_is_for_has_to_be_chosen(cast: Cast, sample: Sample) -> None:
    """Everybody's is too wide a guess for what opens something."""
    client = client_of(cast.alice)
    form = client.get(sample.new).context["form"]
    assert form["scope"].value() == ""
    answer = client.post(sample.new, sample.typed | {"name": "mine", "scope": ""})
    assert answer.status_code == 422
    assert answer.context["form"].errors["scope"] == ["Choose who can use it."]
    assert not Credential.objects.exists()


def test_whom_it_is_for_is_chosen_where_there_is_one_scope(cast: Cast) -> None:
    only = f"project:{cast.team_b.pk}"
    assert (
        client_of(cast.mallory).get("/credentials/new/generic").context["form"]["scope"].value()
        == only
    )
    assert (
        client_of(cast.alice).get("/environments/new").context["form"]["scope"].value() == "tenant"
    )


@EACH
def test_a_dump_of_the_database_has_no_secret_in_clear_and_can_be_loaded(
    cast: Cast, sample: Sample
) -> None:
    made = sample.make(project_scope(cast.team_b), cast.mallory)
    before = Credential.objects.get(pk=made.pk)
    dump = serializers.serialize("json", Credential.objects.all())
    assert SECRET not in dump
    Credential.objects.all().delete()
    for each in serializers.deserialize("json", dump):
        each.save()
    after = Credential.objects.get(pk=made.pk)
    assert after.secret == before.secret
    assert SECRET in after.secret
    with connection.cursor() as cursor:
        cursor.execute("SELECT secret FROM environments_credential")
        assert SECRET not in str(cursor.fetchall())

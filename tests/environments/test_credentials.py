"""Credentials: a secret is written and never read back, and what something logs in with is not deleted under it."""

import json
import re
from typing import Any

import pytest
from django.core import serializers
from django.db import connection

from console.errors import Clash
from console.typed import as_sent
from environments import actions, credentials
from environments.kinds import CREDENTIAL, DATA_SOURCE
from environments.models import Credential, DataSource, Template
from projects.models import AuditEntry
from projects.scopes import TENANT, of_project
from tests.cast import Cast, a_spec
from tests.environments.assets import BY_NAME, CREDENTIALS, SECRET, Api, Sample, client_of
from workloads import asset_rules, journal
from workloads.models import UsedAsset

pytestmark = pytest.mark.django_db
EACH = pytest.mark.parametrize("sample", CREDENTIALS, ids=str)


def told(entry: AuditEntry) -> dict[str, Any]:
    return dict(entry.after or {})


@EACH
def test_a_secret_is_in_no_page_no_row_in_clear_and_no_log(cast: Cast, sample: Sample, caplog: pytest.LogCaptureFixture) -> None:
    client = client_of(cast.mallory)
    given = sample.typed | {"name": "mine", "scope": f"project:{cast.team_b.pk}"}
    assert client.post(sample.new, given).status_code == 302
    made = Credential.objects.get(name="mine")
    for path in ("", f"/{made.pk}", f"/{made.pk}/edit", f"/{made.pk}/copy", f"/{made.pk}/delete", "?format=csv"):
        page = client.get(f"/credentials{path}").content.decode()
        assert SECRET not in page, path
        for seal in re.findall(r'name="started_from" value="([^"]+)"', page):
            assert SECRET not in str(seal)
    with connection.cursor() as cursor:
        cursor.execute("SELECT secret FROM environments_credential")
        assert SECRET not in str(cursor.fetchall())
    assert SECRET not in serializers.serialize("json", AuditEntry.objects.all())
    assert told(AuditEntry.objects.get(entity="credential"))["secret"] == "changed"
    assert SECRET not in caplog.text


@EACH
def test_an_empty_secret_keeps_the_one_that_is_stored(cast: Cast, sample: Sample) -> None:
    made = sample.make(of_project(cast.team_b), cast.mallory)
    before = Credential.objects.get(pk=made.pk)
    client, address = client_of(cast.mallory), f"/credentials/{made.pk}/edit"
    page = client.get(address)
    sent = {name: page.context["form"].data.getlist(name) for name in page.context["form"].data}
    sent |= {"started_from": page.context["started_from"], "description": "other"}
    assert client.post(address, sent).status_code == 302
    after = Credential.objects.get(pk=made.pk)
    assert (after.secret, after.secret_at, after.description) == (before.secret, before.secret_at, "other")
    assert "secret" not in told(AuditEntry.objects.get(event="update"))


@EACH
def test_a_new_secret_takes_its_place(cast: Cast, sample: Sample) -> None:
    made = sample.make(of_project(cast.team_b), cast.mallory)
    before = Credential.objects.get(pk=made.pk)
    status, _ = Api(cast.mallory)("patch", f"{sample.api}/{made.pk}", json.loads(json.dumps({"spec": sample.spec}).replace(SECRET, "anew")))
    after = Credential.objects.get(pk=made.pk)
    assert status == 202
    assert "anew" in after.secret
    assert SECRET not in after.secret
    assert after.secret_at > before.secret_at
    assert told(AuditEntry.objects.get(event="update"))["secret"] == "changed"


@EACH
def test_a_copy_needs_its_secret_anew(cast: Cast, sample: Sample) -> None:
    made = sample.make(of_project(cast.team_b), cast.mallory)
    client = client_of(cast.mallory)
    page = client.get(f"/credentials/{made.pk}/copy")
    sent = {name: page.context["form"].data.getlist(name) for name in page.context["form"].data}
    assert client.post(f"/credentials/{made.pk}/copy", sent).status_code == 422
    assert Credential.objects.count() == 1


def test_keys_of_a_generic_secret_come_go_and_stay(cast: Cast) -> None:
    made = BY_NAME["credential-generic"].make(of_project(cast.team_b), cast.mallory, **{"keys-1-key": "old", "keys-1-value": "gone"})
    pairs = [{"key": "token", "value": ""}, {"key": "new", "value": "there"}]
    status, _ = Api(cast.mallory)("patch", f"/api/v1/asset/credentials/generic-secret/{made.pk}", {"spec": {"keyValuePairs": pairs}})
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
def test_a_clusters_secret_is_made_of_what_was_typed(cast: Cast, name: str, type_: str, keys: set[str]) -> None:
    made = Credential.objects.get(pk=BY_NAME[name].make(of_project(cast.team_b), cast.mallory).pk)
    found, data = credentials.secret_object_data(made)
    assert (found, set(data)) == (type_, keys)
    assert any(SECRET in value for value in data.values())


def a_source(cast: Cast, credential: Credential, project: str = "team_b") -> DataSource:
    sample = BY_NAME["data-source-git"]
    scope, by = of_project(getattr(cast, project)), cast.alice
    made = sample.make(scope, by, f"source-of-{project}", credential=str(credential.pk))
    assert isinstance(made, DataSource)
    return made


def a_password(cast: Cast) -> Credential:
    made = BY_NAME["credential-password"].make(TENANT, cast.alice, "common")
    assert isinstance(made, Credential)
    return made


def test_what_logs_in_with_it_is_named_as_far_as_one_may_see(cast: Cast) -> None:
    password = a_password(cast)
    a_source(cast, password, "team_a")
    a_source(cast, password, "team_b")
    workload = journal.opened(a_spec(cast.team_a, "train1"), project=cast.team_a, by=cast.bob)
    UsedAsset.objects.create(workload=workload, kind="credential", asset=password.pk, name="common", version=1)
    template = actions.create(
        Template,
        {"name": "starts-with-it", "form": {"setup": {"x": [str(password.pk)]}}},
        scope=of_project(cast.team_a),
        by=cast.alice,
    )
    with pytest.raises(Clash, match=r"source-of-team_a.*source-of-team_b.*train1.*starts-with-it"):
        actions.remove(password, cast.alice)
    client = client_of(cast.alice)
    assert "cannot be deleted yet" in client.get(f"/credentials/{password.pk}/delete").content.decode()
    assert client.post(f"/credentials/{password.pk}/delete").status_code == 409
    assert Api(cast.alice)("delete", f"/api/v1/asset/credentials/password/{password.pk}")[0] == 409
    held = actions.holding(password, cast.mallory)
    assert [use.name for use in held.seen] == ["source-of-team_b"]
    assert held.hidden == 3
    assert "source-of-team_a" not in held.words
    assert held.words.endswith("3 that you may not see")
    DataSource.objects.all().delete()
    UsedAsset.objects.all().delete()
    actions.remove(template, cast.alice)
    actions.remove(password, cast.alice)
    assert not Credential.objects.exists()


def test_a_data_source_takes_no_credential_from_beside_or_below(cast: Cast) -> None:
    theirs = BY_NAME["credential-password"].make(of_project(cast.team_a), cast.alice, "theirs")
    given = BY_NAME["data-source-git"].typed | {"name": "x", "credential": str(theirs.pk)}
    new = "/data-sources/new/git"
    beside = client_of(cast.mallory).post(new, given | {"scope": f"project:{cast.team_b.pk}"})
    assert (beside.status_code, "theirs" in beside.content.decode()) == (422, False)
    below = client_of(cast.alice).post(new, given | {"scope": "tenant"})
    assert (below.status_code, "and this data source is seen beyond that" in below.content.decode()) == (422, True)
    assert client_of(cast.alice).post(new, given | {"scope": f"project:{cast.team_a.pk}"}).status_code == 302


def test_a_credential_stays_in_reach_of_what_logs_in_with_it(cast: Cast) -> None:
    password = a_password(cast)
    a_source(cast, password)
    body = {"meta": {"scope": "project", "projectId": cast.team_a.pk}}
    status, answer = Api(cast.alice)("patch", f"/api/v1/asset/credentials/password/{password.pk}", body)
    assert (status, "is used by source-of-team_b beyond that scope" in answer["message"]) == (409, True)


def test_a_data_source_is_a_volume_with_the_credentials_secret(cast: Cast) -> None:
    password = a_password(cast)
    volume = asset_rules.volume_of(DATA_SOURCE.copied(a_source(cast, password)))
    assert (volume.secret, volume.credential, volume.path) == (credentials.secret_name(password), "password", "/code")  # type: ignore[attr-defined]


def test_what_is_stored_is_not_read_for_a_table(cast: Cast) -> None:
    a_password(cast)
    row = actions.seen(Credential, cast.alice).get()
    assert "secret" in row.get_deferred_fields()
    assert SECRET not in str(as_sent(CREDENTIAL.typed(row)))


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
    assert client_of(cast.mallory).get("/credentials/new/generic").context["form"]["scope"].value() == only
    assert client_of(cast.alice).get("/environments/new").context["form"]["scope"].value() == "tenant"


@EACH
def test_a_dump_of_the_database_has_no_secret_in_clear_and_can_be_loaded(cast: Cast, sample: Sample) -> None:
    made = sample.make(of_project(cast.team_b), cast.mallory)
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

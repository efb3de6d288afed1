"""Credentials that a project has for use: in its namespace as Secrets, registries' on every pod's
service account, and nowhere else.
"""

import base64
import json
import logging
from typing import Any

import pytest
from django.db import connection
from django.test import Client as Browser
from django.urls import reverse

from clusters import connections, project_provisioning
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.resources import SECRETS, SERVICEACCOUNTS
from environments import cluster_secrets
from environments.credentials import list_secret_keys, secret_name
from environments.models import Credential
from projects.models import Installation, Project
from tests.cast import Cast
from tests.cluster import LocalKube
from tests.clusters.provisioning import (
    build_foreign_object,
    find_drift_now,
    find_object,
    get_pull_secrets,
    list_versions,
    provision_now,
)
from tests.clusters.relay import Relay
from tests.credentials import a_registry

PASSWORD = "s3cret-of-the-registry"
SERVER = "https://registry.example.com:5000/team/"


@pytest.fixture
def client(live_cast: Cast) -> Client:
    return connections.get_client(live_cast.cluster)


@pytest.fixture
def team(live_cast: Cast) -> Project:
    """With a registry, in the cluster."""
    a_registry(live_cast.team_a, "corp", address=SERVER, username="robot", password=PASSWORD)
    return provision_now(live_cast.team_a)


def get_secret_name(name: str = "corp") -> str:
    return secret_name(Credential.objects.get(name=name))


def config(client: Client, team: Project, name: str = "corp") -> dict[str, dict[str, str]]:
    secret = calls.get(client, SECRETS, get_secret_name(name), namespace=team.namespace)
    assert secret["type"] == "kubernetes.io/dockerconfigjson"
    auths: dict[str, dict[str, str]] = json.loads(
        base64.b64decode(secret["data"][".dockerconfigjson"])
    )["auths"]
    return auths


def test_pods_pull_with_what_the_project_gives_them(client: Client, team: Project) -> None:
    assert team.sync_error == ""
    auth = base64.b64encode(f"robot:{PASSWORD}".encode()).decode()
    assert config(client, team) == {
        "registry.example.com:5000/team": {"username": "robot", "password": PASSWORD, "auth": auth}
    }
    assert get_pull_secrets(client, team) == [get_secret_name()]
    before = list_versions(client, team)
    provision_now(team)
    assert list_versions(client, team) == before


def test_docker_hub_has_the_name_that_kubelets_look_for(
    live_cast: Cast, client: Client, team: Project
) -> None:
    a_registry(team, "hub", address="docker.io", username="u", password="p")
    assert list(config(client, provision_now(team), "hub")) == ["https://index.docker.io/v1/"]


def test_what_is_removed_goes_and_what_others_put_there_stays(
    live_cast: Cast, client: Client, team: Project
) -> None:
    space = team.namespace
    theirs = {
        "imagePullSecrets": [
            {"name": get_secret_name()},
            {"name": "muster-pull-older"},
            {"name": "theirs"},
        ]
    }
    calls.patch(client, SERVICEACCOUNTS, "default", theirs, namespace=space, manager="somebody")
    calls.create(client, SECRETS, build_foreign_object("Secret", "theirs"), namespace=space)
    name = get_secret_name()
    Credential.objects.get(name="corp").delete()
    assert provision_now(team).sync_error == ""
    assert get_pull_secrets(client, team) == ["theirs"]
    assert find_object(client, SECRETS, name, space) is None
    assert find_object(client, SECRETS, "theirs", space) is not None
    a_registry(team, "again", address="example.com", username="u", password="p")
    provision_now(team)
    assert get_pull_secrets(client, team) == ["theirs", get_secret_name("again")]


def test_the_last_one_leaves_no_trace(live_cast: Cast, client: Client, team: Project) -> None:
    Credential.objects.get(name="corp").delete()
    provision_now(team)
    assert get_pull_secrets(client, team) == []
    assert "muster.dev/project" not in calls.get(
        client, SERVICEACCOUNTS, "default", namespace=team.namespace
    )["metadata"].get("labels", {})


def test_one_that_cannot_be_read_keeps_no_other_from_the_cluster(
    live_cast: Cast, client: Client, team: Project
) -> None:
    name = get_secret_name()
    table = Credential._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET secret = 'of another key'")
    a_registry(team, "next", address="example.com", username="u", password="p")
    reason = provision_now(team).sync_error
    assert reason.startswith("The credential corp cannot be read.")
    assert "MUSTER_ENCRYPTION_KEYS" in reason
    assert config(client, team, "next")["example.com"]["password"] == "p"
    assert find_object(client, SECRETS, name, team.namespace) is not None
    assert set(get_pull_secrets(client, team)) == {name, get_secret_name("next")}
    Project.objects.filter(pk=team.pk).update(sync_error="")
    assert team.pk not in find_drift_now(client, live_cast).due_projects
    calls.delete(client, SECRETS, get_secret_name("next"), namespace=team.namespace)
    assert team.pk in find_drift_now(client, live_cast).due_projects


def test_one_that_is_refused_keeps_no_other_from_the_cluster(
    live_cast: Cast, client: Client, team: Project
) -> None:
    for name in ("another", "last"):
        a_registry(team, name, address="example.com", username="u", password="p")
    theirs = build_foreign_object("Secret", get_secret_name("another"))
    calls.create(client, SECRETS, theirs, namespace=team.namespace)
    assert get_secret_name("another") in provision_now(team).sync_error
    assert config(client, team, "last")["example.com"]["password"] == "p"


def test_one_that_a_policy_forbids_keeps_no_other_from_the_cluster(
    live_cast: Cast, client: Client, team: Project, embedded_cluster: LocalKube
) -> None:
    for name in ("another", "last"):
        a_registry(team, name, address="example.com", username="u", password="p")
    forbidden = f"/secrets/{get_secret_name('another')}"
    with Relay(
        embedded_cluster.kubeconfig,
        lambda request: (
            (403, "Forbidden")
            if request.method == "PATCH" and request.path.endswith(forbidden)
            else None
        ),
    ) as relay:
        relay.lead_cluster_here(live_cast.cluster)
        assert provision_now(team).sync_error
    assert config(client, team, "last")["example.com"]["password"] == "p"
    assert get_secret_name("last") in get_pull_secrets(client, team)


def test_where_none_may_be_written_few_are_tried(
    live_cast: Cast, client: Client, team: Project, embedded_cluster: LocalKube
) -> None:
    for number in range(project_provisioning.MAX_REFUSALS + 5):
        a_registry(team, f"r{number}", address="example.com", username="u", password="p")
    with Relay(
        embedded_cluster.kubeconfig,
        lambda request: (
            (403, "Forbidden")
            if request.method == "PATCH" and "/secrets/" in request.path
            else None
        ),
    ) as relay:
        relay.lead_cluster_here(live_cast.cluster)
        assert provision_now(team).sync_error
        tries = [each for each in relay.list_requests("PATCH") if "/secrets/" in each]
    assert len(tries) == project_provisioning.MAX_REFUSALS
    assert find_object(client, SECRETS, get_secret_name(), team.namespace) is not None


def test_a_secret_of_somebody_else_is_left_alone(
    live_cast: Cast, client: Client, team: Project
) -> None:
    a_registry(team, "taken", address="example.com", username="u", password="p")
    calls.create(
        client,
        SECRETS,
        build_foreign_object("Secret", get_secret_name("taken"), data={"a": "Yg=="}),
        namespace=team.namespace,
    )
    assert (
        f"The Secret {get_secret_name('taken')} of the namespace" in provision_now(team).sync_error
    )
    assert calls.get(client, SECRETS, get_secret_name("taken"), namespace=team.namespace)[
        "data"
    ] == {"a": "Yg=="}


@pytest.mark.parametrize("what", ["removed", "changed", "not used", "forgotten by the step"])
def test_drift_is_found(live_cast: Cast, client: Client, team: Project, what: str) -> None:
    provision_now(live_cast.team_b)
    assert find_drift_now(client, live_cast).due_projects == set()
    space = team.namespace
    if what == "removed":
        calls.delete(client, SECRETS, get_secret_name(), namespace=space)
    elif what == "changed":
        calls.patch(
            client,
            SECRETS,
            get_secret_name(),
            {"data": {".dockerconfigjson": "e30="}},
            namespace=space,
        )
    elif what == "not used":
        calls.patch(client, SERVICEACCOUNTS, "default", {"imagePullSecrets": []}, namespace=space)
    else:
        Credential.objects.get(name="corp").delete()
    assert find_drift_now(client, live_cast).due_projects == {team.pk}
    provision_now(team)
    assert find_drift_now(client, live_cast).due_projects == set()


@pytest.mark.parametrize("scope", ["tenant", "cluster", "department"])
def test_what_belongs_above_is_there_for_the_project(
    live_cast: Cast, client: Client, scope: str
) -> None:
    cluster, research = live_cast.cluster, live_cast.research
    scopes: dict[str, dict[str, Any]] = {
        "tenant": {},
        "cluster": {"cluster": cluster},
        "department": {"department": research},
    }
    a_registry(None, "above", **scopes[scope])
    a_registry(live_cast.team_b, "beside")
    assert provision_now(live_cast.team_a).sync_error == ""
    assert get_pull_secrets(client, live_cast.team_a) == [get_secret_name("above")]
    assert cluster_secrets.list_pull_secret_names(live_cast.team_a) == (get_secret_name("above"),)
    # The one of the project is asked first.
    provision_now(live_cast.team_b)
    assert get_pull_secrets(client, live_cast.team_b) == [
        get_secret_name("beside"),
        get_secret_name("above"),
    ]


KINDS: dict[str, tuple[dict[str, Any], dict[str, str], str, dict[str, str]]] = {
    "access-key": (
        {"access_key_id": "AK"},
        {"secret_key": PASSWORD},
        "Opaque",
        {"AccessKeyId": "AK", "SecretKey": PASSWORD},
    ),
    "password": (
        {"username": "u"},
        {"password": PASSWORD},
        "kubernetes.io/basic-auth",
        {"username": "u", "password": PASSWORD},
    ),
    "ssh-key": (
        {},
        {"private_key": PASSWORD},
        "kubernetes.io/ssh-auth",
        {"ssh-privatekey": PASSWORD},
    ),
    "generic": ({"keys": ["a"]}, {"a": PASSWORD}, "Opaque", {"a": PASSWORD}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_a_secret_that_pods_can_read_and_pull_nothing_with(
    live_cast: Cast, client: Client, kind: str
) -> None:
    public, secret, type_, data = KINDS[kind]
    made = Credential.objects.create(
        name="it", project=live_cast.team_a, kind=kind, public=public, secret=json.dumps(secret)
    )
    assert provision_now(live_cast.team_a).sync_error == ""
    found = calls.get(client, SECRETS, secret_name(made), namespace=live_cast.team_a.namespace)
    assert (
        found["type"],
        {key: base64.b64decode(value).decode() for key, value in found["data"].items()},
    ) == (type_, data)
    assert set(list_secret_keys(made)) == set(data)
    assert get_pull_secrets(client, live_cast.team_a) == []
    # A Secret of another type cannot become this one: it is replaced.
    Credential.objects.filter(pk=made.pk).update(secret=json.dumps(dict.fromkeys(secret, "new")))
    assert find_drift_now(client, live_cast).due_projects >= {live_cast.team_a.pk}
    provision_now(live_cast.team_a)
    assert PASSWORD not in repr(
        calls.get(client, SECRETS, secret_name(made), namespace=live_cast.team_a.namespace)
    )


def test_what_an_earlier_release_made_for_a_registry_goes(
    live_cast: Cast, client: Client, team: Project
) -> None:
    labels = project_provisioning.build_project_owner(team, Installation.own_key()).labels | {
        "muster.dev/registry": "older"
    }
    calls.create(
        client,
        SECRETS,
        build_foreign_object("Secret", "muster-pull-older", metadata={"labels": labels}),
        namespace=team.namespace,
    )
    assert find_drift_now(client, live_cast).due_projects >= {team.pk}
    provision_now(team)
    assert find_object(client, SECRETS, "muster-pull-older", team.namespace) is None


def test_the_password_is_shown_nowhere(
    live_cast: Cast,
    embedded_cluster: LocalKube,
    client: Client,
    team: Project,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    auth = base64.b64encode(f"robot:{PASSWORD}".encode()).decode()
    browser = Browser(raise_request_exception=False)
    browser.force_login(live_cast.alice)
    texts = [
        browser.get("/projects").content,
        browser.get(reverse("project", args=[team.pk])).content,
    ]
    with Relay(
        embedded_cluster.kubeconfig,
        lambda request: (422, "Invalid") if request.method == "PATCH" else None,
    ) as relay:
        relay.lead_cluster_here(live_cast.cluster)
        Credential.objects.update(public={"server": "example.com", "username": "changed"})
        assert provision_now(team).sync_error.startswith("the cluster refuses the Secret")
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            texts.append(repr(cursor.fetchall()).encode())
    texts.append(caplog.text.encode())
    for text in texts:
        assert PASSWORD.encode() not in text
        assert auth.encode() not in text

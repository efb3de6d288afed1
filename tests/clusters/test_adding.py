"""Adding a cluster in three ways, trying it first, and changing it: pages for administrators."""

import html
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from pytest_django import Settings

from clusters import connection_trial, connections
from clusters.kube.client import Timeouts
from clusters.models import Cluster, ConnectionWay
from tests.cast import NOWHERE, Cast
from tests.cluster import LocalKube
from tests.clusters.kube.faults import Exchange, FaultServer, answer_plain, refusal
from tests.clusters.scripted import SHARING_OFF, ClusterScript, build_kubeconfig, serve_script
from tests.projects.editing import edit

SECRET = "s3cr3t-token-of-a-cluster"


@pytest.fixture
def alice(client: Client, cast: Cast) -> Iterator[Client]:
    client.force_login(cast.alice)
    yield client
    connections.close_all()


def text_of(answer: object) -> str:
    return html.unescape(answer.content.decode())  # type: ignore[attr-defined]


def by_kubeconfig(text: str, name: str = "there", **more: str) -> dict[str, str]:
    return {"name": name, "way": "kubeconfig", "kubeconfig": text, **more}


def by_token(server: str, token: str = SECRET, **more: str) -> dict[str, str]:
    return {"name": "there", "way": "token", "server": server, "token": token, **more}


def test_a_kubeconfig_adds_a_cluster(alice: Client) -> None:
    answer = alice.post("/clusters/new", by_kubeconfig(NOWHERE))
    made = Cluster.objects.get(name="there")
    assert answer.status_code == 302
    assert answer["Location"] == f"/clusters/{made.pk}"
    assert (made.server, made.way) == ("https://127.0.0.1:1", ConnectionWay.KUBECONFIG)


def test_an_address_a_token_and_an_authority_add_one(
    alice: Client, embedded_cluster: LocalKube
) -> None:
    access = connections.build_access(
        ConnectionWay.KUBECONFIG, embedded_cluster.kubeconfig.read_text()
    )
    alice.post(
        "/clusters/new", by_token(embedded_cluster.url, str(access.token), ca=str(access.ca))
    )
    made = Cluster.objects.get(name="there")
    assert (made.server, made.way) == (embedded_cluster.url, ConnectionWay.TOKEN)
    trial = connection_trial.try_connection(made.way, made.kubeconfig, Cluster.objects.there())
    assert trial.trouble == ""
    assert trial.version.startswith("v1.")


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (by_kubeconfig(""), "Paste the kubeconfig."),
        (by_kubeconfig("words"), "not a list of names"),
        (
            by_kubeconfig(NOWHERE.replace("token: none", "exec: {command: aws}")),
            "`exec` runs a program",
        ),
        (
            by_kubeconfig(NOWHERE.replace("token: none", "tokenFile: /etc/token")),
            "`tokenFile` names a file",
        ),
        (
            by_kubeconfig(NOWHERE.replace("token: none", "auth-provider: {name: gcp}")),
            "`auth-provider` uses a provider",
        ),
        (by_kubeconfig(NOWHERE.replace("127.0.0.1:1", "169.254.169.254")), "metadata address"),
        (by_token("https://169.254.169.254/latest"), "metadata address"),
        (by_token("ftp://example.com"), "no URL"),
        (by_token("http://203.0.113.7"), "in the clear"),
        (by_token("https://203.0.113.7", "two words"), "characters that no token has"),
        (by_token("https://203.0.113.7", ca="not a certificate"), "no PEM certificate"),
        (by_token("https://203.0.113.7", ca="Ê"), "no PEM certificate"),
        (by_token(""), "Give the address."),
        (by_token("https://203.0.113.7", ""), "Give the token."),
        ({"name": "there", "way": "in-cluster"}, "not for you to choose"),
        ({"name": "there"}, "Choose one of the ways."),
        (by_kubeconfig(NOWHERE, name="here"), "registered already"),
        (by_kubeconfig(NOWHERE, name="<b>"), "Use letters"),
    ],
)
def test_what_cannot_be_used_is_refused_in_words_and_nothing_typed_is_lost(
    alice: Client, sent: dict[str, str], words: str
) -> None:
    answer = alice.post("/clusters/new", sent)
    assert answer.status_code == 422
    assert words in text_of(answer)
    assert Cluster.objects.count() == 1
    for name in ("name", "server", "kubeconfig", "ca"):
        assert sent.get(name, "").strip() in text_of(answer)


def test_private_addresses_can_be_forbidden(alice: Client, settings: Settings) -> None:
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"private_clusters": False})
    answer = alice.post("/clusters/new", by_token("https://10.0.0.1:6443"))
    assert "MUSTER_PRIVATE_CLUSTERS" in text_of(answer)


def test_loopback_is_forbidden_in_production(alice: Client, settings: Settings) -> None:
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"production": True})
    assert "MUSTER_LOOPBACK_CLUSTERS" in text_of(
        alice.post("/clusters/new", by_kubeconfig(NOWHERE))
    )


def test_in_cluster_is_offered_where_muster_runs_in_one(
    alice: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert 'value="in-cluster"' not in text_of(alice.get("/clusters/new"))
    for name in ("token", "ca.crt"):
        (tmp_path / name).write_text("x")
    settings.SERVICE_ACCOUNT = tmp_path
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert 'value="in-cluster"' in text_of(alice.get("/clusters/new"))


def test_a_connection_is_tried_before_it_is_saved(alice: Client) -> None:
    with serve_script(
        ClusterScript(
            version="v1.34.2+k3s1", denied_verbs={("create", "jobs")}, pod_refusal=SHARING_OFF
        )
    ) as server:
        answer = alice.post(
            "/clusters/new",
            by_kubeconfig(build_kubeconfig(server, SECRET), test="1"),
            headers={"HX-Request": "true"},
        )
    text = text_of(answer)
    assert answer.status_code == 200
    assert "Kubernetes v1.34.2+k3s1 (K3s, linux/amd64), 0 nodes" in text
    assert "KAI refuses pods that ask for a part of a GPU" in text
    assert "global.gpuSharing=true" in text
    assert "create jobs.batch" in text
    assert SECRET not in text
    assert "<form" not in text
    assert Cluster.objects.count() == 1


def test_a_trial_needs_no_name_and_says_what_is_wrong_with_the_rest(alice: Client) -> None:
    with serve_script() as server:
        fine = alice.post(
            "/clusters/new",
            by_kubeconfig(build_kubeconfig(server), name="", test="1"),
            headers={"HX-Request": "true"},
        )
    assert "It answers" in text_of(fine)
    wrong = alice.post(
        "/clusters/new", by_kubeconfig("words", test="1"), headers={"HX-Request": "true"}
    )
    assert "not a list of names" in text_of(wrong)


def test_without_scripts_the_verdict_stands_in_the_form_as_it_was_typed(alice: Client) -> None:
    text = text_of(alice.post("/clusters/new", by_kubeconfig(NOWHERE, test="1")))
    assert "There is no connection" in text
    assert "The cluster refuses connections." in text
    assert NOWHERE in text


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (answer_plain(401, b"no"), "does not accept the credentials"),
        (refusal(403, "Forbidden"), "It answers"),
        (answer_plain(500, b"no"), "cluster answered 500"),
        (answer_plain(200, b"not json"), "cannot be read"),
        (Exchange.silence, "did not answer in time"),
        (Exchange.reset, "broke off"),
    ],
)
def test_whatever_is_at_the_other_end_is_told(
    alice: Client, monkeypatch: pytest.MonkeyPatch, step: object, words: str
) -> None:
    monkeypatch.setattr(
        connections, "TRIAL_TIMEOUTS", Timeouts(connect=1, read=0.2, total=1, rate_limit=1)
    )

    def answer(exchange: Exchange) -> None:
        if words == "It answers" and exchange.request.path == "/version":
            exchange.answer(200, b'{"gitVersion": "v1.30.0"}')
        else:
            step(exchange)  # type: ignore[operator]

    with FaultServer(answer) as server:
        text = text_of(
            alice.post(
                "/clusters/new",
                by_kubeconfig(build_kubeconfig(server), test="1"),
                headers={"HX-Request": "true"},
            )
        )
    assert words in text


def test_the_stored_credentials_are_on_no_page(alice: Client, cast: Cast) -> None:
    Cluster.objects.update(kubeconfig=NOWHERE.replace("none", SECRET))
    for path in ("", "/edit", "/checks", "/remove"):
        assert SECRET not in text_of(alice.get(f"/clusters/{cast.cluster.pk}{path}"))
    tried = alice.post(
        f"/clusters/{cast.cluster.pk}/edit", {"name": "here", "way": "stored", "test": "1"}
    )
    assert SECRET not in text_of(tried)
    assert "The cluster refuses connections." in text_of(tried)


def test_they_are_encrypted_in_the_database(alice: Client) -> None:
    alice.post("/clusters/new", by_token("https://203.0.113.7"))
    with connection.cursor() as cursor:
        cursor.execute("SELECT kubeconfig FROM clusters_cluster WHERE name = 'there'")
        stored = cursor.fetchone()[0]
    assert SECRET not in stored
    assert SECRET in Cluster.objects.get(name="there").kubeconfig


def test_a_name_is_changed_and_the_credentials_stay(alice: Client, cast: Cast) -> None:
    path = f"/clusters/{cast.cluster.pk}/edit"
    answer = edit(alice, path, {"name": "renamed", "way": "stored"})
    assert answer.status_code == 302
    changed = Cluster.objects.get()
    assert (changed.name, changed.kubeconfig, changed.server) == (
        "renamed",
        NOWHERE,
        "https://127.0.0.1:1",
    )


def test_credentials_are_replaced(alice: Client, cast: Cast) -> None:
    Cluster.objects.update(probed_at="2026-01-01T00:00Z", unreachable_since="2026-01-01T00:00Z")
    given = by_token("https://203.0.113.7:6443") | {"name": "here"}
    edit(alice, f"/clusters/{cast.cluster.pk}/edit", given)
    changed = Cluster.objects.get()
    assert (changed.server, changed.way) == ("https://203.0.113.7:6443", ConnectionWay.TOKEN)
    assert (changed.probed_at, changed.unreachable_since) == (None, None)


def test_a_name_that_another_has_is_refused(alice: Client, cast: Cast) -> None:
    Cluster.objects.create(name="elsewhere", server="https://127.0.0.1:2", kubeconfig=NOWHERE)
    path = f"/clusters/{cast.cluster.pk}/edit"
    answer = edit(alice, path, {"name": "elsewhere", "way": "stored"})
    assert answer.status_code == 422
    assert "registered already" in text_of(answer)


def test_credentials_that_a_lost_key_encrypted_can_be_replaced_and_are_told_to_be_lost(
    alice: Client, cast: Cast, settings: Settings
) -> None:
    settings.ENCRYPTION_KEYS = ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]
    path = f"/clusters/{cast.cluster.pk}/edit"
    tried = alice.post(path, {"name": "here", "way": "stored", "test": "1"})
    assert "stored credentials cannot be read" in text_of(tried)
    assert edit(alice, path, by_kubeconfig(NOWHERE, name="here")).status_code == 302
    assert Cluster.objects.get().kubeconfig == NOWHERE


@pytest.mark.parametrize("path", ["new", "{pk}/edit", "{pk}/remove"])
def test_only_administrators_add_and_change(client: Client, cast: Cast, path: str) -> None:
    at = f"/clusters/{path.format(pk=cast.cluster.pk)}"
    for user in (cast.bob, cast.mallory):
        client.force_login(user)
        assert [
            client.get(at).status_code,
            client.post(at, by_kubeconfig(NOWHERE)).status_code,
        ] == [403, 403]
    assert Cluster.objects.count() == 1

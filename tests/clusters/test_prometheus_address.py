"""Where a cluster's GPUs' use is asked for: set by administrators, on the page and over REST, and
judged before it is kept.
"""

import json
from html import unescape

import pytest
from django.db import connection
from django.test import Client

from clusters import actions
from clusters.kube.errors import Unauthorized
from clusters.metrics.sign_in import SignIn, SignInWay, parse_sign_in
from clusters.models import Cluster, PrometheusSignIn
from clusters.tasks import record_answer, record_failure
from projects import tokens
from projects.models import AuditEntry
from tests.cast import NOWHERE, Cast
from tests.projects import editing

INSIDE = "http://prometheus.monitoring:9090"


def edit_address(client: Client, cast: Cast, url: str) -> int:
    client.force_login(cast.alice)
    typed = {"name": cast.cluster.name, "way": "stored", "prometheus_url": url}
    return int(editing.edit(client, f"/clusters/{cast.cluster.pk}/edit", typed).status_code)


def load_address(cast: Cast) -> str:
    cast.cluster.refresh_from_db()
    return str(cast.cluster.prometheus_url)


def test_an_administrator_sets_and_clears_it(client: Client, cast: Cast) -> None:
    assert edit_address(client, cast, INSIDE) == 302
    assert load_address(cast) == INSIDE
    assert INSIDE in client.get(f"/clusters/{cast.cluster.pk}/edit").content.decode()
    assert edit_address(client, cast, "") == 302
    assert load_address(cast) == ""
    entries = (
        AuditEntry.objects.filter(entity="cluster").order_by("pk").values_list("before", "after")
    )
    assert list(entries) == [
        (
            {"prometheus": "", "prometheusMatcher": "", "prometheusSignIn": "none"},
            {"prometheus": INSIDE, "prometheusMatcher": "", "prometheusSignIn": "none"},
        ),
        (
            {"prometheus": INSIDE, "prometheusMatcher": "", "prometheusSignIn": "none"},
            {"prometheus": "", "prometheusMatcher": "", "prometheusSignIn": "none"},
        ),
    ]


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://169.254.169.254/latest",
            "http://metadata.google.internal",
            "ftp://prometheus:9090",
            "javascript:alert(1)",
        ),
        *(
            "http://user:password@prometheus:9090",
            "http://prometheus:9090/?query=up",
            "http://prometheus:9090/#x",
            "prometheus:9090",
        ),
    ],
)
def test_an_address_that_leads_where_it_may_not_is_refused_at_the_field(
    client: Client, cast: Cast, url: str
) -> None:
    assert edit_address(client, cast, url) == 422
    assert load_address(cast) == ""


def test_others_may_not(client: Client, cast: Cast) -> None:
    for user in (cast.bob, cast.mallory):
        client.force_login(user)
        assert client.post(
            f"/clusters/{cast.cluster.pk}/edit", {"prometheus_url": INSIDE}
        ).status_code in (403, 404)
    assert load_address(cast) == ""


def test_over_rest_what_is_not_given_stays(client: Client, cast: Cast) -> None:
    headers = {"authorization": f"Bearer {tokens.issue_token(cast.alice)[0]}"}

    def patch_cluster(**body: object) -> int:
        address = f"/api/v1/clusters/{cast.cluster.pk}"
        return client.patch(
            address, json.dumps(body), content_type="application/json", headers=headers
        ).status_code

    assert patch_cluster(prometheusUrl=INSIDE) == 200
    assert patch_cluster(name="renamed") == 200
    assert load_address(cast) == INSIDE
    assert patch_cluster(prometheusUrl="http://169.254.169.254") == 400
    assert patch_cluster(prometheusUrl=7) == 400
    assert patch_cluster(prometheusUrl="") == 200
    assert load_address(cast) == ""


SECURE = "https://prometheus.example.com:9090"
TOKEN = {"prometheus_way": "bearer", "prometheus_token": "s3cret-t0ken"}


def edit(client: Client, cast: Cast, **typed: str) -> str:
    """Open the form and send it; the page that refuses it, or ""."""
    client.force_login(cast.alice)
    whole = {"name": cast.cluster.name, "way": "stored", "prometheus_url": SECURE} | typed
    answer = editing.edit(client, f"/clusters/{cast.cluster.pk}/edit", whole)
    return "" if answer.status_code == 302 else answer.content.decode()


def load_sign_in(cast: Cast) -> SignIn:
    row = PrometheusSignIn.objects.filter(cluster=cast.cluster).first()
    return parse_sign_in(row.secrets if row is not None else "")


def test_how_it_is_signed_in_to_is_kept_encrypted_and_shown_to_nobody(
    client: Client, cast: Cast
) -> None:
    headers = "X-Scope-OrgID: team-a\n\nX-Other: 1"
    assert edit(client, cast, **TOKEN, prometheus_headers=headers) == ""
    wanted = SignIn(
        way=SignInWay.BEARER,
        token="s3cret-t0ken",
        headers={"X-Scope-OrgID": "team-a", "X-Other": "1"},
    )
    assert load_sign_in(cast) == wanted
    with connection.cursor() as cursor:
        cursor.execute("SELECT secrets FROM clusters_prometheussignin")
        assert "s3cret" not in str(cursor.fetchall())
    page = client.get(f"/clusters/{cast.cluster.pk}/edit").content.decode()
    assert "Keep what is stored" in page
    assert "s3cret" not in page + str(list(AuditEntry.objects.values()))
    assert edit(client, cast, prometheus_way="stored") == ""
    assert load_sign_in(cast) == wanted
    assert edit(client, cast, prometheus_way="none") == ""
    assert load_sign_in(cast) == SignIn()


def test_only_the_series_with_its_labels_are_the_cluster_s(client: Client, cast: Cast) -> None:
    assert edit(client, cast, prometheus_matcher=' cluster = "prod-1" ') == ""
    cast.cluster.refresh_from_db()
    assert cast.cluster.prometheus_matcher == 'cluster="prod-1"'
    page = client.get(f"/clusters/{cast.cluster.pk}/edit").content.decode()
    assert "cluster=&quot;prod-1&quot;" in page
    entry = AuditEntry.objects.filter(entity="cluster").latest("pk")
    assert entry.after is not None
    assert entry.after["prometheusMatcher"] == 'cluster="prod-1"'
    refusal = edit(client, cast, prometheus_matcher='cluster="a"} or up{x="')
    assert "name=&quot;value&quot;" in refusal
    assert edit(client, cast, prometheus_url="", prometheus_matcher='cluster="a"') == ""
    cast.cluster.refresh_from_db()
    assert cast.cluster.prometheus_matcher == ""


def test_what_was_typed_for_another_way_does_not_count(client: Client, cast: Cast) -> None:
    assert edit(client, cast, **TOKEN, prometheus_user="u", prometheus_password="p") == ""
    assert load_sign_in(cast) == SignIn(way=SignInWay.BEARER, token="s3cret-t0ken")


def test_what_is_stored_goes_to_no_other_server(client: Client, cast: Cast) -> None:
    edit(client, cast, **TOKEN)
    stored = {"prometheus_way": "stored"}
    for url in ("https://evil.example.com", "http://prometheus.example.com:9090"):
        assert "for the address before" in edit(client, cast, prometheus_url=url, **stored)
    assert edit(client, cast, prometheus_url=f"{SECURE}/prom", **stored) == ""
    assert edit(client, cast, prometheus_url="") == ""
    assert not PrometheusSignIn.objects.exists()


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"prometheus_way": "bearer"}, "Give the token."),
        ({"prometheus_way": "basic", "prometheus_user": "u"}, "Give the password."),
        ({"prometheus_way": "certificate", "prometheus_certificate": "x"}, "Give the key."),
        ({"prometheus_way": "odd"}, "There is no such one, or it is not for you to choose"),
        ({"prometheus_headers": "no colon"}, "Name: value"),
        ({"prometheus_headers": "Host: evil"}, "the way of signing in sets it"),
        ({"prometheus_headers": "Cookie: session=1"}, "the way of signing in sets it"),
        ({"prometheus_headers": "X-Api-Key: 1", "prometheus_url": INSIDE}, "in the clear"),
        ({"prometheus_ca": "no pem"}, "no certificate in PEM form"),
        (TOKEN | {"prometheus_url": INSIDE}, "in the clear"),
    ],
)
def test_what_cannot_sign_in_is_refused_at_its_field(
    client: Client, cast: Cast, typed: dict[str, str], words: str
) -> None:
    assert words in edit(client, cast, **typed)
    assert not PrometheusSignIn.objects.exists()


def test_a_tenant_is_no_secret(client: Client, cast: Cast) -> None:
    headers = {"prometheus_headers": "X-Scope-OrgID: team-a"}
    assert edit(client, cast, prometheus_url=INSIDE, prometheus_way="none", **headers) == ""
    assert load_sign_in(cast) == SignIn(headers={"X-Scope-OrgID": "team-a"})


def test_headers_end_where_none_are_given(client: Client, cast: Cast) -> None:
    assert edit(client, cast, prometheus_way="none", prometheus_headers="X-Api-Key: s3cret") == ""
    assert load_sign_in(cast) != SignIn()
    entries = AuditEntry.objects.filter(entity="cluster").count()
    assert edit(client, cast, prometheus_way="none") == ""
    assert not PrometheusSignIn.objects.exists()
    assert AuditEntry.objects.filter(entity="cluster").count() == entries + 1


def test_programs_sign_it_in_as_well(client: Client, cast: Cast) -> None:
    def patch(**body: object) -> int:
        return client.patch(
            f"/api/v1/clusters/{cast.cluster.pk}",
            json.dumps(body),
            content_type="application/json",
            headers={"authorization": f"Bearer {tokens.issue_token(cast.alice)[0]}"},
        ).status_code

    assert patch(prometheusUrl=SECURE, prometheusWay="bearer", prometheusToken="t") == 200
    assert patch(prometheusMatcher='cluster="prod-1"') == 200
    assert load_sign_in(cast) == SignIn(way=SignInWay.BEARER, token="t")
    assert patch(name="renamed") == 200
    assert load_sign_in(cast) == SignIn(way=SignInWay.BEARER, token="t")
    assert patch(prometheusUrl="https://evil.example.com") == 400
    assert patch(prometheusWay="basic", prometheusUser="u") == 400
    assert patch(prometheusMatcher='cluster="a"} or up{x="') == 400
    cast.cluster.refresh_from_db()
    assert cast.cluster.prometheus_matcher == 'cluster="prod-1"'


def test_the_second_of_two_editors_takes_nothing_of_the_first_away(
    client: Client, cast: Cast
) -> None:
    path = f"/clusters/{cast.cluster.pk}/edit"
    client.force_login(cast.alice)
    opened = client.get(path).context["started_from"]
    assert edit(client, cast, **TOKEN) == ""
    renaming = {"name": "renamed", "way": "stored", "prometheus_url": "", "prometheus_way": "none"}
    late = client.post(path, renaming | {"started_from": opened})
    assert late.status_code == 409
    words = unescape(late.content.decode())
    assert "Not saved: it was changed meanwhile by alice" in words
    assert SECURE in words
    assert 'value="renamed"' in words
    cast.cluster.refresh_from_db()
    assert (cast.cluster.name, cast.cluster.prometheus_url) == ("here", SECURE)
    assert load_sign_in(cast).token == "s3cret-t0ken"
    # Who has read what changed saves over it.
    again = client.post(path, renaming | {"started_from": late.context["started_from"]})
    assert again.status_code == 302
    assert load_address(cast) == ""


def test_a_change_of_how_it_is_signed_in_to_is_not_taken_back_either(
    client: Client, cast: Cast
) -> None:
    assert edit(client, cast) == ""
    path = f"/clusters/{cast.cluster.pk}/edit"
    opened = client.get(path).context["started_from"]
    assert edit(client, cast, **TOKEN) == ""
    sent = {"name": "here", "way": "stored", "prometheus_url": SECURE, "prometheus_way": "none"}
    late = client.post(path, sent | {"started_from": opened})
    assert "it was changed meanwhile" in late.content.decode()
    assert load_sign_in(cast).token == "s3cret-t0ken"


def test_the_second_editor_is_told_before_what_was_sent_is_judged(
    client: Client, cast: Cast
) -> None:
    """What was stored is for another address, or is stored no longer."""
    path = f"/clusters/{cast.cluster.pk}/edit"
    for change in ({"prometheus_url": "https://other.example"} | TOKEN, {"prometheus_url": ""}):
        assert edit(client, cast, **TOKEN) == ""
        opened = client.get(path).context["started_from"]
        assert edit(client, cast, **change) == ""
        sent = {"name": "here", "way": "stored", "prometheus_url": SECURE}
        late = client.post(path, sent | {"prometheus_way": "stored", "started_from": opened})
        assert late.status_code == 409
        assert "it was changed meanwhile by alice" in late.content.decode()


def test_what_muster_finds_out_takes_nobody_s_form_away(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    path = f"/clusters/{cast.cluster.pk}/edit"
    opened = client.get(path).context["started_from"]
    record_failure(cast.cluster.pk, Unauthorized("Its credentials are refused."))
    record_answer(cast.cluster.pk, "v1.34.2")
    # As the embedded cluster does at each of its starts.
    renewed = NOWHERE.replace("token: none", "token: new")
    actions.reconnect(cast.cluster, renewed, is_edit=False)
    actions.disable(cast.cluster, user=cast.bob)
    renaming = {"name": "renamed", "way": "stored", "started_from": opened}
    assert client.post(path, renaming).status_code == 302
    cast.cluster.refresh_from_db()
    assert (cast.cluster.name, cast.cluster.edit_version) == ("renamed", 2)


def test_other_secrets_for_the_same_address_are_not_replaced_unseen(
    client: Client, cast: Cast
) -> None:
    assert edit(client, cast, **TOKEN) == ""
    path = f"/clusters/{cast.cluster.pk}/edit"
    opened = client.get(path).context["started_from"]
    newer = TOKEN | {"prometheus_token": "newer"}
    assert edit(client, cast, **newer) == ""
    sent = {"name": "here", "way": "stored", "prometheus_url": SECURE} | TOKEN
    late = client.post(path, sent | {"started_from": opened})
    assert late.status_code == 409
    assert "it was changed meanwhile by alice" in late.content.decode()
    assert load_sign_in(cast).token == "newer"


def test_a_refused_form_is_shown_with_what_is_stored(client: Client, cast: Cast) -> None:
    Cluster.objects.create(name="taken", server="https://127.0.0.1:2")
    refusal = edit(client, cast, name="taken")
    assert "registered already" in refusal
    assert "Edit here" in refusal
    assert load_address(cast) == ""


def test_credentials_of_another_server_are_not_replaced_unseen(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    path = f"/clusters/{cast.cluster.pk}/edit"
    opened = client.get(path).context["started_from"]
    kubeconfig = NOWHERE.replace("127.0.0.1:1", "moved.example")
    actions.reconnect(cast.cluster, kubeconfig)
    late = client.post(path, {"name": "here", "way": "stored", "started_from": opened})
    assert late.status_code == 409
    assert "https://moved.example" in late.content.decode()

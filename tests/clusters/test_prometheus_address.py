"""Where a cluster's GPUs' use is asked for: set by administrators, on the page and over REST, and
judged before it is kept.
"""

import json

import pytest
from django.test import Client

from projects import tokens
from projects.models import AuditEntry
from tests.cast import Cast

INSIDE = "http://prometheus.monitoring:9090"


def edit_address(client: Client, cast: Cast, url: str) -> int:
    client.force_login(cast.alice)
    typed = {"name": cast.cluster.name, "way": "stored", "prometheus_url": url}
    return client.post(f"/clusters/{cast.cluster.pk}/edit", typed).status_code


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
        ({"prometheus": ""}, {"prometheus": INSIDE}),
        ({"prometheus": INSIDE}, {"prometheus": ""}),
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

    def patched(**body: object) -> int:
        address = f"/api/v1/clusters/{cast.cluster.pk}"
        return client.patch(
            address, json.dumps(body), content_type="application/json", headers=headers
        ).status_code

    assert patched(prometheusUrl=INSIDE) == 200
    assert patched(name="renamed") == 200
    assert load_address(cast) == INSIDE
    assert patched(prometheusUrl="http://169.254.169.254") == 400
    assert patched(prometheusUrl=7) == 400
    assert patched(prometheusUrl="") == 200
    assert load_address(cast) == ""

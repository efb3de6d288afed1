"""What people and programs do to workloads and clusters is recorded, by whichever door they
come.
"""

from typing import Any

import pytest
from django.core.cache import cache
from django.db import IntegrityError
from django.test import Client

from clusters import actions as clusters
from console.errors import Clash
from projects.models import AuditEntry
from tests.api.calling import Caller, a_body
from tests.cast import NOWHERE, Cast, a_spec
from tests.projects.editing import edit
from workloads import actions, journal
from workloads.models import Workload


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    cache.clear()


def list_recorded(entity: str) -> list[tuple[Any, ...]]:
    """Return what was recorded of a kind of object: event, name, subject."""
    return list(
        AuditEntry.objects.filter(entity=entity)
        .order_by("pk")
        .values_list("event", "entity_name", "subject")
    )


@pytest.fixture
def bob(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.bob)
    return client


def test_a_submission_is_recorded_with_its_request(cast: Cast) -> None:
    caller = Caller(cast.bob)
    made = caller("POST", "/workloads/distributed", a_body(cast), status=202)
    assert list_recorded("workload") == [("create", "train1", "bob")]
    entry = AuditEntry.objects.get(entity="workload")
    assert (entry.entity_id, entry.scope, entry.method, entry.address) == (
        made["workloadId"],
        f"project:{cast.team_a.pk}",
        "POST",
        "127.0.0.1",
    )
    after = entry.after or {}
    assert (after["image"], after["pods"]) == ("muster/allreduce", 3)


def test_a_submission_that_is_refused_is_not(cast: Cast) -> None:
    journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    Caller(cast.bob)("POST", "/workloads/distributed", a_body(cast), status=409)
    assert list_recorded("workload") == []


def test_stopping_running_and_deleting_on_pages(cast: Cast, bob: Client) -> None:
    workload = journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    for verb in ("stop", "stop", "delete", "delete"):
        bob.post(f"/workloads/{workload.pk}/{verb}")
    assert list_recorded("workload") == [("stop", "train1", "bob"), ("delete", "train1", "bob")]
    assert all(
        entry.request_id and entry.method == "POST"
        for entry in AuditEntry.objects.filter(entity="workload")
    )


def test_running_again(cast: Cast) -> None:
    workload = journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    Workload.objects.update(status="Stopped")
    assert actions.run(workload, cast.bob)
    assert list_recorded("workload") == [("run", "train1", "bob")]


def test_over_rest_and_many_at_once_alike(cast: Cast) -> None:
    one, two = (
        journal.create_workload(a_spec(cast.team_a, name), project=cast.team_a, user=cast.bob)
        for name in ("one", "two")
    )
    Caller(cast.bob)("POST", f"/workloads/distributed/{one.pk}/suspend", status=202)
    actions.apply_bulk_action([str(one.pk), str(two.pk)], "delete", cast.bob)
    assert list_recorded("workload") == [
        ("stop", "one", "bob"),
        ("delete", "one", "bob"),
        ("delete", "two", "bob"),
    ]


def test_what_is_not_ones_own_leaves_no_entry(cast: Cast) -> None:
    workload = journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    actions.apply_bulk_action([str(workload.pk)], "delete", cast.mallory)
    actions.apply_bulk_action([str(workload.pk)], "delete", cast.vera)
    assert list_recorded("workload") == []


def test_nothing_is_done_that_could_not_be_recorded(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)

    def fails(*arguments: Any, **more: Any) -> None:
        raise IntegrityError

    monkeypatch.setattr(AuditEntry.objects, "create", fails)
    for act in (
        lambda: actions.remove(workload, cast.bob),
        lambda: clusters.rename(cast.cluster, "other", user=cast.alice),
    ):
        with pytest.raises((IntegrityError, Clash)):
            act()
    workload.refresh_from_db()
    cast.cluster.refresh_from_db()
    assert (workload.status, cast.cluster.name) == ("Creating", "here")


TOKEN = "the-token-of-the-cluster"


def test_the_life_of_a_cluster_without_its_credentials(cast: Cast) -> None:
    alice = Client()
    alice.force_login(cast.alice)
    form = {
        "name": "there",
        "way": "kubeconfig",
        "kubeconfig": NOWHERE.replace("token: none", f"token: {TOKEN}"),
    }
    assert alice.post("/clusters/new", form).status_code == 302
    key = AuditEntry.objects.get(entity="cluster").entity_id
    edit(alice, f"/clusters/{key}/edit", {"name": "elsewhere", "way": "stored"})
    edit(alice, f"/clusters/{key}/edit", {**form, "name": "elsewhere"})
    alice.post(f"/clusters/{key}/disable")
    alice.post(f"/clusters/{key}/enable")
    Caller(cast.alice)("PATCH", f"/clusters/{key}", {"enabled": False})
    alice.post(f"/clusters/{key}/remove")
    assert list_recorded("cluster") == [
        ("create", "there", "alice"),
        *[("update", "elsewhere", "alice")] * 5,
        ("delete", "elsewhere", "alice"),
    ]
    entries = list(
        AuditEntry.objects.filter(entity="cluster").order_by("pk").values("before", "after")
    )
    assert entries[1] == {"before": {"name": "there"}, "after": {"name": "elsewhere"}}
    assert (entries[2]["after"] or {})["kubeconfig"] == "changed"
    assert entries[3] == {"before": {"enabled": True}, "after": {"enabled": False}}
    assert TOKEN not in str(entries)

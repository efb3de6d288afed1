"""Pages, REST, notices and pictures tell each reader of taken pods with the names they may see."""

import importlib
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.apps import apps
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from projects.models import AccessRule, Project, User
from projects.permissions import VIEWER
from tests.api.calling import Caller
from tests.cast import Cast
from tests.workloads.cluster_objects import ClusterObjects, observe_gone, pods
from tests.workloads.reclaimed_pods import (
    GROUP,
    elastic_spec,
    find_disruption,
    kube,
    logs,
    reclaim,
    take_pod,
    write_log,
)
from tests.workloads.table_rows import a_pod, a_workload
from workloads import journal
from workloads.models import Event, Pod, Workload
from workloads.specs import encode_spec
from workloads.tasks import tell_disruptions

__all__ = ["kube", "logs"]

NAMES = ("team-b", "muster-team-b", "train2")
"""What nobody may read who does not see the other project."""


def as_(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def readings(user: User, workload: Workload) -> dict[str, str]:
    """Return what a reader gets of a workload from each page and REST address, by its name."""
    roads = {
        "page": f"/workloads/{workload.pk}",
        "events": f"/workloads/{workload.pk}/events",
        "picture": f"/workloads/{workload.pk}/pod-changes",
        "pods": f"/workloads/{workload.pk}/pods",
        "details": f"/workloads/{workload.pk}/details",
        "rest": f"/workloads/{workload.pk}",
        "rest events": f"/workloads/{workload.pk}/events",
        "rest history": f"/workloads/{workload.pk}/history",
        "rest pods": f"/workloads/{workload.pk}/pods",
    }
    client, caller = as_(user), Caller(user)
    answers = {
        name: caller.raw("GET", path) if name.startswith("rest") else client.get(path)
        for name, path in roads.items()
    }
    assert {each.status_code for each in answers.values()} == {200}
    return {name: each.content.decode() for name, each in answers.items()}


def test_who_may_not_see_the_other_project_reads_of_another_project(
    kube: ClusterObjects, cast: Cast
) -> None:
    reclaim(kube, 1, 2)
    tell_disruptions()
    texts = readings(cast.vera, kube.workload)
    for road, text in texts.items():
        assert not [name for name in NAMES if name in text], road
    for road in ("page", "picture", "rest", "rest events", "rest history"):
        assert "to another project at" in texts[road], road
    searched = Caller(cast.vera)("GET", f"/workloads/{kube.workload.pk}/events?search=train2")
    assert searched["events"] == []


def test_who_sees_the_other_project_reads_its_name(kube: ClusterObjects, cast: Cast) -> None:
    reclaim(kube, 1, 2)
    tell_disruptions()
    AccessRule.objects.create(user=cast.vera, project=cast.team_b, role=VIEWER)
    for user in (cast.alice, cast.vera):
        texts = readings(user, kube.workload)
        for road in ("page", "picture", "rest", "rest events", "rest history"):
            assert "to team-b at" in texts[road], road


def test_a_namespace_that_has_another_project_by_now_is_not_named_after_the_former(
    kube: ClusterObjects, cast: Cast
) -> None:
    reclaim(kube, 1, 2)
    tell_disruptions()
    AccessRule.objects.create(user=cast.vera, project=cast.team_b, role=VIEWER)
    Project.objects.filter(pk=cast.team_b.pk).update(
        deleted_at=timezone.now(), removed_at=timezone.now()
    )
    newer = Project.objects.get(pk=cast.team_b.pk)
    newer.pk, newer.name, newer.queue = None, "team-c", "team-c"
    newer.deleted_at = newer.removed_at = None
    newer.save()
    for road, text in readings(cast.vera, kube.workload).items():
        assert not [name for name in (*NAMES, "team-c") if name in text], road


def test_a_workload_of_the_same_project_is_named(kube: ClusterObjects, cast: Cast) -> None:
    message = (
        f"Pod {kube.namespace}/train1-worker-2 was preempted by higher priority workload "
        f"{kube.namespace}/{GROUP}"
    )
    taken = take_pod(kube, 2, message)
    journal.record_observations(
        kube.workload.cluster_id, [*pods(taken), *observe_gone("pod", taken)]
    )
    tell_disruptions()
    assert "Gave 1 GPU to train2, which has a higher priority" in find_disruption().text


def test_rest_has_the_cause_in_numbers(kube: ClusterObjects, cast: Cast) -> None:
    reclaim(kube, 1, 2)
    write_log(kube, (-22, "step 412"), (-17, "resumed at step 410"), (-16, "step 411"))
    tell_disruptions()
    answer = Caller(cast.alice)("GET", f"/workloads/{kube.workload.pk}/history")
    causes = [
        each["spec"]["event"]["cause"]
        for each in answer["records"]
        if "cause" in each["spec"].get("event", {})
    ]
    assert causes == [
        {
            "action": "reclaim",
            "pods": 2,
            "gpus": 2,
            "takenBy": "team-b",
            "nodes": ["n1"],
            "podsBefore": 4,
            "podsAfter": 2,
            "isOver": True,
            "resumedStep": 410,
            "beganAnew": False,
            "lostSteps": 2,
            "lostSeconds": 6.0,
        }
    ]


def test_the_submitter_is_told_once_on_the_next_page(kube: ClusterObjects, cast: Cast) -> None:
    reclaim(kube, 1, 2)
    write_log(kube, (-22, "step 412"), (-17, "resumed at step 410"), (-16, "step 411"))
    tell_disruptions()
    for user in (cast.vera, cast.alice):
        assert "mu-toast--notice" not in as_(user).get("/workloads").content.decode()
    client = as_(cast.bob)
    # A part of a page has no place for it.
    client.get(f"/workloads/{kube.workload.pk}/head")
    page = client.get("/workloads").content.decode()
    assert "train1 gave 2 GPUs to another project, went on with 2 of 4 pods" in page
    exact = find_disruption().at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert f'<time datetime="{exact}"' in page, "a notice of yesterday has its date"
    assert "mu-toast--notice" in page
    assert "mu-toast--notice" not in client.get("/workloads").content.decode()


def test_a_database_that_takes_nothing_new_still_serves_pages(cast: Cast) -> None:
    refused = {
        "sqlite": (
            "CREATE TRIGGER refused BEFORE UPDATE ON workloads_event BEGIN "
            "SELECT RAISE(ABORT, 'refused'); END"
        ),
        "postgresql": (
            "ALTER TABLE workloads_event ADD CONSTRAINT refused "
            "CHECK (uid <> 'lost-1' OR notice_to_id IS NOT NULL)"
        ),
    }
    with connection.cursor() as cursor:
        cursor.execute(refused[connection.vendor])
    Event.objects.create(
        workload=a_workload(cast.team_a, by=cast.bob),
        attempt=1,
        kind="scale",
        text="x",
        uid="lost-1",
        notice_to=cast.bob,
        cause={"action": "drain", "pods": 1},
    )
    client = as_(cast.bob)
    for _ in range(2):
        assert "mu-toast--notice" in client.get("/workloads").content.decode()


def test_of_many_notices_a_few_are_shown(cast: Cast) -> None:
    workload = a_workload(cast.team_a, by=cast.bob)
    for number in range(10):
        Event.objects.create(
            workload=workload,
            attempt=1,
            kind="scale",
            text="x",
            uid=f"lost-{number}",
            notice_to=cast.bob,
            cause={"action": "drain", "pods": number + 1},
        )
    page = as_(cast.bob).get("/workloads").content.decode()
    assert page.count("mu-toast--notice") == 4
    assert "Pods were taken more often" in page
    assert not Event.objects.filter(notice_to__isnull=False).exists()


def test_what_comes_after_the_notices_of_a_page_is_told_by_the_next(cast: Cast) -> None:
    workload = a_workload(cast.team_a, by=cast.bob)
    first, second = [
        Event.objects.create(workload=workload, attempt=1, kind="scale", notice_to=cast.bob)
        for _ in range(2)
    ]
    journal.dismiss_notices(cast.bob.pk, first.pk)
    assert list(Event.objects.filter(notice_to=cast.bob)) == [second]


def test_the_picture_takes_as_many_queries_with_many_pods_as_with_few(cast: Cast) -> None:
    workload = a_workload(
        cast.team_a,
        spec=encode_spec(elastic_spec(cast.team_a)),
        min_pods=2,
        max_pods=4,
        started_at=timezone.now() - timedelta(hours=2),
    )
    begin, counts = datetime.now(UTC) - timedelta(hours=2), []
    for number in (4, 60, 3000):
        Pod.objects.bulk_create(
            [
                Pod(
                    workload=workload,
                    attempt=1,
                    uid=f"{number}-{each}",
                    name=f"p-{each}",
                    started_at=begin + timedelta(seconds=each),
                    vanished_at=begin + timedelta(seconds=each + 60),
                )
                for each in range(number)
            ]
        )
        client = as_(cast.vera)
        client.get("/workloads")
        with CaptureQueriesContext(connection) as queries:
            answer = client.get(f"/workloads/{workload.pk}/pod-changes")
        counts.append(len(queries))
        assert len(answer.content) < 60_000
    assert counts == [6, 6, 9]


def test_pods_that_stay_have_no_picture(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    a_pod(workload, gpus=Decimal(1), started_at=timezone.now())
    html = as_(cast.vera).get(f"/workloads/{workload.pk}").content.decode()
    assert "Pods over time" not in html


def test_the_bounds_of_earlier_workloads_are_filled_in(cast: Cast) -> None:
    a_workload(cast.team_a, "elastic", spec=encode_spec(elastic_spec(cast.team_a)))
    a_workload(cast.team_a, "fixed")
    a_workload(cast.team_a, "odd", spec={"elastic": {"min_pods": "many"}})
    migration = importlib.import_module("workloads.migrations.0010_disruptions")
    migration.fill_bounds(apps, connection.schema_editor())
    assert list(Workload.objects.order_by("name").values_list("name", "min_pods", "max_pods")) == [
        ("elastic", 2, 4),
        ("fixed", None, None),
        ("odd", None, None),
    ]

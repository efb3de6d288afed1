"""A project's page as a team lead opens it every morning: quota, what runs and waits and why, who
holds the GPUs, what failed.
"""

import re
from datetime import timedelta
from decimal import Decimal

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.capabilities import Capabilities
from clusters.models import Node
from projects.models import AccessRule, CustomRole, Project, User
from tests.cast import Cast
from tests.workloads import objects
from tests.workloads.overview_rows import HOSTILE, add_sample, client_of, html, tile
from tests.workloads.table_rows import a_pod, a_workload, an_event
from workloads.models import Workload


def page(cast: Cast, user: User) -> str:
    return html(user, f"/projects/{cast.team_a.pk}")


def waits(cast: Cast, name: str = "waits", gpus: int = 8) -> Workload:
    """A workload whose pod asks for more than is free, with the objects that say so."""
    job = {
        "kind": "PyTorchJob",
        "metadata": {"name": name, "uid": name},
        "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1}}},
    }
    workload = a_workload(
        cast.team_a, name, status="Pending", job=job, requested_pods=1, gpus_requested=gpus
    )
    data = objects.queued_pod(
        "master",
        0,
        owner=name,
        name=f"{name}-master-0",
        resources={"requests": {"nvidia.com/gpu": str(gpus)}},
    )
    a_pod(workload, "master", phase="Pending", status="Pending", data=data)
    return workload


def test_without_a_quota_there_is_no_picture_that_looks_full(cast: Cast) -> None:
    Project.objects.filter(pk=cast.team_a.pk).update(allocated={"cpu": "3"})
    text = page(cast, cast.vera)
    assert "3 cores, no quota" in text
    assert 'aria-label="CPU: ' not in text
    assert 'aria-label="GPUs: ' in text


def test_the_quota_is_a_picture_with_words(cast: Cast) -> None:
    a_workload(cast.team_a, gpus_allocated=Decimal(3))
    text = page(cast, cast.vera)
    assert 'aria-label="GPUs: 3 GPUs allocated, 1 more than the quota of 2"' in text
    assert "over its quota" in tile(text, "Allocated GPUs")


def test_nothing_is_taken_back_where_no_scheduler_does_it(cast: Cast) -> None:
    a_workload(cast.team_a, "over", gpus_allocated=3)
    text = "1 GPU over the quota: projects that are below theirs may take it back."
    assert text in page(cast, cast.alice)
    cast.cluster.capabilities = Capabilities(served=frozenset()).to_json()
    cast.cluster.save()
    assert text not in page(cast, cast.alice)


def test_cpu_and_memory_are_as_the_queue_told_and_hostile_numbers_are_left_out(cast: Cast) -> None:
    Project.objects.update(
        allocated={"cpu": "12", "memory": str(3 << 30)}, cpu_quota=Decimal(24), memory_quota=6 << 30
    )
    text = page(cast, cast.vera)
    assert "CPU: 12 cores allocated of a quota of 24" in text
    assert "Memory: 3 GiB allocated of a quota of 6" in text
    Project.objects.update(allocated={"cpu": "NaN", "memory": "<b>"})
    assert "cores allocated" not in page(cast, cast.vera)


def test_why_it_waits_and_who_holds_the_gpus_as_far_as_one_may_see(cast: Cast) -> None:
    Node.objects.create(
        cluster=cast.cluster, name="n", is_ready=True, gpus=8, cpu=64, memory=1 << 38
    )
    holder = a_workload(cast.team_b, "secret", gpus_allocated=Decimal(6))
    a_pod(holder, node="n", gpus=Decimal(6))
    waits(cast)
    text = page(cast, cast.vera)
    assert "Needs 8 GPUs; 2 of 8 are free; other projects hold 6." in text
    assert "Other projects" in text
    assert "team-b" not in text
    assert "secret" not in text
    assert "2 of 8 are free; team-b holds 6." in page(cast, cast.alice)


def test_failures_tell_their_reason_and_idle_workloads_since_when(cast: Cast) -> None:
    a_workload(
        cast.team_a,
        "broken",
        status="Failed",
        reason="OOMKilled: worker 3",
        ended_at=timezone.now(),
    )
    a_workload(
        cast.team_a,
        "lazy",
        gpus_allocated=Decimal(1),
        idle_since=timezone.now() - timedelta(minutes=50),
        is_use_known=True,
    )
    add_sample(cast.team_a, gpus_allocated=Decimal(1), gpus_idle=Decimal(1))
    text = page(cast, cast.bob)
    assert "OOMKilled: worker 3" in text
    assert re.search(r"GPUs idle since <time[^>]*>50 min ago", text)


IN_LOGS = "A workload's page says which pod failed first, and the line of its log."


def fails(cast: Cast, *codes: int, name: str = "broken") -> None:
    """Create a workload whose workers ended with these exit codes; one without pods is refused."""
    job = {"kind": "PyTorchJob", "metadata": {"name": "j", "uid": "j"}}
    reason = "Job broken has failed because it has reached the specified backoff limit"
    workload = a_workload(
        cast.team_a,
        name,
        status="Failed",
        reason=reason,
        job=job,
        ended_at=timezone.now(),
        ended=f"{len(codes)} ended" if codes else "",
    )
    for index, code in enumerate(codes):
        data = objects.ended_pod("worker", index, code=code, owner="j")
        phase = "Failed" if code else "Succeeded"
        a_pod(workload, "worker", index, phase=phase, data=data)


def test_a_failure_is_told_by_the_pod_that_failed(cast: Cast) -> None:
    fails(cast, 0, 3)
    for text in (page(cast, cast.bob), html(cast.bob)):
        assert "Worker 1 (rank 1) failed first: the program ended with exit code 3." in text
        assert "backoff limit" not in text
        assert IN_LOGS not in text


def test_where_several_pods_failed_it_says_where_to_read_which_was_first(cast: Cast) -> None:
    fails(cast, 1, 1)
    text = page(cast, cast.bob)
    assert "it has reached the specified backoff limit" in text
    assert IN_LOGS in text


def test_where_to_read_which_was_first_stands_once_for_all_failures(cast: Cast) -> None:
    fails(cast, 1, 1)
    fails(cast, 1, 1, name="broken-too")
    for text in (page(cast, cast.bob), html(cast.bob)):
        assert text.count(IN_LOGS) == 1


def test_what_failed_without_pods_has_no_log_to_look_into(cast: Cast) -> None:
    fails(cast)
    text = page(cast, cast.bob)
    assert "it has reached the specified backoff limit" in text
    assert IN_LOGS not in text


def test_what_is_not_known_of_its_gpus_is_called_unknown(cast: Cast) -> None:
    lazy = a_workload(
        cast.team_a,
        "lazy",
        gpus_allocated=Decimal(1),
        idle_since=timezone.now() - timedelta(minutes=50),
        is_use_known=True,
    )
    a_workload(cast.team_a, "busy", gpus_allocated=Decimal(1), is_use_known=True)
    a_workload(cast.team_a, "part", gpus_allocated=Decimal("0.5"))
    a_workload(cast.team_a, "no-gpus")
    text = page(cast, cast.bob)
    assert (text.count("GPU use unknown"), text.count("GPUs idle since")) == (3, 0), (
        "nobody has looked lately"
    )
    add_sample(cast.team_a, gpus_allocated=Decimal("2.5"))
    text = page(cast, cast.bob)
    assert (text.count("GPU use unknown"), text.count("GPUs idle since")) == (1, 1)
    assert text.index("GPUs idle since") > text.index(str(lazy.pk))


def test_idle_gpus_are_unknown_without_prometheus_and_it_says_so(cast: Cast) -> None:
    assert (
        tile(page(cast, cast.vera), "Idle GPUs")
        == "Idle GPUs Unknown its cluster has no Prometheus set"
    )
    add_sample(cast.team_a, gpus_allocated=Decimal(2), gpus_idle=Decimal(1))
    assert "1 of 2 held" in tile(page(cast, cast.vera), "Idle GPUs")


def test_what_a_stranger_wrote_is_text(cast: Cast) -> None:
    waiting = waits(cast)
    Workload.objects.filter(pk=waiting.pk).update(reason=HOSTILE)
    an_event(
        waiting,
        HOSTILE,
        kind="cluster",
        reason="FailedScheduling",
        subject_kind="Pod",
        subject="waits-master-0",
    )
    a_workload(cast.team_a, "broken", status="Failed", reason=HOSTILE, ended_at=timezone.now())
    assert "<img src=x" not in page(cast, cast.alice)


def test_who_may_not_see_workloads_sees_the_quota_only(cast: Cast) -> None:
    a_workload(cast.team_a, "secret", gpus_allocated=Decimal(1))
    role = CustomRole.objects.create(name="Sees projects", permissions=["projects:view"])
    user = User.objects.create(username="quiet")
    AccessRule.objects.create(user=user, project=cast.team_a, custom_role=role)
    text = page(cast, user)
    assert "Quota" in text
    assert "secret" not in text
    assert "Who holds" not in text
    assert client_of(user).get(f"/projects/{cast.team_a.pk}/allocation").status_code in (403, 404)


def test_another_teams_is_not_there(cast: Cast, client: Client) -> None:
    client.force_login(cast.mallory)
    for path in ("", "/now", "/allocation", "/allocation?format=csv"):
        assert client.get(f"/projects/{cast.team_a.pk}{path}").status_code == 404, path


def test_what_is_asked_for_again_is_the_same_part(cast: Cast) -> None:
    a_workload(cast.team_a)
    part = html(cast.vera, f"/projects/{cast.team_a.pk}/now")
    assert '<div id="now"' in part
    assert "<html" not in part
    assert '<div id="now"' in page(cast, cast.vera)


def test_the_figures_of_its_chart(cast: Cast) -> None:
    add_sample(cast.team_a, 3, gpus_allocated=Decimal(2), gpus_quota=Decimal(2))
    add_sample(cast.team_b, 3, gpus_allocated=Decimal(9))
    found = client_of(cast.vera).get(f"/projects/{cast.team_a.pk}/allocation?range=1h").json()
    assert [line["name"] for line in found["lines"]] == ["team-a"]
    assert max(point or 0 for point in found["quota"]) == 2
    answer = client_of(cast.vera).get(f"/projects/{cast.team_a.pk}/allocation?range=1h&format=csv")
    assert 'filename="allocation-team-a.csv"' in answer["Content-Disposition"]


def test_the_queries_do_not_grow_with_the_workloads(cast: Cast) -> None:
    client = client_of(cast.vera)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(f"/projects/{cast.team_a.pk}").status_code == 200
        return len(captured)

    waits(cast)
    for status in ("Running", "Failed"):
        a_workload(
            cast.team_a, f"first-{status}", status=status, gpus_allocated=1, ended_at=timezone.now()
        )
    queries()
    few = queries()
    for number in range(20):
        waits(cast, f"waits-{number}")
    Workload.objects.bulk_create(
        Workload(
            project=cast.team_a,
            cluster=cast.cluster,
            name=f"w-{number}",
            spec={},
            status=("Running", "Failed", "Completed", "Pending")[number % 4],
            gpus_allocated=1,
            ended_at=timezone.now(),
        )
        for number in range(1000)
    )
    assert queries() <= few <= 40

"""Two submissions race for the last of a quota: one is admitted, the other is accepted, waits, and
says why; then its turn comes.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.test import Client

from clusters import connections
from clusters.kube import calls
from clusters.kube.resources import NAMESPACES, PODGROUPS
from projects.models import Department, Project, User
from tests.api.calling import Caller
from tests.at_once import at_once
from tests.cast import Cast
from tests.clusters.provisioning import provision_now
from tests.conformance.api import eventually
from tests.workloads.acting import SLEEP, Acting
from tests.workloads.conftest import requested_steps
from tests.workloads.wizarding import Walk
from workloads import actions, tasks
from workloads.models import Workload
from workloads.specs import decode_spec
from workloads.states import Status

__all__ = ["requested_steps"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("requested_steps")]
ROUNDS = 2
"""One in which the first comes by page, and one in which it comes by the REST API."""
OVER_QUOTA = "NonPreemptibleOverQuota"

Submit = Callable[[], Any]
Ways = dict[str, tuple[Project, User]]
"""By the name of a submission: to which project, and by whom."""


def by_page(cast: Cast, name: str, project: Project, user: User) -> Submit:
    """Everything of the wizard but its last button, which is what is to be pressed."""
    walk = Walk(cast, user.username).send_start(
        name=name, project=str(project.pk), architecture="Standard"
    )
    one_gpu = {
        "compute_choice": "custom",
        "gpu_devices": "1",
        "gpu_share": "whole",
        "cpu_request": "0.1",
        "memory_request": "10M",
    }
    walk.send_setup(
        environment_choice="custom",
        image="any",
        command=" ".join(SLEEP),
        preemptibility="non-preemptible",
        **one_gpu,
    )
    assert walk.step == "review", walk.text
    return walk.send


def by_rest(cast: Cast, name: str, project: Project, user: User) -> Submit:
    command = {"image": "any", "command": " ".join(SLEEP), "preemptibility": "non-preemptible"}
    one_gpu = {
        "compute": {"gpuDevicesRequest": 1, "cpuCoreRequest": 0.1, "cpuMemoryRequest": "10M"}
    }
    body = {
        "name": name,
        "projectId": str(project.pk),
        "clusterId": str(cast.cluster.pk),
        "spec": command | one_gpu,
    }
    caller = Caller(user)
    return lambda: caller("POST", "/workloads/trainings", body, 202)


def submit_and_launch(name: str, submit: Submit) -> None:
    """As a request and a worker do it, each in a thread and a connection of its own."""
    submit()
    workload = Workload.objects.get(name=name)
    eventually(
        lambda: tasks.launch(str(workload.pk)) or Workload.objects.get(pk=workload.pk).job_uid
    )


def reasons(acting: Acting, project: Project) -> list[str]:
    """Why the cluster says that something of the project waits."""
    groups = calls.list_page(acting.client, PODGROUPS, namespace=project.namespace).items
    conditions = [
        condition
        for group in groups
        for condition in group.get("status", {}).get("schedulingConditions") or ()
    ]
    return [
        reason["reason"] for condition in conditions for reason in condition.get("reasons") or ()
    ]


def by_status(names: list[str]) -> dict[str, list[Workload]]:
    found: dict[str, list[Workload]] = {}
    for each in Workload.objects.filter(name__in=names).select_related("project", "submitted_by"):
        found.setdefault(each.status, []).append(each)
    return found


def test_the_last_gpu_of_a_quota_goes_to_one_and_the_other_waits_for_it(live_cast: Cast) -> None:
    with_quota(live_cast.team_a, 1)
    of_a = (live_cast.team_a, live_cast.bob)
    run_races(
        live_cast,
        lambda number: dict.fromkeys((f"first-{number}", f"second-{number}"), of_a),
        "the project&#x27;s quota",
    )


def test_the_last_gpu_of_a_department_goes_to_one_of_its_projects_and_the_other_waits_for_it(
    live_cast: Cast,
) -> None:
    """Each of them has room in its own quota."""
    Department.objects.filter(pk=live_cast.research.pk).update(gpu_quota=Decimal(1))
    for project in (live_cast.team_a, live_cast.team_b):
        with_quota(project, 2)
    of_a, of_b = (live_cast.team_a, live_cast.bob), (live_cast.team_b, live_cast.mallory)
    run_races(
        live_cast,
        lambda number: {f"first-{number}": of_a, f"second-{number}": of_b},
        "quota of its department",
    )


def with_quota(project: Project, gpus: int) -> None:
    Project.objects.filter(pk=project.pk).update(gpu_quota=Decimal(gpus))
    assert provision_now(project).sync_error == ""


def run_races(cast: Cast, ways: Callable[[int], Ways], whose: str) -> None:
    """Several races, each between one that comes by page and one that comes by the REST API, for
    the last of what `whose` names.
    """
    acting = Acting(cast, connections.get_client(cast.cluster))
    try:
        for number in range(ROUNDS):
            roads = (by_page, by_rest) if number % 2 else (by_rest, by_page)
            entries = ways(number).items()
            racers = {
                name: road(cast, name, *whose)
                for road, (name, whose) in zip(roads, entries, strict=True)
            }
            at_once(*[partial(submit_and_launch, *racer) for racer in racers.items()])
            one_is_admitted(acting, list(racers), whose)
    finally:
        for project in {cast.team_a, cast.team_b}:
            if Project.objects.filter(pk=project.pk, synced_at__isnull=False).exists():
                calls.delete(acting.client, NAMESPACES, project.namespace)


def one_is_admitted(acting: Acting, names: list[str], whose: str) -> None:
    def find_decision() -> Any:
        acting.poll()
        found = by_status(names)
        return (
            found
            if len(found.get(Status.RUNNING, ())) == 1 and len(found.get(Status.PENDING, ())) == 1
            else None
        )

    found = eventually(lambda: (now := find_decision()) and now[Status.PENDING][0].reason and now)
    [winner], [waiting] = found[Status.RUNNING], found[Status.PENDING]
    assert not any(decode_spec(each.spec).is_preemptible for each in (winner, waiting))
    assert OVER_QUOTA in reasons(acting, waiting.project)
    assert "quota" in waiting.reason
    assert whose in _find_waiting_reason(waiting)
    # It stays so, however often one looks; and its turn comes when the other one ends.
    acting.poll()
    assert set(by_status(names)) == {Status.RUNNING, Status.PENDING}
    actions.stop(winner, acting.cast.alice)
    acting.repeat(tasks.stop, winner, lambda: winner.status == Status.STOPPED)
    acting.until(waiting, "Running")
    actions.remove(waiting, acting.cast.alice)
    acting.repeat(tasks.remove, waiting, lambda: waiting.released_at)


def _find_waiting_reason(waiting: Workload) -> str:
    """What the page says: in a sentence that it is the quota, and with what numbers."""
    assert waiting.submitted_by is not None
    client = Client()
    client.force_login(waiting.submitted_by)
    text = client.get(f"/workloads/{waiting.pk}").content.decode()
    assert "Why it waits: " in text
    sentence = text.partition("Why it waits: ")[2].partition("</p>")[0]
    assert "quota" in sentence
    assert "1" in sentence
    return sentence

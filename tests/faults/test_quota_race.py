"""Two submissions race for the last of a quota: one is admitted, the other is accepted, waits, and says why; then its turn comes."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from clusters import connections
from clusters.kube import calls
from clusters.kube.resources import NAMESPACES, PODGROUPS
from projects.models import Project
from tests.cast import Cast, a_spec
from tests.clusters.provisioning import provisioned
from tests.conformance.api import eventually
from tests.workloads.acting import SLEEP, Acting
from tests.workloads.conftest import asked
from tests.workloads.test_journal_at_once import at_once
from workloads import actions, tasks
from workloads.models import Workload
from workloads.specs import Architecture, Compute, Environment, Gpus, Lifecycle, Preemptibility, Setup, Spec
from workloads.states import Status

__all__ = ["asked"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("asked")]
ROUNDS = 4
OVER_QUOTA = "NonPreemptibleOverQuota"


def a_gpu(project: Project, name: str) -> Spec:
    setup = Setup(Environment("any", command=SLEEP), Compute(Gpus(devices=1), cpu_request="0.1", memory_request="10M"))
    firm = Lifecycle(preemptibility=Preemptibility.NON_PREEMPTIBLE)
    return a_spec(project, name, architecture=Architecture.STANDARD, framework=None, workers=1, setup=setup, lifecycle=firm)


def submitted(cast: Cast, name: str) -> None:
    """As a request and a worker do it, each in a thread and a connection of its own."""
    workload = actions.submit(a_gpu(cast.team_a, name), project=cast.team_a, by=cast.bob)
    eventually(lambda: tasks.launch(str(workload.pk)) or Workload.objects.get(pk=workload.pk).job_uid)


def reasons(acting: Acting) -> list[str]:
    """Why the cluster says that something waits."""
    groups = calls.list_page(acting.client, PODGROUPS, namespace=acting.project.namespace).items
    conditions = [condition for group in groups for condition in group.get("status", {}).get("schedulingConditions") or ()]
    return [reason["reason"] for condition in conditions for reason in condition.get("reasons") or ()]


def by_status(names: list[str]) -> dict[str, list[Workload]]:
    found: dict[str, list[Workload]] = {}
    for each in Workload.objects.filter(name__in=names):
        found.setdefault(each.status, []).append(each)
    return found


def test_the_last_gpu_of_a_quota_goes_to_one_and_the_other_waits_for_it(live_cast: Cast) -> None:
    acting = Acting(live_cast, connections.client(live_cast.cluster))
    Project.objects.filter(pk=live_cast.team_a.pk).update(gpu_quota=Decimal(1))
    live_cast.team_a = provisioned(Project.objects.select_related("department", "cluster").get(pk=live_cast.team_a.pk))
    try:
        for number in range(ROUNDS):
            names = [f"first-{number}", f"second-{number}"]
            at_once(*[lambda name=name: submitted(live_cast, name) for name in names])  # type: ignore[misc]
            race(acting, names)
    finally:
        calls.delete(acting.client, NAMESPACES, acting.project.namespace)


def race(acting: Acting, names: list[str]) -> None:
    def decided() -> Any:
        acting.poll()
        found = by_status(names)
        return found if len(found.get(Status.RUNNING, ())) == 1 and len(found.get(Status.PENDING, ())) == 1 else None

    found = eventually(lambda: (now := decided()) and now[Status.PENDING][0].reason and now)
    [winner], [waiting] = found[Status.RUNNING], found[Status.PENDING]
    assert OVER_QUOTA in reasons(acting)
    assert "quota" in waiting.reason
    _is_told(acting, waiting)
    # It stays so, however often one looks; and its turn comes when the other one ends.
    acting.poll()
    assert set(by_status(names)) == {Status.RUNNING, Status.PENDING}
    actions.stop(winner, acting.cast.bob)
    acting.repeat(tasks.stop, winner, lambda: winner.status == Status.STOPPED)
    acting.until(waiting, "Running")
    actions.remove(waiting, acting.cast.bob)
    acting.repeat(tasks.remove, waiting, lambda: waiting.released_at)


def _is_told(acting: Acting, waiting: Workload) -> None:
    """The page says in a sentence that it is the quota, and with what numbers."""
    client = Client()
    client.force_login(acting.cast.bob)
    text = client.get(f"/workloads/{waiting.pk}").content.decode()
    assert "Why it waits: " in text
    sentence = text.partition("Why it waits: ")[2].partition("</p>")[0]
    assert "quota" in sentence
    assert "1" in sentence

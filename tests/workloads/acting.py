"""The worker's steps in the embedded cluster, one by one.

No follower runs here, so the cluster is polled.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clusters.job_kinds import JOBS
from clusters.job_kinds.pytorch import PYTORCHJOBS
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.resources import PODS, Resource
from projects.models import Project
from tests.cast import Cast, a_spec
from tests.conformance.api import eventually
from workloads import journal, manifests, tasks
from workloads.models import Pod, Workload
from workloads.specs import Architecture, Environment, Setup

Object = dict[str, Any]

SLEEP = ("sleep", "600")
QUICK = ("sh", "-c", "echo hello")


@dataclass
class Acting:
    cast: Cast
    client: Client

    @property
    def project(self) -> Project:
        return self.cast.team_a

    def submit(
        self, name: str = "train1", command: tuple[str, ...] = SLEEP, **changes: Any
    ) -> Workload:
        """Submit a standard workload of one pod, unless changed; its first step is not done yet."""
        setup = Setup(environment=Environment(image="any", command=command))
        fields = {
            "architecture": Architecture.STANDARD,
            "framework": None,
            "workers": 1,
            "setup": setup,
        } | changes
        return journal.create_workload(
            a_spec(self.project, name, **fields), project=self.project, user=self.cast.bob
        )

    def submit_distributed(
        self, name: str = "train1", command: tuple[str, ...] = SLEEP, **changes: Any
    ) -> Workload:
        setup = Setup(environment=Environment(image="any", command=command))
        return journal.create_workload(
            a_spec(self.project, name, setup=setup, workers=1, **changes),
            project=self.project,
            user=self.cast.bob,
        )

    def objects(self, workload: Workload, resource: Resource) -> list[Object]:
        """Fetch the workload's objects of all attempts."""
        labels = manifests.build_selector(str(workload.pk))
        return calls.list_page(
            self.client, resource, namespace=self.project.namespace, labels=labels
        ).items

    def jobs(self, workload: Workload) -> list[Object]:
        return [*self.objects(workload, JOBS), *self.objects(workload, PYTORCHJOBS)]

    def pods(self, workload: Workload) -> list[Object]:
        return self.objects(workload, PODS)

    def poll(self) -> None:
        tasks.poll(str(self.cast.cluster.pk))

    def until(self, workload: Workload, *statuses: str) -> Workload:
        """Poll the cluster until the workload has one of these statuses."""

        def has_status() -> bool:
            self.poll()
            workload.refresh_from_db()
            return workload.status in statuses

        eventually(has_status)
        return workload

    def repeat(self, step: Any, workload: Workload, until: Callable[[], Any]) -> Workload:
        """Run a step again, as its own messages would, until `until` is true."""

        def is_done() -> bool:
            step(str(workload.pk))
            workload.refresh_from_db()
            return bool(until())

        eventually(is_done)
        return workload

    def logs_are_kept(self, workload: Workload) -> None:
        """Mark the logs as kept, as the logbook does once it has read everything."""
        Pod.objects.filter(workload=workload).update(logs_kept=True)

"""Muster on its way through a cluster: the cluster is registered, a project made, and the worker's
steps are done in turn.

Nobody queues a step here, so each turn does the one that the sweep would ask for. What happens in
the cluster is followed.
"""

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from clusters import actions as clusters
from clusters import connections
from clusters import tasks as cluster_tasks
from clusters.capabilities import TrainingRuntime
from clusters.job_kinds import JOB_KINDS
from clusters.models import Cluster
from projects.models import Department, Project, User
from tests.conformance.api import Api, Object, eventually
from tests.journeys import jobs
from tests.journeys.place import Place
from tests.journeys.standin import StandIn, empty_namespace
from workloads import actions, logbook, manifests
from workloads.following import Follower
from workloads.manifests.keys import KAI
from workloads.models import Event, Workload
from workloads.specs import (
    Architecture,
    Compute,
    Configuration,
    Environment,
    Framework,
    Lifecycle,
    RestartPolicy,
    Setup,
    Spec,
)
from workloads.tasks.sweeping import find_next_step

PATIENCE = 180.0


@dataclass
class Journey:
    """One project in a cluster, and somebody who may do everything there."""

    place: Place
    api: Api
    cluster: Cluster
    project: Project
    by: User
    standin: StandIn

    @property
    def namespace(self) -> str:
        return self.project.namespace

    def spec(self, framework: Framework | None, script: str, **changes: Any) -> Spec:
        """A workload of two pods, or without a framework of one, that runs a shell script."""
        environment = Environment(self.place.image, command=("/bin/sh", "-c", script))
        fields: dict[str, Any] = {
            "setup": Setup(environment, Compute(cpu_request="10m", memory_request="16M"))
        }
        if framework is not None:
            fields |= {
                "architecture": Architecture.DISTRIBUTED,
                "framework": framework,
                "workers": 1,
            }
        if framework is Framework.JAX:
            fields |= {"configuration": Configuration.WORKERS_ONLY, "workers": 2}
        project = self.project
        fields |= {"project": project.name, "namespace": project.namespace, "queue": project.queue}
        return Spec(name=f"journey-{secrets.token_hex(3)}", **(fields | changes))

    @property
    def is_trainjob(self) -> bool:
        """Whether frameworks become TrainJobs, whose runtime decides how often a pod is tried
        again.
        """
        return not any(
            self.cluster.can.serves(f"{kind.api_version}/{kind.plural}")
            for kind in jobs.KINDS[1:-1]
        )

    def submit(self, spec: Spec) -> Workload:
        return actions.submit(spec, project=self.project, user=self.by)

    def once(self) -> Lifecycle:
        """That a pod is not tried again."""
        return (
            Lifecycle()
            if self.is_trainjob
            else Lifecycle(restart_policy=RestartPolicy.NEVER, backoff_limit=0)
        )

    def turn(self, workload: Workload) -> None:
        """Everybody does one thing."""
        self.standin.turn()
        workload.refresh_from_db()
        step = find_next_step(
            workload.status, workload.desired, workload.job_uid, workload.released_at is not None
        )
        if step is not None:
            step(str(workload.pk))
        workload.refresh_from_db()

    def until(self, workload: Workload, done: Callable[[], Any]) -> Workload:
        """Turn after turn until it is so."""

        def is_so() -> bool:
            self.turn(workload)
            return bool(done())

        try:
            eventually(is_so, PATIENCE)
        except AssertionError as error:
            events = list(
                Event.objects.filter(workload=workload).values_list("kind", "new", "reason", "text")
            )
            raise AssertionError(
                f"{workload.status} ({workload.reason or workload.trouble}): {error}; {events}"
            ) from error
        return workload

    def until_status(self, workload: Workload, *statuses: str) -> Workload:
        return self.until(workload, lambda: workload.status in statuses)

    def there(self, workload: Workload) -> list[Object]:
        """Every job and pod of it in the cluster."""
        paths = [
            JOB_KINDS[workload.job_kind].path(self.namespace),
            f"/api/v1/namespaces/{self.namespace}/pods",
        ]
        return [
            each
            for path in paths
            for each in self.api.get(
                path, labelSelector=manifests.build_selector(str(workload.pk))
            ).ok()["items"]
        ]

    def everything(self) -> list[str]:
        """What is in the namespace of jobs, pods and claims, whoever made it."""
        paths = [kind.path(self.namespace) for kind in jobs.list_served_kinds(self.api)]
        paths += [
            f"/api/v1/namespaces/{self.namespace}/{plural}"
            for plural in ("pods", "persistentvolumeclaims")
        ]
        return [
            each["metadata"]["name"] for path in paths for each in self.api.get(path).ok()["items"]
        ]

    def only_trainjobs(self) -> None:
        """Let Muster know of nothing but TrainJobs, and of a runtime for PyTorch; where they are
        really run, of those that there are.
        """
        can = self.cluster.can
        served = frozenset(each for each in can.served if not each.startswith("kubeflow.org/"))
        plain = (TrainingRuntime("journey-torch", "torch", KAI if can.has_kai else ""),)
        can = replace(can, served=served, runtimes=can.runtimes if self.place.operators else plain)
        Cluster.objects.filter(pk=self.cluster.pk).update(capabilities=can.to_json())
        self.cluster.refresh_from_db()
        self.project.cluster = self.cluster


@contextmanager
def journey(place: Place, api: Api, by: User) -> Iterator[Journey]:
    """A cluster that answers and a project that is made in it; nothing of either is left there
    afterwards, whatever happens.
    """
    mark = secrets.token_hex(4)
    before = _priority_classes(api)
    cluster = clusters.register(f"journey {mark}", place.kubeconfig.read_text())
    department = Department.objects.create(name=f"journeys-{mark}")
    project = Project.objects.create(
        name=f"journey-{mark}",
        department=department,
        cluster=cluster,
        namespace=f"muster-journey-{mark}",
        queue=f"journey-{mark}",
    )
    standin = StandIn(api, place, project.namespace)
    try:
        cluster_tasks.heartbeat(str(cluster.pk))
        cluster_tasks.provision(project.pk)
        cluster.refresh_from_db()
        project = Project.objects.select_related("cluster", "department").get(pk=project.pk)
        assert (cluster.trouble, project.sync_error) == ("", "")
        yield Journey(place, api, cluster, project, by, standin)
    finally:
        empty_namespace(api, place, project.namespace)
        standin.close()
        for queue in (project.queue, f"department-{department.name}"):
            api.delete(f"/apis/scheduling.run.ai/v2/queues/{queue}")
        for name in _priority_classes(api) - before:
            api.delete(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")
        connections.close_all()


@contextmanager
def following() -> Iterator[None]:
    """Every cluster is followed, and the logs of its pods are read."""
    stop = threading.Event()
    threads = [
        threading.Thread(target=each.run, args=(stop,)) for each in (Follower(), logbook.Capturer())
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _priority_classes(api: Api) -> set[str]:
    ours = api.get(
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        labelSelector="app.kubernetes.io/managed-by=muster",
    ).ok()["items"]
    return {each["metadata"]["name"] for each in ours}

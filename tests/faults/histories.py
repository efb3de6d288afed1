"""What a history is made of: people, a cluster in which the test is operator and kubelet, and
faults in between.
"""

import contextlib
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from clusters.capabilities import PODGROUPS as GROUPS
from clusters.capabilities import Capabilities
from clusters.job_kinds import JOBS
from clusters.job_kinds.pytorch import PYTORCHJOBS
from clusters.kube import calls, watch
from clusters.kube.access import ClusterAccess
from clusters.kube.client import Client, Timeouts
from clusters.kube.errors import Conflict, Gone, KubeError, Rejected
from clusters.kube.rate_limits import RateLimiter
from clusters.kube.resources import CONFIGMAPS, EVENTS, NAMESPACES, PODGROUPS, PODS, Resource
from console.celery import Step
from console.errors import Clash
from tests.cast import Cast
from tests.conformance.api import eventually
from tests.faults import mishaps, operating
from tests.faults.operating import CONDITIONS, PHASES, Object
from tests.faults.proxy import Proxy, pass_unchanged
from tests.workloads.acting import Acting
from workloads import journal, manifests, tasks
from workloads.following import sources
from workloads.following.cluster_follower import ClusterFollower
from workloads.models import Pod, Workload
from workloads.states import ENDING, RESTING

HASTY = Timeouts(connect=1.0, read=0.15, total=0.5, rate_limit=0.05)
BRISK = watch.WatchTimings(watch=1, slack=-0.97, first_retry=0.0, longest_retry=0.0)
HELD = {"localkube.muster.dev/hold": "true"}
FINALIZER = "example.com/hold"

SERVED = Capabilities(served=frozenset(("batch/v1/jobs", "kubeflow.org/v1/pytorchjobs", GROUPS)))
ASKS = {
    "stop": journal.request_stop,
    "run": journal.request_run,
    "delete": journal.request_deletion,
}
STEPS: dict[str, Step] = {
    "launch": tasks.launch,
    "stop": tasks.stop,
    "remove": tasks.remove,
    "reconcile": tasks.reconcile,
    "tidy": tasks.tidy,
}


class InstantEvent:
    """An event whose waits take no time: a wait for it is over at once."""

    def __init__(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True

    def wait(self, timeout: float | None = None) -> bool:
        return self._set


@dataclass(frozen=True)
class Clients:
    """How the cluster is asked: straight, and through the proxy by somebody with little patience or
    with the usual.
    """

    direct: Client
    hasty: Client
    patient: Client

    @classmethod
    @contextlib.contextmanager
    def of(cls, direct: ClusterAccess, proxy: ClusterAccess) -> Iterator["Clients"]:
        pace = RateLimiter(1e6, 1_000_000)
        with (
            Client(direct, rate_limiter=pace) as one,
            Client(proxy, rate_limiter=pace, timeouts=HASTY) as two,
            Client(proxy, rate_limiter=pace) as three,
        ):
            yield cls(one, two, three)


class History:
    """One history. Every method named in a step takes two numbers, which choose what it is about;
    one that finds nothing does nothing.
    """

    def __init__(
        self,
        cast: Cast,
        proxy: Proxy,
        clients: "Clients",
        requested_steps: list[tuple[str, ...]],
        seed: int,
    ) -> None:
        self.cast, self.proxy, self.direct, self.requested_steps = (
            cast,
            proxy,
            clients.direct,
            requested_steps,
        )
        self.chance = random.Random(seed)
        self.namespace = cast.team_a.namespace
        self.client, self._patient = clients.hasty, clients.patient
        self.acting = Acting(cast, clients.direct)
        self.foreign: set[str] = set()
        self.ends: set[str] = set()
        """The uids of the jobs that have ever had an end."""
        self.behind: set[str] = set()
        """The uids of the jobs that were deleted behind our back."""
        self._sources = list(sources.list_sources(SERVED))
        self._told: dict[int, Any] = {}
        self._following = ClusterFollower(cast.cluster.pk)
        self._stop = InstantEvent()
        proxy.mutate = operating.without_controller
        proxy.shift = 0
        proxy.tokens = {proxy.access.token or ""}
        proxy.requests.clear()

    def close(self) -> None:
        """End what was begun, and take out of the cluster what the history made."""
        self.proxy.choose = lambda request: pass_unchanged
        for told in self._told.values():
            told.close()
        for each in self._all(PODS):
            if each["metadata"].get("finalizers"):
                calls.patch(
                    self.direct,
                    PODS,
                    each["metadata"]["name"],
                    {"metadata": {"finalizers": None}},
                    namespace=self.namespace,
                )
        for resource in (PYTORCHJOBS, JOBS, PODS, PODGROUPS, EVENTS):
            calls.delete_collection(
                self.direct, resource, namespace=self.namespace, labels="", grace_seconds=0
            )
        calls.delete(self.direct, NAMESPACES, self.namespace)

    def nothing(self, a: int, b: int) -> None:
        """What a history that is made shorter has in the place of a step."""

    # People, and the worker.

    def submit(self, a: int, b: int) -> None:
        with contextlib.suppress(Clash):
            (self.acting.submit, self.acting.submit_distributed)[b % 2](f"w{a % 3}")

    def ask(self, a: int, b: int) -> None:
        workload = self._workload(a)
        if workload is not None:
            name = ("stop", "stop", "run", "run", "delete")[b % 5]
            with contextlib.suppress(Clash):
                if ASKS[name](workload.pk, None):
                    self.requested_steps.append(
                        (
                            {"stop": "stop", "run": "launch", "delete": "remove"}[name],
                            str(workload.pk),
                        )
                    )

    def work(self, a: int, b: int) -> None:
        """A step whose message may be late, twice, or of long ago; or one that nobody asked for."""
        Pod.objects.update(logs_kept=True)
        messages = [each for each in self.requested_steps if each[0] in STEPS]
        workload = self._workload(a)
        if messages and b % 4:
            name, *arguments = messages[a % len(messages)]
            if b % 4 > 1:
                self.requested_steps.remove((name, *arguments))
            STEPS[name](arguments[0], *map(int, arguments[1:]))
        elif workload is not None:
            launches = workload.status not in RESTING | ENDING and not workload.job_uid
            (tasks.launch if launches else [*STEPS.values()][b % len(STEPS)])(str(workload.pk))

    def sweep(self, a: int, b: int) -> None:
        tasks.sweep()

    def poll(self, a: int, b: int) -> None:
        tasks.poll(str(self.cast.cluster.pk))

    def follow(self, a: int, b: int) -> None:
        """Some of what one list-watch tells."""
        number = a % len(self._sources)
        source = self._sources[number]
        try:
            for _ in range(b % 4 + 1):
                told = self._told.get(number)
                if told is None:
                    stop: Any = self._stop
                    told = self._told[number] = sources.watch_source(
                        self.cast.cluster.pk, source, self.client, stop, BRISK
                    )
                item = next(told)
                self._following._write_batch([item])
                if isinstance(item, sources.SourceFailed):
                    break
        except (KubeError, StopIteration):
            self._told.pop(number).close()

    # The operator and the kubelet.

    def make_pods(self, a: int, b: int) -> None:
        """The pods that a job lacks."""
        job = self._job(a)
        if job is None or job["metadata"].get("deletionTimestamp"):
            return
        for role, index, template in operating.replicas(job):
            name = f"{job['metadata']['name']}-{role}-{index}"
            if b % 3 or index == 0:
                self._make_pod(
                    name,
                    template,
                    operating.owned_by(job),
                    operating.replica_labels(role, index, job),
                )

    def move_pod(self, a: int, b: int) -> None:
        pod = self._one(PODS, a)
        if pod is None:
            return
        phase = PHASES[b % len(PHASES)]
        name = pod["metadata"]["name"]
        with contextlib.suppress(Gone, Conflict, Rejected):
            if phase != "Pending" and not pod["spec"].get("nodeName"):
                calls.patch(
                    self.direct,
                    PODS,
                    name,
                    {"spec": {"nodeName": "somewhere"}},
                    namespace=self.namespace,
                )
            if pod["status"].get("phase") not in ("Succeeded", "Failed"):
                status = {"status": operating.pod_status(phase)}
                calls.patch(
                    self.direct, PODS, name, status, namespace=self.namespace, subresource="status"
                )

    def remove_pod(self, a: int, b: int) -> None:
        """A pod goes at once, or lingers, or one that lingers goes."""
        pod = self._one(PODS, a)
        if pod is None or pod["metadata"]["uid"] in self.foreign:
            return
        name, holds = pod["metadata"]["name"], pod["metadata"].get("finalizers")
        with contextlib.suppress(Gone, Rejected):
            if b % 3 == 0 and not holds and not pod["metadata"].get("deletionTimestamp"):
                calls.patch(
                    self.direct,
                    PODS,
                    name,
                    {"metadata": {"finalizers": [FINALIZER]}},
                    namespace=self.namespace,
                )
            if b % 3 == 1 and holds:
                calls.patch(
                    self.direct,
                    PODS,
                    name,
                    {"metadata": {"finalizers": None}},
                    namespace=self.namespace,
                )
            calls.delete(self.direct, PODS, name, namespace=self.namespace, grace_seconds=0)

    def move_job(self, a: int, b: int) -> None:
        job = self._job(a)
        if job is None:
            return
        resource = operating.resource_of(job)
        kind = CONDITIONS[b % len(CONDITIONS)]
        if kind in ("Succeeded", "Failed"):
            self.ends.add(job["metadata"]["uid"])
        status = operating.job_status(job, kind)
        with contextlib.suppress(Gone, Rejected):
            calls.patch(
                self.direct,
                resource,
                job["metadata"]["name"],
                status,
                namespace=self.namespace,
                subresource="status",
            )

    def remove_job(self, a: int, b: int) -> None:
        """A job is deleted behind our back, with its pods or without them."""
        job = self._job(a)
        if job is None:
            return
        self.behind.add(job["metadata"]["uid"])
        how: Any = ("Background", "Orphan", "Foreground")[b % 3]
        with contextlib.suppress(Gone):
            calls.delete(
                self.direct,
                operating.resource_of(job),
                job["metadata"]["name"],
                namespace=self.namespace,
                propagation=how,
            )

    def make_group(self, a: int, b: int) -> None:
        job = self._job(a)
        if job is None:
            return
        name = f"pg-{job['metadata']['name']}-{job['metadata']['uid']}"
        body = {
            "apiVersion": PODGROUPS.api_version,
            "kind": "PodGroup",
            "metadata": {"name": name},
            "spec": {"minMember": 2},
        }
        body["metadata"] |= {"ownerReferences": [operating.owned_by(job)]}  # type: ignore[operator]
        # The cluster collects it at once where its job has just been deleted.
        with contextlib.suppress(Gone, Rejected):
            calls.apply(self.direct, PODGROUPS, name, body, namespace=self.namespace, force=True)
            why = {
                "type": "UnschedulableOnNodePool",
                "status": "True",
                "reason": "Unschedulable",
                "message": f"full {b}",
            }
            status = {"status": {"schedulingConditions": [why] if b % 2 else []}}
            calls.patch(self.direct, PODGROUPS, name, status, namespace=self.namespace)

    def make_event(self, a: int, b: int) -> None:
        pod = self._one(PODS, a)
        if pod is None:
            return
        about = {
            "kind": "Pod",
            "namespace": self.namespace,
            "name": pod["metadata"]["name"],
            "uid": pod["metadata"]["uid"],
        }
        said = {
            "reason": f"Reason{b % 3}",
            "message": "something",
            "type": "Warning",
            "involvedObject": about,
        }
        metadata = {
            "name": f"event-{uuid.UUID(int=self.chance.getrandbits(128))}",
            "namespace": self.namespace,
        }
        calls.create(self.direct, EVENTS, {"metadata": metadata, **said}, namespace=self.namespace)

    # Somebody else.

    def make_foreign(self, a: int, b: int) -> None:
        """What bears our labels and belongs to somebody else; or what nobody has asked for: an
        older attempt's, another job of the name.
        """
        workload = self._workload(a)
        if workload is None:
            return
        labels = {
            manifests.MANAGED_BY: manifests.MUSTER,
            manifests.WORKLOAD: str(workload.pk),
            manifests.ATTEMPT: str(max(1, workload.attempt - b // 4 % 2)),
        }
        owner = self._somebody()
        template = {"spec": {"containers": [{"name": "main", "image": "any"}]}}
        match b % 4:
            case 0 | 1:
                self._make_pod(
                    f"{workload.name}-{'worker-0' if b % 2 else 'copied'}",
                    template,
                    owner,
                    labels,
                    is_foreign=True,
                )
            case 2:
                # A job of another kind under the name.
                self._make_job(
                    JOBS if workload.framework else PYTORCHJOBS, workload.name, labels, None
                )
            case 3:
                self._make_job(
                    PYTORCHJOBS if workload.framework else JOBS, workload.name, labels, owner
                )

    # What is between.

    def faults(self, a: int, b: int) -> None:
        """From now on so many requests go wrong, each in one of a few ways."""
        chosen = self.chance.sample([*mishaps.FAULTS.values()], a % 4 + 1)
        self.proxy.choose = mishaps.by_chance(self.chance, (0.2, 0.5, 1.0)[b % 3], chosen)

    def fault(self, a: int, b: int) -> None:
        """From now on every request goes wrong in one way."""
        self.proxy.choose = mishaps.by_chance(
            self.chance, 1.0, [[*mishaps.FAULTS.values()][a % len(mishaps.FAULTS)]]
        )

    def calm(self, a: int, b: int) -> None:
        self.proxy.choose = mishaps.by_chance(self.chance, 0.0, [pass_unchanged])

    def restart(self, a: int, b: int) -> None:
        """The server comes back with other versions, lower or higher than before."""
        self.proxy.shift = (0, 1_000, 1_000_000)[a % 3]

    # What is there.

    def at_rest(self) -> None:
        """Wait until the cluster does nothing any more: pods whose owner has gone go with it."""

        def is_quiet() -> bool:
            found = [
                each["metadata"]
                for resource in (PYTORCHJOBS, JOBS, PODS, PODGROUPS, CONFIGMAPS)
                for each in self._all(resource)
            ]
            there = {each["uid"] for each in found}
            stays = [each for each in found if not each.get("deletionTimestamp")]
            return all(
                owner["uid"] in there for each in stays for owner in each.get("ownerReferences", ())
            )

        eventually(is_quiet)

    def all_calm(self) -> None:
        """The faults are over, and whoever asks now has patience."""
        self.calm(0, 0)
        self.client = self._patient

    def listed(self) -> dict[str, list[Object]]:
        """What is in the cluster, from the cluster itself, with the versions that the proxy shows
        of it.
        """
        found = {"job": self._jobs(), "pod": self._all(PODS), "podgroup": self._all(PODGROUPS)}
        for each in (each for some in found.values() for each in some):
            each["metadata"]["resourceVersion"] = str(
                int(each["metadata"]["resourceVersion"]) + self.proxy.shift
            )
        return found

    def _jobs(self) -> list[Object]:
        batch = [{"apiVersion": "batch/v1", "kind": "Job", **each} for each in self._all(JOBS)]
        return [*self._all(PYTORCHJOBS), *batch]

    def _all(self, resource: Resource) -> list[Object]:
        return calls.list_page(self.direct, resource, namespace=self.namespace).items

    def _one(self, resource: Resource, number: int) -> Object | None:
        found = self._all(resource)
        return found[number % len(found)] if found else None

    def _job(self, number: int) -> Object | None:
        found = [each for each in self._jobs() if each["metadata"]["uid"] not in self.foreign]
        return found[number % len(found)] if found else None

    def _workload(self, number: int) -> Workload | None:
        found = list(Workload.objects.filter(released_at=None).order_by("created_at", "pk"))
        return found[number % len(found)] if found else None

    def _make_pod(
        self,
        name: str,
        template: Object,
        owner: Object | None,
        labels: Object,
        *,
        is_foreign: bool = False,
    ) -> None:
        given = template.get("metadata") or {}
        metadata = {
            "name": name,
            "labels": {**given.get("labels", {}), **labels},
            "annotations": {**given.get("annotations", {}), **HELD},
        }
        metadata |= {"ownerReferences": [owner]} if owner else {}
        spec = {**template["spec"], "restartPolicy": "Never", "schedulerName": "nobody"}
        with contextlib.suppress(Conflict):
            made = calls.create(
                self.direct,
                PODS,
                {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec},
                namespace=self.namespace,
            )
            if is_foreign:
                self.foreign.add(made["metadata"]["uid"])

    def _make_job(
        self, resource: Resource, name: str, labels: Object, owner: Object | None
    ) -> None:
        metadata = {"name": name, "labels": labels} | (
            {"ownerReferences": [owner]} if owner else {}
        )
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "pytorch", "image": "any"}], "restartPolicy": "Never"},
        }
        body: Object = {
            "apiVersion": resource.api_version,
            "kind": "Job" if resource == JOBS else "PyTorchJob",
            "metadata": metadata,
        }
        body["spec"] = (
            {"template": template}
            if resource == JOBS
            else {"pytorchReplicaSpecs": {"Worker": {"replicas": 1, "template": template}}}
        )
        operating.without_controller(body)
        with contextlib.suppress(Conflict):
            self.foreign.add(
                calls.create(self.direct, resource, body, namespace=self.namespace)["metadata"][
                    "uid"
                ]
            )

    def _somebody(self) -> Object:
        """The owner reference of something that is not ours and there."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "somebody"}}
        made = calls.apply(self.direct, CONFIGMAPS, "somebody", body, namespace=self.namespace)
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "somebody",
            "uid": made["metadata"]["uid"],
            "controller": True,
        }

"""What a history is made of: people, a cluster in which the test is operator and kubelet
(`history_steps`), and faults in between.
"""

import contextlib
import random
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
from clusters.kube.errors import KubeError
from clusters.kube.rate_limits import RateLimiter
from clusters.kube.resources import CONFIGMAPS, EVENTS, NAMESPACES, PODGROUPS, PODS
from console.celery import Step
from console.errors import Clash
from tests.cast import Cast
from tests.conformance.api import eventually
from tests.faults import mishaps, operating
from tests.faults.history_steps import ClusterSteps
from tests.faults.operating import Object
from tests.faults.proxy import Proxy, pass_unchanged
from tests.workloads.acting import Acting
from workloads import journal, tasks
from workloads.following import sources
from workloads.following.cluster_follower import ClusterFollower
from workloads.models import Pod
from workloads.states import ENDING, RESTING

HASTY = Timeouts(connect=1.0, read=0.15, total=0.5, rate_limit=0.05)
BRISK = watch.WatchTimings(watch=1, slack=-0.97, first_retry=0.0, longest_retry=0.0)

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


class History(ClusterSteps):
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
        super().__init__(clients.direct, cast.team_a.namespace, random.Random(seed))
        self.cast, self.proxy, self.requested_steps = cast, proxy, requested_steps
        self.client, self._patient = clients.hasty, clients.patient
        self.acting = Acting(cast, clients.direct)
        self._sources = list(sources.list_sources(SERVED))
        self._streams: dict[int, Any] = {}
        self._following = ClusterFollower(cast.cluster.pk)
        self._stop = InstantEvent()
        proxy.mutate = operating.without_controller
        proxy.shift = 0
        proxy.tokens = {proxy.access.token or ""}
        proxy.requests.clear()

    def close(self) -> None:
        """End what was begun, and take out of the cluster what the history made."""
        self.proxy.choose = lambda request: pass_unchanged
        for stream in self._streams.values():
            stream.close()
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
                stream = self._streams.get(number)
                if stream is None:
                    stop: Any = self._stop
                    stream = self._streams[number] = sources.watch_source(
                        self.cast.cluster.pk, source, self.client, stop, BRISK
                    )
                item = next(stream)
                self._following._write_batch([item])
                if isinstance(item, sources.SourceFailed):
                    break
        except (KubeError, StopIteration):
            self._streams.pop(number).close()

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

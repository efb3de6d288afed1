"""Records runs of known length on an embedded cluster: when each had its nodes, and ended."""

import statistics
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

from tests.cluster import LocalKube
from tests.conformance.api import Api, Object, eventually
from tests.simulation.recording import (
    NODES,
    PodLife,
    QueuePlan,
    Recording,
    RunPlan,
)
from tests.training import JOBS, PODS, job, replica

RUNS = 30
PROBES = 3
"""Runs alone before all others, which show how much longer than its sleep a run lasts."""
SUBMIT_SECONDS = 0.25
WITHIN = 240.0
QUEUES = (QueuePlan("vision", 4, limit=4), QueuePlan("speech", 4, limit=4))
SIZES = ((1, 1), (1, 1), (1, 1), (1, 2), (1, 2), (1, 3), (1, 4), (2, 1), (2, 1), (3, 1), (2, 2))
"""Pods of a gang, and GPUs of each."""
PRIORITIES = ("train", "train", "train", "build-preemptible", "build")
SLEEP = """
file={folder}/$HOSTNAME; past=$(cat $file 2>/dev/null || echo 0); begun=$(date +%s%3N)
trap 'echo $((past + $(date +%s%3N) - begun)) > $file; kill $!; exit 1' TERM
left=$(({milliseconds} - past)); [ $left -gt 0 ] || exit 0
sleep $(printf %d.%03d $((left / 1000)) $((left % 1000))) & wait $!
"""
"""Sleeps for so many milliseconds in all, and goes on where it was after it has given way."""

GUARANTEED = {"vision": 4, "speech": 4}
"""What work that is not preemptible may have: more would never start."""


def plan_runs(seed: int) -> Sequence[RunPlan]:
    """Return gangs of several queues, sizes, priorities and lengths."""
    draw = Random(seed)
    plans = []
    for number in range(RUNS):
        queue = draw.choice(QUEUES)
        pods, gpus = draw.choice(SIZES)
        priority = draw.choice(PRIORITIES)
        if priority == "build" and pods * gpus > GUARANTEED[queue.name]:
            priority = "build-preemptible"
        # Runs of whole seconds would end together, and chance would say whose end comes first.
        seconds = round(draw.uniform(3, 20), 2)
        plans.append(RunPlan(f"run-{number:02}", queue.name, pods, gpus, priority, seconds))
    return plans


class PodWatch:
    """Notes what a watch says of pods, with the time at which it says so."""

    def __init__(self, api: Api) -> None:
        self.lives: dict[str, PodLife] = {}
        self.leaving: set[str] = set()
        """Uids of the pods that are to end and have not."""
        self.begun = time.monotonic()
        self._api = api
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._is_stopped.set()
        self._thread.join()

    @property
    def now(self) -> float:
        return round(time.monotonic() - self.begun, 3)

    def count_pods(self, gang: str) -> int:
        """Return how many pods of a gang there are or were."""
        return sum(life.gang == gang for life in list(self.lives.values()))

    def count_ended(self, gang: str) -> int:
        return sum(
            life.gang == gang and life.ended is not None for life in list(self.lives.values())
        )

    def _follow(self) -> None:
        while not self._is_stopped.is_set():
            # Each watch begins with all that is there, and ends soon enough to be stopped.
            with self._api.watch(PODS, timeoutSeconds=20) as stream:
                for frame in stream:
                    self._note(frame["type"], frame["object"])

    def _note(self, kind: str, pod: Object) -> None:
        gang = pod["metadata"]["labels"]["training.kubeflow.org/job-name"]
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        life = self.lives.setdefault(uid, PodLife(gang, name, created=self.now))
        status = pod.get("status", {})
        if life.bound is None and pod["spec"].get("nodeName"):
            life.node, life.bound = pod["spec"]["nodeName"], self.now
        if life.started is None and status.get("phase") == "Running":
            life.started = self.now
        is_over = kind == "DELETED" or status.get("phase") in ("Succeeded", "Failed")
        if pod["metadata"].get("deletionTimestamp"):
            self.leaving.add(uid)
        if is_over:
            self.leaving.discard(uid)
        if life.ended is None and is_over:
            life.ended, life.is_whole = self.now, status.get("phase") == "Succeeded"


def record_runs(seed: int, folder: Path) -> Recording:
    """Run it all on a cluster of its own, which takes about three minutes."""
    shapes = ",".join(f"1x{gpus}gpu" for gpus in NODES.values())
    progress = folder / "progress"
    progress.mkdir()
    options = ("--nodes", shapes, "--cpus", "64", "--memory", "64Gi")
    with LocalKube(folder / "data", *options, "--allow-host-path", str(progress)) as cluster:
        api = Api.from_kubeconfig(cluster.kubeconfig)
        watch = PodWatch(Api.from_kubeconfig(cluster.kubeconfig))
        try:
            return _record(api, watch, seed, progress)
        finally:
            watch.stop()
            api.close()


def _has_ended(watch: PodWatch, plan: RunPlan) -> bool:
    return watch.count_ended(plan.key) == plan.pods


def _record(api: Api, watch: PodWatch, seed: int, progress: Path) -> Recording:
    for queue in (QueuePlan("laboratory", sum(NODES.values())), *QUEUES):
        parent = "" if queue.name == "laboratory" else "laboratory"
        api.post("/apis/scheduling.run.ai/v2/queues", build_queue(queue, parent)).ok(201)
    probes = [RunPlan(f"probe-{number}", "vision", 2, 1, "train", 3) for number in range(PROBES)]
    for probe in probes:
        api.post(JOBS, build_job(probe, progress)).ok(201)
        eventually(partial(_has_ended, watch, probe))
    overhead = statistics.median(
        (life.ended or 0.0) - (life.bound or 0.0) - 3 for life in watch.lives.values()
    )
    plans = plan_runs(seed)
    for plan in plans:
        api.post(JOBS, build_job(plan, progress)).ok(201)
        time.sleep(SUBMIT_SECONDS)
    eventually(lambda: all(watch.count_pods(plan.key) >= plan.pods for plan in plans))
    eventually(lambda: not watch.leaving)
    submitted_at = watch.now
    eventually(lambda: _is_over(api, plans), WITHIN)
    # The watch may still have the last words to say.
    eventually(lambda: all(life.ended is not None for life in list(watch.lives.values())))
    keys = {plan.key for plan in plans}
    lives = [life for life in watch.lives.values() if life.gang in keys]
    lives.sort(key=lambda life: (life.created, life.gang))
    return Recording(seed, submitted_at, round(overhead, 3), QUEUES, plans, lives)


def _is_over(api: Api, plans: Sequence[RunPlan]) -> bool:
    time.sleep(0.5)
    jobs = {each["metadata"]["name"]: each for each in api.get(JOBS).ok()["items"]}
    return all(
        any(
            condition["type"] in ("Succeeded", "Failed") and condition["status"] == "True"
            for condition in jobs[plan.key].get("status", {}).get("conditions", [])
        )
        for plan in plans
    )


def build_queue(queue: QueuePlan, parent: str) -> Object:
    """Build a queue with bounds on GPUs alone."""
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    limit = -1 if queue.limit is None else queue.limit
    gpu = {"quota": queue.quota, "limit": limit, "overQuotaWeight": 1}
    spec = {"resources": {"cpu": unlimited, "memory": unlimited, "gpu": gpu}}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": queue.name},
        "spec": spec | ({"parentQueue": parent} if parent else {}),
    }


def build_job(plan: RunPlan, progress: Path) -> Object:
    """Build a job whose pods all sleep for as long."""
    command = ["sh", "-c", SLEEP.format(folder=progress, milliseconds=round(plan.seconds * 1000))]
    container: Object = {
        "command": command,
        "resources": {"limits": {"nvidia.com/gpu": str(plan.gpus)}},
        "volumeMounts": [{"name": "progress", "mountPath": str(progress)}],
    }
    replicas = {"Master": replica("busybox", [], 1, **container)}
    if plan.pods > 1:
        replicas["Worker"] = replica("busybox", [], plan.pods - 1, **container)
    for each in replicas.values():
        spec = each["template"]["spec"]
        spec["schedulerName"] = "kai-scheduler"
        spec["volumes"] = [{"name": "progress", "hostPath": {"path": str(progress)}}]
    body = job(plan.key, replicas)
    body["metadata"]["labels"] = {
        "kai.scheduler/queue": plan.queue,
        "priorityClassName": plan.priority,
    }
    return body

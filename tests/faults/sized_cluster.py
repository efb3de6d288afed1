"""A cluster in which the test is operator and kubelet of workloads of 100 pods, and the console's
processes that follow it: two followers, a web process, and one that polls.
"""

import contextlib
import http.client
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.cluster import ROOT, LocalKube
from tests.conformance.api import Api
from tests.console_server import BOUND_TO_US, WebServer
from tests.faults import operating
from tests.faults.operating import Object
from tests.installation import eventually
from tests.rest import Reader

HELD = {"localkube.muster.dev/hold": "true"}
NAMESPACE = "muster-team-a"
NAME = "sized-"
JOBS = f"/apis/kubeflow.org/v1/namespaces/{NAMESPACE}/pytorchjobs"
OURS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SIZES = (100, 100, 4, 1)
"""Pods of each workload."""
PASSWORD = "correct horse battery"
CONTAINER = {"name": "pytorch", "image": "any"}
REMOVED = 0.05
"""The part of the changes that remove a pod and make it anew."""
LEASE = 10.0
"""Seconds after which another follower may take over."""
STARTED_WITHIN = 120.0
PREPARE = """
import json, sys
from pathlib import Path
from django.utils import timezone
from clusters.models import Cluster
from tests.cast import a_spec, make_cast
from tests.faults.histories import SERVED
from workloads import journal
given = json.loads({given!r})
cast = make_cast(Path(given["kubeconfig"]).read_text())
Cluster.objects.update(capabilities=SERVED.to_json(), server=given["server"])
cast.team_a.synced_at = timezone.now()
cast.team_a.save()
for number, size in enumerate(given["sizes"]):
    spec = a_spec(cast.team_a, f"{{given['name']}}{{number}}", workers=max(1, size - 1))
    journal.create_workload(spec, project=cast.team_a, user=cast.bob)
"""
POLLER = """
import sys, django
django.setup()
from clusters.models import Cluster
from workloads import tasks
print("ready", flush=True)
for line in sys.stdin:
    for pk in Cluster.objects.values_list("pk", flat=True):
        tasks.poll(str(pk))
    print("polled", flush=True)
"""


@dataclass
class SizedCluster:
    """The processes on one data directory, and the objects of the workloads."""

    folder: Path
    data: Path
    """Where the database and the logs are; the cluster's own data is elsewhere."""
    kube: LocalKube = field(init=False)
    web: WebServer = field(init=False)
    followers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self._stack = contextlib.ExitStack()
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    def _start(self) -> None:
        self.kube = self._stack.enter_context(LocalKube(self.folder / "kube", "--gpus", "4"))
        self.web = WebServer(self.data, redis_url="redis://127.0.0.1:1/0")
        self._stack.enter_context(self.web)
        given = {
            "kubeconfig": str(self.kube.kubeconfig),
            "server": self.kube.url,
            "sizes": SIZES,
            "name": NAME,
        }
        self.web.python(PREPARE.format(given=json.dumps(given)))
        self.api = Api.from_kubeconfig(self.kube.kubeconfig)
        self._stack.callback(lambda: self.api.close())
        self.set_clock(0)
        with self.query() as rows:
            found = rows.execute("SELECT id, name FROM workloads_workload ORDER BY name")
            self.workloads = [(_to_uuid(pk), name) for pk, name in found]
        self._make_objects()
        self._stack.callback(self._end_followers)
        for name in ("one", "other"):
            self.start_follower(name)
        self.poller = self._start_poller()
        eventually(lambda: self.holder in self.followers, within=STARTED_WITHIN)
        eventually(lambda: not self.find_differences(), within=STARTED_WITHIN)
        with self.query() as rows:
            # Pods that are only objects have no logs, and asking for them would be all there is.
            rows.execute("UPDATE workloads_pod SET logs_kept = 1")
        self.reader = Reader(self.web.url, PASSWORD, username="alice")

    # The processes.

    def start_follower(self, name: str) -> None:
        """Start a follower, which is not yet ready; an earlier one of that name has ended."""
        log = self.folder / f"follow-{name}.log"
        with log.open("ab") as out:
            self.followers[name] = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    BOUND_TO_US,
                    str(os.getpid()),
                    "-m",
                    "tests.faults.shifted_clock",
                    str(self.folder / "clock"),
                    "follow",
                    "--holder",
                    name,
                ],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env=self.web.environment,
            )

    def kill_follower(self, name: str) -> None:
        """kill -9 of a follower."""
        self.followers[name].kill()
        self.followers[name].wait()

    @contextlib.contextmanager
    def pause_follower(self, name: str) -> Iterator[None]:
        """Let a follower stand still, as a machine that is suspended does.

        It holds no lock of the database then: with SQLite nobody else could write.
        """
        eventually(lambda: self._stop_between_writes(self.followers[name]))
        try:
            yield
        finally:
            self.followers[name].send_signal(signal.SIGCONT)

    def _stop_between_writes(self, process: subprocess.Popen[bytes]) -> bool:
        """Stop a process. Return False, and let it go on, where it is in a transaction."""
        process.send_signal(signal.SIGSTOP)
        status = Path(f"/proc/{process.pid}/stat")
        eventually(lambda: status.read_text().rpartition(")")[2].split()[0] == "T")
        connection = sqlite3.connect(self.data / "muster.sqlite3", timeout=2, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            process.send_signal(signal.SIGCONT)
            return False
        finally:
            connection.close()
        return True

    def set_clock(self, seconds: float) -> None:
        """Set by how much the clock of the followers is wrong."""
        # In one step: a reader must not find an empty file.
        fresh = self.folder / "clock.new"
        fresh.write_text(str(seconds))
        fresh.replace(self.folder / "clock")

    def reconnect(self) -> None:
        """Connect anew to a server that was away."""
        self.api.close()
        self.api = Api.from_kubeconfig(self.kube.kubeconfig)

    def poll(self) -> None:
        """Let a worker list the cluster once."""
        assert self.poller.stdin is not None
        assert self.poller.stdout is not None
        self.poller.stdin.write("poll\n")
        self.poller.stdin.flush()
        assert self.poller.stdout.readline() == "polled\n"

    def _start_poller(self) -> subprocess.Popen[str]:
        with (self.folder / "poller.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", BOUND_TO_US, str(os.getpid()), "-c", POLLER],
                cwd=ROOT,
                env=self.web.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

        def end() -> None:
            process.kill()
            process.communicate()

        self._stack.callback(end)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    def _end_followers(self) -> None:
        for process in self.followers.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.followers.values():
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    # The rows, from the database itself.

    @contextlib.contextmanager
    def query(self) -> Iterator[sqlite3.Connection]:
        """A connection to the database, whose changes are committed at the end."""
        connection = sqlite3.connect(self.data / "muster.sqlite3", timeout=90)
        try:
            with connection:
                yield connection
        finally:
            connection.close()

    @property
    def holder(self) -> str:
        """The follower that has the cluster's lease, or had it last."""
        with self.query() as rows:
            found = rows.execute("SELECT followed_by FROM clusters_cluster").fetchone()
        return str(found[0])

    @property
    def trouble(self) -> str:
        """What the cluster's row says is the matter."""
        with self.query() as rows:
            found = rows.execute("SELECT trouble FROM clusters_cluster").fetchone()
        return str(found[0])

    @contextlib.contextmanager
    def lock_database(self) -> Iterator[None]:
        """Let nobody write: a backup that copies the file, or somebody's shell."""
        connection = sqlite3.connect(self.data / "muster.sqlite3", timeout=90, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.execute("ROLLBACK")
        finally:
            connection.close()

    def find_differences(self) -> list[str]:
        """Describe where the rows differ from the cluster's objects."""
        there = {each["metadata"]["uid"]: each for each in self.list_pods()}
        with self.query() as rows:
            pods = rows.execute(
                "SELECT uid, name, version, phase, is_ready, vanished_at IS NOT NULL "
                "FROM workloads_pod"
            ).fetchall()
            workloads = rows.execute(
                "SELECT id, name, running_pods, requested_pods, status FROM workloads_workload"
            ).fetchall()
        found = []
        for uid, name, *row in pods:
            pod = there.pop(uid, None)
            if pod is None:
                if not row[-1]:
                    found.append(f"the pod {name} {uid} has vanished")
                continue
            metadata = pod["metadata"]
            now = [metadata["resourceVersion"], pod["status"]["phase"], _is_ready(pod), False]
            then = [row[0], row[1], bool(row[2]), bool(row[3])]
            if now != then:
                found.append(f"the pod {name} {uid} is {then}, and there {now}")
        found += [f"the pod {each['metadata']['name']} is not known" for each in there.values()]
        return found + self._compare_workloads(workloads)

    def _compare_workloads(self, workloads: Sequence[Sequence[Any]]) -> list[str]:
        pods = self.list_pods()
        found = []
        for pk, name, running, requested, status in workloads:
            if not name.startswith(NAME):
                continue
            mine = [
                each
                for each in pods
                if each["metadata"]["labels"]["muster.dev/workload"] == _to_uuid(pk)
            ]
            ready = sum(_is_ready(each) for each in mine)
            size = SIZES[int(name.rpartition("-")[2])]
            if (running, requested) != (ready, size):
                found.append(
                    f"{name} has {running} of {requested} pods, and there {ready} of {size}"
                )
            if ready == size and status != "Running":
                found.append(f"{name} is {status} with {ready} of {size} pods")
        return found

    # The cluster's objects.

    def list_pods(self) -> list[Object]:
        """All pods of the workloads."""
        pods: list[Object] = self.api.get(OURS).ok()["items"]
        return pods

    def _make_objects(self) -> None:
        self.api.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}).ok(201)
        self.jobs: list[Object] = []
        for (pk, name), size in zip(self.workloads, SIZES, strict=True):
            replicas = {
                role: {"replicas": count, "template": {"spec": {"containers": [CONTAINER]}}}
                for role, count in (("Master", 1), ("Worker", size - 1))
                if count
            }
            body: Object = {
                "apiVersion": "kubeflow.org/v1",
                "kind": "PyTorchJob",
                "metadata": {"name": name, "labels": _labels(pk)},
                "spec": {"pytorchReplicaSpecs": replicas},
            }
            operating.without_controller(body)
            job: Object = self.api.post(JOBS, body).ok(201)
            self.jobs.append(job)
            self.api.patch(f"{JOBS}/{name}/status", operating.job_status(job, "Running")).ok()
            for role, index, _ in operating.replicas(job):
                make_pod(self.api, job, role, index)


class Changes:
    """Changes of pods at a rate, in a thread, until the block ends. What the API does not take is
    left out.
    """

    def __init__(self, cluster: SizedCluster, chance: random.Random, rate: float = 200) -> None:
        self._cluster, self._chance, self._rate = cluster, chance, rate
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._change)
        self.made = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        self._thread.join()

    def _change(self) -> None:
        while not self._over.is_set():
            try:
                with contextlib.closing(Api.from_kubeconfig(self._cluster.kube.kubeconfig)) as api:
                    while not self._over.wait(1 / self._rate):
                        self._change_one(api)
                        self.made += 1
            except (OSError, AssertionError, ValueError, http.client.HTTPException):
                # The server is away, or has no room.
                self._over.wait(0.1)

    def _change_one(self, api: Api) -> None:
        job = self._chance.choice(self._cluster.jobs)
        role, index, _ = self._chance.choice(list(operating.replicas(job)))
        name = f"{job['metadata']['name']}-{role}-{index}"
        if self._chance.random() < REMOVED:
            api.delete(f"{OURS}/{name}", {"gracePeriodSeconds": 0})
            make_pod(api, job, role, index)
            return
        phase = self._chance.choice(("Running", "Running", "Unready"))
        answer = api.patch(f"{OURS}/{name}/status", {"status": operating.pod_status(phase)})
        assert answer.status in (200, 404), answer.text


def make_pod(api: Api, job: Object, role: str, index: int) -> None:
    """Make a pod of a job as its operator would, and let it run."""
    metadata = job["metadata"]
    name = f"{metadata['name']}-{role}-{index}"
    pod = {
        "metadata": {
            "name": name,
            "labels": metadata["labels"] | operating.replica_labels(role, index, job),
            "annotations": HELD,
            "ownerReferences": [operating.owned_by(job)],
        },
        "spec": {"containers": [CONTAINER], "restartPolicy": "Never", "nodeName": "somewhere"},
    }
    api.post(OURS, pod).ok(201)
    api.patch(f"{OURS}/{name}/status", {"status": operating.pod_status("Running")}).ok()


def _labels(workload: str) -> Object:
    return {
        "app.kubernetes.io/managed-by": "muster",
        "muster.dev/workload": workload,
        "muster.dev/attempt": "1",
    }


def _is_ready(pod: Object) -> bool:
    conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", ())}
    return pod["status"].get("phase") == "Running" and conditions.get("Ready") == "True"


def _to_uuid(key: str) -> str:
    """A UUID as SQLite keeps it, with its hyphens."""
    return f"{key[:8]}-{key[8:12]}-{key[12:16]}-{key[16:20]}-{key[20:]}" if "-" not in key else key

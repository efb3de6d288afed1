"""Notes of Run:ai and Arena, pasted line by line into a shell against a started installation."""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.running import CommandLine, Outcome
from tests.installation import PASSWORD, Installation, eventually

LINES = """\
runai config project team-a
runai submit-dist pytorch dist-train1 --workers=2 -g 0.1 -i /kubeflow/pytorch-dist-mnist:latest
runai list jobs
runai describe job dist-train1
runai logs dist-train1 --pod dist-train1-worker-0
runai delete job dist-train1
runai project set team-a
runai distributed submit dist-train1  --framework PyTorch -i /kubeflow/pytorch-dist-mnist:latest \
--workers 2 --gpu-request-type portion --gpu-portion-request 0.1 --gpu-devices-request 1 \
--cpu-memory-request 100M
runai distributed list
runai training describe dist-train1
runai distributed logs dist-train1 --pod dist-train1-worker-0
runai training delete dist-train1
runai submit-pytorch --name distributed-training-pytorch --workers=1 -g 1 -i muster/allreduce
runai submit-tf --name distributed-training-tf --workers=2 -g 1 --no-master -i muster/tensorflow
runai submit-dist pytorch --name elastic-workload --workers=3 --max-replicas 4 --min-replicas 2 \
-g 1 -i docker.io/ekink/elastic_pytorch
arena top node
arena --loglevel info submit pytorch --name=pytorch-dist-git --gpus=1 --workers=2 \
--image=muster/allreduce --sync-mode=git --sync-source={repository} \
"python /root/code/mnist-pytorch/mnist.py --backend gloo"
arena list
arena get pytorch-dist-git
arena get pytorch-dist-git --type pytorchjob
arena logs pytorch-dist-git
arena logs pytorch-dist-git -i pytorch-dist-git-worker-0
arena logs pytorch-dist-git -i pytorch-dist-git-worker-0 -t 5
arena delete pytorch-dist-git
""".splitlines()
"""As people have them in their notes; only the repository is the test's."""
PROGRAM = """
import os, socket, sys, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
for step in range(10):
    print("step", step, "of rank", rank, *sys.argv[1:], flush=True)
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    # The end of the master is that of the job: it comes when all others have written.
    with socket.create_server(place) as server:
        for _ in range(world - 1):
            server.accept()[0].close()
else:
    while True:
        try:
            socket.create_connection(place).close()
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
"""
GPUS = 4
"""As many as `make up` offers on a machine without any: later lines wait until earlier ones end."""

JOB_HEADINGS = [
    *("NAME", "STATUS", "AGE", "NODE", "IMAGE", "TYPE", "PROJECT", "USER"),
    *("GPUs Allocated (Requested)", "PODs Running (Pending)", "SERVICE URL(S)"),
]
WORKLOAD_HEADINGS = [
    *("Workload", "Type", "Status", "Project", "Preemptible"),
    *("Running/Requested Pods", "GPU Allocation"),
]
JOB_LABELS = """
NAME, NAMESPACE, TYPE, STATUS, TRAINING DURATION, GPUS, TOTAL REQUESTED GPUS, ALLOCATED GPUS,
ALLOCATED GPUS MEMORY, RUNNING PODS, PENDING PODS, PARALLELISM, COMPLETIONS, SUCCEEDED PODS,
FAILED PODS, IS DISTRIBUTED WORKLOAD, CREATED BY CLI, SERVICE URL(S), COMMAND LINE
"""
ARENA_LIST_HEADINGS = [
    *("NAME", "STATUS", "TRAINER", "DURATION", "GPU(Requested)", "GPU(Allocated)", "NODE"),
]
ARENA_NODE_HEADINGS = ["NAME", "IPADDRESS", "ROLE", "STATUS", "GPU(Total)", "GPU(Allocated)"]
INSTANCE_HEADINGS = ["NAME", "STATUS", "AGE", "IS_CHIEF", "GPU(Requested)", "NODE"]
ARENA_LABELS = [
    *("Name", "Status", "Namespace", "Priority", "Trainer", "Duration", "CreateTime", "EndTime"),
]


@dataclass
class Shell:
    """A person's shell: `runai`, `arena` and `python` are on its PATH."""

    muster: CommandLine
    folder: Path

    def __call__(self, line: str, code: int | None = 0) -> Outcome:
        """Run a line as it is, and check its exit code unless it is None."""
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-c", line],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            cwd=self.muster.home,
            env=self.muster.environment | {"PATH": path},
            timeout=240,
        )
        outcome = Outcome(done.returncode, done.stdout, done.stderr)
        if code is not None:
            assert outcome.code == code, (line, outcome)
        return outcome


def split_columns(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


def list_labels(text: str) -> list[str]:
    return [line.partition(":")[0] for line in text.splitlines() if ":" in line]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("pasted")
    home = folder / "home"
    home.mkdir()
    muster = CommandLine(home)
    data = folder / "data"
    with Installation(data, localkube_gpus=GPUS).migrated() as installation:
        given = PASSWORD.search(installation.output)
        assert given is not None
        sign_in = ("login", installation.url, "--user", "admin", "--password-stdin")
        muster(*sign_in, stdin=given["password"])
        muster("dialect", "install", str(folder / "bin"))
        yield Shell(muster, folder / "bin")


def make_repository(folder: Path) -> str:
    repository = folder / "mnist-pytorch"
    repository.mkdir()
    (repository / "mnist.py").write_text(PROGRAM)
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "Add it"]):
        subprocess.run(
            ["git", *identity, *command], cwd=repository, check=True, capture_output=True
        )
    return repository.as_uri()


@pytest.mark.timeout(1200)
def test_every_line_of_the_tutorials_works_when_it_is_pasted(shell: Shell, tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    outputs = []
    for line in LINES:
        begun = time.monotonic()
        outputs.append(shell(line.replace("{repository}", shlex.quote(repository))).out)
        print(f"{time.monotonic() - begun:5.1f} s  {line}\n{outputs[-1]}")
    project, submitted, jobs, job, log, deleted = outputs[:6]
    again, submitted_again, listed, described, log_again, deleted_again = outputs[6:12]
    pytorch, tensorflow, elastic = outputs[12:15]
    nodes, sent, arena_list, arena_job, arena_job_again = outputs[15:20]
    arena_log, worker_log, tail, arena_deleted = outputs[20:]
    assert "team-a" in project
    assert "team-a" in again
    for each in (submitted, submitted_again):
        assert each.startswith("dist-train1 is submitted.\nIt has 3 pods with its master.\n")

    heading, *rows = jobs.splitlines()
    assert split_columns(heading) == JOB_HEADINGS
    [row] = [split_columns(each) for each in rows]
    assert row[0] == "dist-train1"
    assert row[4:8] == ["/kubeflow/pytorch-dist-mnist:latest", "Train", "team-a", "admin"]
    assert row[8].endswith("(0.30)")
    labels = list_labels(job.partition("\nPods:")[0])
    assert [each for each in labels if each != "MESSAGE"] == [
        each.strip() for each in JOB_LABELS.split(",")
    ]
    pods, _, events = job.partition("\nPods:\n")[2].partition("\nEvents:\n")
    assert split_columns(pods.splitlines()[0]) == ["POD", "STATUS", "TYPE", "AGE", "NODE"]
    assert split_columns(events.splitlines()[0]) == ["SOURCE", "TYPE", "AGE", "MESSAGE"]
    for each in (log, log_again):
        assert each.startswith("mnist: ")
    for each in (deleted, deleted_again):
        assert each == "dist-train1 is deleted; its name is free.\n"

    heading, *rows = listed.splitlines()
    assert split_columns(heading) == WORKLOAD_HEADINGS
    [row] = [split_columns(each) for each in rows]
    assert row[:2] == ["dist-train1", "Distributed"]
    assert row[3:5] == ["team-a", "Yes"]
    assert row[5].endswith("/3")
    assert {"General", "Compute", "Name", "Status", "Project"} <= set(list_labels(described))

    assert "It has 2 pods with its master." in pytorch
    assert "It has 2 pods.\n" in tensorflow
    assert "It has 4 pods with its master. It is elastic: it runs with 2 to 4 pods, its" in elastic

    node_heading, *rest = nodes.splitlines()
    assert split_columns(node_heading) == ARENA_NODE_HEADINGS
    assert any(f"/{GPUS} (" in each for each in rest)
    assert sent.startswith("pytorch-dist-git is submitted.\nIt has 2 pods with its master.\n")
    heading, *rows = arena_list.splitlines()
    assert split_columns(heading) == ARENA_LIST_HEADINGS
    first = split_columns(rows[0])
    assert (first[0], first[2], first[4]) == ("pytorch-dist-git", "PYTORCHJOB", "2")
    for each in (arena_job, arena_job_again):
        head, _, instances = each.partition("\nInstances:\n")
        assert [label for label in list_labels(head) if label != "Message"] == ARENA_LABELS
        assert split_columns(instances.splitlines()[0]) == INSTANCE_HEADINGS
    assert "step 0 of rank 0 --backend gloo" in arena_log
    assert "step 0 of rank 1 --backend gloo" in worker_log
    assert len(tail.splitlines()) <= 5
    assert tail.splitlines()[-1].startswith("step ")
    assert arena_deleted == "pytorch-dist-git is deleted; its name is free.\n"


@pytest.mark.timeout(900)
def test_a_missing_tensorflow_is_said_where_it_is_looked_for(shell: Shell) -> None:
    name = "distributed-training-tf"
    shell("runai config project team-b")
    shell(f"runai submit-tf --name {name} --workers=2 -g 1 --no-master -i muster/tensorflow")
    # Where it is installed, it runs instead.
    missing = subprocess.run([sys.executable, "-c", "import tensorflow"], capture_output=True)

    def find_reason() -> bool:
        output = shell(f"runai describe job {name}").out
        return "tensorflow-cpu" in output if missing.returncode else "Completed" in output

    assert eventually(find_reason, within=540)
    assert name in shell("runai tensorflow list --no-headers").out
    shell(f"runai delete job {name}")

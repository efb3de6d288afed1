"""Of a pod with several processes the one that failed is named, by its rank among all."""

from collections.abc import Sequence

import pytest

from tests.workloads.objects import Object, batch_job, condition, ended_pod, pytorch_job
from workloads.diagnosis import Diagnosis, diagnose_failure

TRACE = ("Traceback (most recent call last):", '  File "train.py", line 27, in <module>')
PODS = (ended_pod("master", 0, 1, "2026-11-21T00:00:10Z"), ended_pod("worker", 0, 143))


def _report(rank: int, local_rank: int, code: int) -> Sequence[str]:
    """Return what torchrun writes of the processes that it lost; another one stands first."""
    return (
        f"E1121 10:00:01 1 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: "
        f"{code}) local_rank: {local_rank} (pid: 42) of binary: /usr/bin/python",
        TRACE[0],
        '  File "/usr/local/bin/torchrun", line 8, in <module>',
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        "============================================================",
        "Failures:",
        "[1]:",
        "  rank      : 7 (local_rank: 7)",
        "  exitcode  : 1 (pid: 49)",
        "------------------------------------------------------------",
        "Root Cause (first observed failure):",
        "[0]:",
        "  time      : 2026-11-21_00:00:09",
        "  host      : train1-master-0",
        f"  rank      : {rank} (local_rank: {local_rank})",
        f"  exitcode  : {code} (pid: 42)",
    )


def _diagnose(*lines: str, pods: Sequence[Object] = PODS) -> Diagnosis:
    diagnosis = diagnose_failure(
        pytorch_job(condition("Failed")), pods, {"train1-master-0": list(lines)}
    )
    assert diagnosis is not None
    return diagnosis


@pytest.mark.parametrize(
    ("lines", "through"),
    [
        (_report(5, 5, -9), ", through its process of rank 5"),
        (_report(0, 0, -9), ""),
        (
            (*(f"[rank3]: {line}" for line in (*TRACE, "KeyError: 'x'")), *_report(5, 5, 1)),
            ", through its process of rank 3",
        ),
        (tuple(f"[rank0]: {line}" for line in (*TRACE, "KeyError: 'x'")), ""),
        (
            (*(f"[default3]: {line}" for line in (*TRACE, "KeyError: 'x'")), *_report(11, 3, 1)),
            ", through its process of rank 11",
        ),
        (
            (
                "[1,1]<stderr>:ValueError: bad data",
                "mpirun noticed that process rank 1 with PID 33 on node train1-worker-1 exited on "
                "signal 11 (Segmentation fault).",
            ),
            ", through the process of rank 1 on train1-worker-1",
        ),
        (
            (
                "mpirun detected that one or more processes exited with non-zero status, thus "
                "causing the job to be terminated. The first process to do so was:",
                "",
                "  Process name: [[54321,1],3]",
                "  Exit code:    1",
            ),
            ", through its process of rank 3",
        ),
        (
            ("Container rank 3 status failed cmd ['python', 'train.py'] code 1 log w.3",),
            ", through its process of rank 3",
        ),
        (("  rank      : 5 (local_rank: 5)", "ValueError: bad data"), ""),
        (("Root Cause (first observed failure):", *["-"] * 20, "rank : 5 (local_rank: 5)"), ""),
    ],
    ids=[
        "torchrun",
        "the pod's own rank",
        "the line's rank before torchrun's",
        "the line's rank is the pod's",
        "a prefix that names a local rank",
        "mpirun",
        "mpirun by name",
        "Paddle",
        "no report",
        "far below a report",
    ],
)
def test_the_process_that_failed_is_named(lines: Sequence[str], through: str) -> None:
    diagnosis = _diagnose(*lines)
    lead, colon, _ = diagnosis.sentence.partition(": ")
    assert lead + colon == f"The master (rank 0) failed first{through}: "
    assert diagnosis.rank == 0


@pytest.mark.parametrize(
    ("rank", "lead"),
    [(0, "The pod failed:"), (3, "The pod failed, through its process of rank 3:")],
)
def test_the_only_pod_has_the_rank_0(rank: int, lead: str) -> None:
    alone = ended_pod("", 0, 1, name="solo-x")
    logs = {"solo-x": [f"[rank{rank}]: {line}" for line in (*TRACE, "KeyError: 'x'")]}
    diagnosis = diagnose_failure(batch_job(condition("Failed")), [alone], logs)
    assert diagnosis is not None
    assert diagnosis.sentence.startswith(lead)


def test_a_launcher_says_nothing_of_a_pod_that_the_cluster_ended() -> None:
    killed = ended_pod("master", 0, 137, reason="Evicted", message="low on disk")
    diagnosis = _diagnose(*_report(5, 5, -9), pods=[killed])
    assert "process of rank" not in diagnosis.sentence


def test_lines_that_nearly_name_a_process_name_none() -> None:
    lines = ["Process name: [[1,1],x] process rank 9 with PID 1 on node " + "a" * 400]
    diagnosis = _diagnose(*lines * 2000)
    assert "process of rank" not in diagnosis.sentence

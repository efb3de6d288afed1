"""Causes for which a workload fails by what the cluster says, and by which pod was the first."""

from collections.abc import Sequence
from typing import Any

from tests.diagnosis.cluster_states import end_pods, fail_job
from tests.diagnosis.failing_causes import TRACE
from tests.diagnosis.injected import InjectedCause
from tests.diagnosis.special_states import fail_init
from tests.workloads.objects import condition

LEAD = "Worker 0 (rank 1) failed first:"
BARRIER = "RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 30000 ms"
WATCHDOG = (
    "[E ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600123 milliseconds"
)

ABORTED = (
    "E1121 10:00:01 1 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: -6) "
    "local_rank: 0 (pid: 42) of binary: /usr/bin/python",
    TRACE[0],
    '  File "/usr/local/bin/torchrun", line 8, in <module>',
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    "  exitcode  : -6 (pid: 42)",
)
"""What torchrun writes of a process that ended itself with SIGABRT."""


def _end(
    name: str,
    code: int,
    words: str,
    cause: str,
    help: str,
    confidence: str = "certain",
    **more: Any,
) -> InjectedCause:
    return InjectedCause(
        name, end_pods(worker=code, **more), f"{LEAD} {words}.", help, cause, 1, confidence
    )


BY_END: Sequence[InjectedCause] = (
    _end(
        "limit of memory",
        137,
        "it was killed for using more memory than its limit of 1 GiB",
        "memory",
        "Ask for more CPU memory",
        end={"reason": "OOMKilled"},
        resources={"limits": {"memory": "1Gi"}},
    ),
    _end(
        "SIGKILL",
        137,
        "it was killed (SIGKILL, exit code 137)",
        "killed",
        "out of memory",
        "possible",
    ),
    _end(
        "SIGTERM",
        143,
        "it was asked to end (SIGTERM, exit code 143)",
        "asked-to-end",
        "Look for what stopped it",
        "possible",
    ),
    _end(
        "SIGSEGV",
        139,
        "it crashed with SIGSEGV (exit code 139)",
        "crash",
        "native code",
        "possible",
    ),
    _end(
        "SIGABRT",
        134,
        "it crashed with SIGABRT (exit code 134)",
        "crash",
        "native code",
        "possible",
    ),
    _end(
        "SIGILL",
        132,
        "it crashed with SIGILL (exit code 132)",
        "crash",
        "instructions that the node's processor has not",
        "possible",
    ),
    _end(
        "command that is not there",
        127,
        "its command was not found (exit code 127)",
        "missing-command",
        "what the image contains",
    ),
    _end(
        "command that is no program",
        126,
        "its command cannot be executed (exit code 126)",
        "cannot-start",
        "may be executed",
    ),
    _end(
        "container that cannot start",
        128,
        'its container could not be started: exec: "trian": not found',
        "cannot-start",
        "Check the command",
        end={"reason": "StartError", "message": 'exec: "trian": not found'},
    ),
    _end(
        "driver of a GPU that is not loaded, at the start",
        128,
        "its container could not be started, because the GPU of its node cannot be given to it: "
        "nvidia-container-cli: initialization error: nvml error: driver not loaded",
        "cannot-start",
        "about the node",
        end={
            "reason": "StartError",
            "message": "nvidia-container-cli: initialization error: nvml error: driver not loaded",
        },
    ),
    _end(
        "SIGINT",
        130,
        "it was interrupted (SIGINT, exit code 130)",
        "asked-to-end",
        "Look for what stopped it",
        "possible",
    ),
    _end(
        "container that its node lost sight of",
        137,
        "its node lost sight of its container, so that nobody knows how it ended",
        "node",
        "tell the administrator of the cluster about the node",
        end={
            "reason": "ContainerStatusUnknown",
            "message": "The container could not be located when the pod was terminated",
        },
    ),
    _end(
        "disk of its own that is too small",
        137,
        'the cluster ended it (Evicted): Usage of EmptyDir volume "shm" exceeds the limit "64Mi"',
        "evicted",
        "shared memory than it may",
        reason="Evicted",
        message='Usage of EmptyDir volume "shm" exceeds the limit "64Mi". ',
    ),
    _end(
        "node that has no room any more",
        1,
        "its node rejected it (OutOfcpu): the node had too few CPU cores left",
        "node",
        "Run it again",
        reason="OutOfcpu",
        message="Pod was rejected: Node didn't have enough resource: cpu",
    ),
    _end(
        "node that does not match any more",
        1,
        "its node rejected it (NodeAffinity): the node does not have the labels that its node "
        "selector or node affinity asks for",
        "node",
        "the node no longer fits",
        reason="NodeAffinity",
        message="Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node "
        "affinity/selector",
    ),
    _end(
        "pod of the system that takes its place",
        137,
        "the cluster ended it (Preempting): Preempted in order to admit critical pod",
        "evicted",
        "for a pod of the system",
        reason="Preempting",
        message="Preempted in order to admit critical pod",
    ),
    _end(
        "work of a higher priority that takes its place",
        143,
        "the cluster ended it (PreemptionByScheduler): default-scheduler: preempting to "
        "accommodate a higher priority pod",
        "evicted",
        "work of a higher priority took its place",
        conditions=[
            condition(
                "DisruptionTarget",
                reason="PreemptionByScheduler",
                message="default-scheduler: preempting to accommodate a higher priority pod",
            )
        ],
    ),
    _end(
        "drain of its node, which ended it",
        143,
        "the cluster ended it (EvictionByEvictionAPI)",
        "evicted",
        "somebody emptied its node",
        last={"terminated": {"exitCode": 1, "finishedAt": "2026-11-20T00:00:00Z"}},
        conditions=[
            condition(
                "DisruptionTarget",
                reason="EvictionByEvictionAPI",
                lastTransitionTime="2026-11-21T00:00:11Z",
            )
        ],
    ),
    _end(
        "drain of its node, days after it failed",
        3,
        "the program ended with exit code 3",
        "exit-code",
        "Look into its log",
        "possible",
        conditions=[
            condition(
                "DisruptionTarget",
                reason="EvictionByEvictionAPI",
                lastTransitionTime="2026-11-24T09:00:00Z",
            )
        ],
    ),
    _end(
        "limit of memory, while its node is drained",
        137,
        "it was killed for using more memory than its limit of 1 GiB",
        "memory",
        "Ask for more CPU memory",
        end={"reason": "OOMKilled"},
        resources={"limits": {"memory": "1Gi"}},
        conditions=[condition("DisruptionTarget", reason="DeletionByTaintManager")],
    ),
    _end(
        "exit code alone",
        3,
        "the program ended with exit code 3",
        "exit-code",
        "Look into its log",
        "possible",
    ),
    _end(
        "evicted for memory",
        137,
        "the cluster ended it (Evicted): The node was low on resource: memory",
        "evicted",
        "as much memory and disk as the pod uses",
        reason="Evicted",
        message="The node was low on resource: memory",
    ),
    _end(
        "node that shut down",
        137,
        "the cluster ended it (Terminated): Pod was terminated in response to imminent node "
        "shutdown",
        "node",
        "the node was shut down",
        reason="Terminated",
        message="Pod was terminated in response to imminent node shutdown.",
    ),
    _end(
        "devices that are not healthy",
        1,
        "its node rejected it (UnexpectedAdmissionError): the devices of the node are not healthy",
        "node",
        "Run it again without that node",
        reason="UnexpectedAdmissionError",
        message="Allocate failed due to no healthy devices present",
    ),
    InjectedCause(
        "init container",
        fail_init(),
        f"{LEAD} fetch-volume-1, which has to end well before the program starts, did not: the "
        "program ended with exit code 128.",
        "address",
        "exit-code",
        1,
    ),
    InjectedCause(
        "deadline of the job",
        fail_job("DeadlineExceeded", "Job was active longer than specified deadline"),
        "It ran longer than it was allowed to: Job was active longer than specified deadline.",
        "Give it more time",
        "time-limit",
        None,
        "certain",
    ),
    InjectedCause(
        "deadline of the job, whose pods were asked to end",
        end_pods(
            worker=143,
            job=condition(
                "Failed",
                reason="PyTorchJobFailed",
                message="PyTorchJob t has failed because it was active longer than specified "
                "deadline",
            ),
        ),
        "It ran longer than it was allowed to: PyTorchJob t has failed because it was active "
        "longer than specified deadline.",
        "Give it more time",
        "time-limit",
        None,
        "certain",
    ),
    InjectedCause(
        "launcher of a rank, and what its peer lost",
        end_pods(master=1, worker=1, order=(10, 11)),
        "Worker 0 (rank 1) failed first: the program ended with exit code 1.",
        "Look into its log",
        "exit-code",
        1,
        "likely",
        logs={
            "master": (
                *TRACE,
                "torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for "
                "clients. 1/2 clients joined.",
            ),
            "worker": (*TRACE, "ValueError: bad data"),
        },
    ),
    InjectedCause(
        "launcher that lost a process",
        end_pods(worker=1),
        f"{LEAD} the program ended with exit code 1, because it crashed in native code.",
        "the versions of its libraries",
        "crash",
        1,
        "likely",
        logs={
            "worker": (
                "E1121 10:00:01 1 torch/distributed/elastic/multiprocessing/api.py:874] failed "
                "(exitcode: -11) local_rank: 0 (pid: 42) of binary: /usr/bin/python",
                TRACE[0],
                '  File "/usr/local/bin/torchrun", line 8, in <module>',
                "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
                "============================================================",
            )
        },
    ),
    InjectedCause(
        "launcher of a process that aborted",
        end_pods(worker=1),
        f"{LEAD} the program ended with exit code 1, because it crashed in native code.",
        "the versions of its libraries",
        "crash",
        1,
        "likely",
        logs={"worker": ABORTED},
    ),
    InjectedCause(
        "watchdog, then torchrun's -6",
        end_pods(master=1, worker=1),
        f"{LEAD} the program ended with exit code 1.",
        "Look into its log",
        "exit-code",
        1,
        "likely",
        logs={"master": (WATCHDOG, *ABORTED), "worker": (*TRACE, "ValueError: bad data")},
    ),
    InjectedCause(
        "watchdog, then the shell's core dump",
        end_pods(master=1, worker=1),
        f"{LEAD} the program ended with exit code 1.",
        "Look into its log",
        "exit-code",
        1,
        "likely",
        logs={
            "master": (WATCHDOG, "run.sh: line 3: 71 Aborted (core dumped) python train.py"),
            "worker": (*TRACE, "ValueError: bad data"),
        },
    ),
    InjectedCause(
        "connection that is reset, then torchrun's -6",
        end_pods(master=1),
        "The master (rank 0) failed first: the program ended with exit code 1, because it lost its "
        "peers.",
        "another pod's log",
        "lost-peers",
        0,
        "possible",
        logs={
            "master": ("[rank0]: RuntimeError: Connection reset by peer", *ABORTED),
        },
    ),
    InjectedCause(
        "backoff limit of the job",
        fail_job("BackoffLimitExceeded", "Job has reached the specified backoff limit"),
        "It was tried as often as its backoff limit allows: Job has reached the specified backoff "
        "limit.",
        "the log of its last try",
        "backoff-limit",
        None,
        "certain",
    ),
    InjectedCause(
        "spec that the operator refuses",
        fail_job("PyTorchJobFailedValidation", "spec.pytorchReplicaSpecs: Worker is missing"),
        "The training operator refused it: spec.pytorchReplicaSpecs: Worker is missing.",
        "Change what it names",
        "refused",
        None,
        "certain",
    ),
    InjectedCause(
        "error of one rank, and the echo of the other",
        end_pods(master=1, worker=1),
        "Worker 0 (rank 1) failed first: the program ended with exit code 1.",
        "Look into its log",
        "exit-code",
        1,
        "likely",
        logs={
            "master": ("RuntimeError: Connection reset by peer",),
            "worker": (*TRACE, "ValueError: bad data"),
        },
    ),
    InjectedCause(
        "peers that are lost",
        end_pods(master=1),
        "The master (rank 0) failed first: the program ended with exit code 1, because it lost its "
        "peers.",
        "another pod's log",
        "lost-peers",
        0,
        "possible",
        logs={"master": ("RuntimeError: [1] Connection closed by peer [10.0.0.7]:23456",)},
    ),
    InjectedCause(
        "rank that did not come to a barrier",
        end_pods(master=1),
        "The master (rank 0) failed first: rank 1 did not come to the collective in which it "
        "waited.",
        "Look at what it did last",
        "missing-rank",
        1,
        "certain",
        logs={"master": (*TRACE, BARRIER)},
    ),
    InjectedCause(
        "watchdog of NCCL",
        end_pods(master=134),
        "The master (rank 0) failed first: it crashed with SIGABRT (exit code 134), because it "
        "lost its peers.",
        "another pod's log",
        "lost-peers",
        0,
        "possible",
        logs={"master": (WATCHDOG,)},
    ),
    InjectedCause(
        "faulty device that the radar found",
        end_pods(worker=1),
        f"{LEAD} the program ended with exit code 1, because the program, or a library of it, used "
        "memory of the GPU that is not its own. Node n1 was faulty: Xid 48 (a double-bit memory "
        "error) on the GPU of rank 1.",
        "Run it again without that node",
        "gpu-fault",
        1,
        "likely",
        logs={"worker": ("RuntimeError: CUDA error: unspecified launch failure",)},
        fault="Xid 48 (a double-bit memory error) on the GPU of rank 1.",
    ),
    InjectedCause(
        "rank that did not come, on a faulty node",
        end_pods(master=1),
        "The master (rank 0) failed first: rank 1 did not come to the collective in which it "
        "waited. Node n1 was faulty: Xid 79 (the device has fallen off the bus) on the GPU of rank "
        "1.",
        "Run it again without that node",
        "gpu-fault",
        1,
        "likely",
        logs={"master": (*TRACE, BARRIER)},
        fault="Xid 79 (the device has fallen off the bus) on the GPU of rank 1.",
    ),
    InjectedCause(
        "own error on a node with a faulty device",
        end_pods(worker=1),
        f"{LEAD} the program ended with exit code 1.",
        "",
        "exit-code",
        1,
        "likely",
        logs={"worker": (*TRACE, "ValueError: unknown optimizer adamx")},
        fault="Xid 63 (a page of its memory is retired) on the GPU of rank 1.",
    ),
)

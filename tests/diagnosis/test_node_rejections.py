"""A pod that the kubelet of its node rejects says why, and what would help."""

import pytest

from tests.workloads.objects import Object, condition, pod, pytorch_job
from workloads.diagnosis import Diagnosis, diagnose_failure

SIDE_BY_SIDE = "ask for less for each pod"
PLUGIN = "the node's plugin for such devices needs a while"


def _reject(reason: str, message: str) -> Diagnosis:
    """Diagnose a pod that never ran: its status has a reason, and none of a container."""
    rejected: Object = pod("worker", 1, phase="Failed", ready=False, reason=reason, message=message)
    rejected["status"]["containerStatuses"] = []
    diagnosis = diagnose_failure(pytorch_job(condition("Failed")), [pod("master"), rejected])
    assert diagnosis is not None
    return diagnosis


@pytest.mark.parametrize(
    ("reason", "message", "words", "advice"),
    [
        (
            "OutOfcpu",
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 4000, used: "
            "30500, capacity: 32000",
            "the node had too few CPU cores left; the pod asks for 4, and 30.5 of 32 were in use",
            "others took the room",
        ),
        (
            "OutOfmemory",
            "Node didn't have enough resource: memory, requested: 34359738368, used: 68719476736, "
            "capacity: 68719476736",
            "the node had too little memory left; the pod asks for 32 GiB, and 64 GiB of 64 GiB "
            "were in use",
            "others took the room",
        ),
        (
            "OutOfexample.com/fpga",
            "Node didn't have enough resource: example.com/fpga, requested: 1, used: 2, capacity: "
            "2",
            "the node had too little example.com/fpga left; the pod asks for 1, and 2 of 2 were in "
            "use",
            "others took the room",
        ),
        ("OutOfpods", "", "the node had too few places for pods left", "others took the room"),
        (
            "UnexpectedAdmissionError",
            "Pod was rejected: Allocate failed due to requested number of devices unavailable for "
            "nvidia.com/gpu. Requested: 2, Available: 0, which is unexpected",
            "the node had 0 of nvidia.com/gpu free, and the pod asks for 2",
            PLUGIN,
        ),
        (
            "UnexpectedAdmissionError",
            "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices "
            "nvidia.com/gpu, which is unexpected",
            "the devices nvidia.com/gpu of the node are not healthy",
            "Run it again without that node",
        ),
        (
            "UnexpectedAdmissionError",
            "Allocate failed due to can't allocate unregistered device rdma/hca, which is "
            "unexpected",
            "nothing on the node gives out the devices rdma/hca",
            PLUGIN,
        ),
        (
            "UnexpectedAdmissionError",
            "Allocate failed due to rpc error: code = Unavailable desc = transport is closing, "
            "which is unexpected",
            "what gives out the devices of the node failed: Allocate failed due to rpc error: code "
            "= Unavailable desc = transport is closing, which is unexpected",
            PLUGIN,
        ),
        (
            "UnexpectedAdmissionError",
            "Allocate failed due to not enough cpus available to satisfy request: requested=8, "
            "available=6, which is unexpected",
            "the node could not give it cores or memory for itself alone",
            SIDE_BY_SIDE,
        ),
        (
            "UnexpectedAdmissionError",
            "Update plugin resources failed due to the moon, which is unexpected.",
            "Update plugin resources failed due to the moon, which is unexpected",
            "tell the administrator of the cluster about the node",
        ),
        (
            "NodeAffinity",
            "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node "
            "affinity/selector",
            "the node does not have the labels that its node selector or node affinity asks for",
            "its labels have changed",
        ),
        (
            "NodePorts",
            "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the "
            "requested pod ports",
            "the node has the host port in use that it asks for",
            "not for the host's network",
        ),
        (
            "node(s) had taints that the pod didn't tolerate",
            "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
            "the node has got a taint that it does not tolerate",
            "add a toleration",
        ),
        (
            "TopologyAffinityError",
            "Pod was rejected: Resources cannot be allocated with Topology locality",
            "the node could not give it its cores, memory and devices side by side (from one NUMA "
            "node)",
            SIDE_BY_SIDE,
        ),
        (
            "SMTAlignmentError",
            "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
            "it asks for CPU cores that do not make whole cores of the node: SMT Alignment Error: "
            "requested 3 cpus not multiple cpus per core = 2",
            "divisible by the threads of a core",
        ),
        (
            "Evicted",
            "Pod was rejected: The node had condition: [DiskPressure]. ",
            "the node was short of disk space",
            "takes no pods until it has room again",
        ),
        (
            "NodeShutdown",
            "Pod was rejected as the node is shutting down.",
            "the node was shutting down",
            "Run it again",
        ),
        (
            "VolumeAttachmentLimitExceeded",
            "Pod was rejected: Node has reached its volume attachment limit",
            "the node has as many volumes as can be attached to it",
            "use fewer claims",
        ),
        (
            "SysctlForbidden",
            'forbidden sysctl: "kernel.msgmax" not allowlisted',
            'the node does not take such pods: forbidden sysctl: "kernel.msgmax" not allowlisted',
            "choose other nodes",
        ),
    ],
)
def test_a_pod_that_its_node_rejects_says_why(
    reason: str, message: str, words: str, advice: str
) -> None:
    diagnosis = _reject(reason, message)
    assert diagnosis.sentence == (
        f"Worker 1 (rank 2) failed first: its node rejected it ({reason}): {words}."
    )
    assert advice in diagnosis.help
    assert (diagnosis.cause, diagnosis.confidence) == ("node", "certain")


@pytest.mark.parametrize(
    ("resource", "advice"),
    [
        ("memory", "as much memory and disk as the pod uses"),
        ("ephemeral-storage", "write less outside of volumes"),
        ("pids", "start fewer processes"),
    ],
)
def test_an_eviction_says_what_to_use_less_of(resource: str, advice: str) -> None:
    diagnosis = _reject("Evicted", f"The node was low on resource: {resource}. ")
    assert "the cluster ended it (Evicted)" in diagnosis.sentence
    assert diagnosis.cause == "evicted"
    assert advice in diagnosis.help

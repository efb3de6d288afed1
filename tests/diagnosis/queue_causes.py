"""Causes of waiting in queues: of KAI and of Kueue."""

from collections.abc import Sequence

from tests.diagnosis.cluster_states import hold_in_kueue, queue_pods
from tests.diagnosis.injected import Holding, InjectedCause
from tests.diagnosis.special_states import leave_pod_out

KAI_LIMIT = (
    "team-a quota has reached the allowable limit of GPUs. Limit is 1 GPUs, currently 0 GPUs "
    "allocated and workload requested 2 GPUs"
)
KAI_CPU = (
    "team-a quota has reached the allowable limit of CPU cores. Limit is 4 cores, currently 3 "
    "cores allocated and workload requested 2 cores"
)
KAI_QUOTA = (
    "Non-preemptible workload is over quota. Workload requested 2 GPUs, but team-a quota is 2 "
    "GPUs, while 1 GPUs are already allocated for non-preemptible pods. Use a preemptible workload "
    "to go over quota."
)
NODE = {"name": "n1", "gpus": 4, "cpu": 64, "memory": 2**38}
DEPARTMENT = {
    "queueDetails": {
        "name": "research",
        "queueResourceLimits": {"nvidia.com/gpu": "4"},
        "queueAllocatedResources": {"nvidia.com/gpu": "3"},
        "queueDeservedResources": {"nvidia.com/gpu": "1"},
        "queueAllocatedNonPreemptibleResources": {"nvidia.com/gpu": "1"},
    }
}
NO_ROOM = "Not enough resources for the workload"
QUEUES: Sequence[InjectedCause] = (
    InjectedCause(
        "limit that it never fits",
        queue_pods(group=("OverLimit", KAI_LIMIT)),
        "Needs 2 GPUs; the project may use at most 1 and uses 0.",
        "it can never start",
        project={"gpu_limit": 1},
    ),
    InjectedCause(
        "limit that others use",
        queue_pods(group=("OverLimit", KAI_LIMIT)),
        "Needs 2 GPUs; the project may use at most 3 and uses 2.",
        "Stop another workload of the project",
        project={"gpu_limit": 3},
        holdings=[Holding(2)],
    ),
    InjectedCause(
        "limit of CPU",
        queue_pods(group=("OverLimit", KAI_CPU)),
        "Needs 2 cores of CPU; the project may use at most 4 cores and uses 3 cores.",
        "a higher limit",
    ),
    InjectedCause(
        "quota of what is not preemptible",
        queue_pods(group=("NonPreemptibleOverQuota", KAI_QUOTA)),
        "It is not preemptible and so must fit into the project's quota: it needs 2 GPUs; the "
        "quota is 2, of which 1 is in use.",
        "Make it preemptible",
        holdings=[Holding(1, preemptible=False)],
    ),
    InjectedCause(
        "limit of the department",
        queue_pods(group=("OverLimit", KAI_LIMIT), details=DEPARTMENT),
        "Needs 2 GPUs; the department may use at most 4 and uses 3.",
        "stop another workload of the department",
    ),
    InjectedCause(
        "quota of the department",
        queue_pods(group=("NonPreemptibleOverQuota", KAI_QUOTA), details=DEPARTMENT),
        "It is not preemptible and so must fit into the quota of its department, too: it needs 2 "
        "GPUs; the quota is 1, of which 1 is in use.",
        "more quota for the department",
    ),
    InjectedCause(
        "queue that does not exist",
        queue_pods(group=("QueueDoesNotExist", "Queue 'team-a' does not exist")),
        "Queue 'team-a' does not exist.",
        "Ask an administrator to look at the project",
    ),
    InjectedCause(
        "delay before others are taken",
        queue_pods(group=("PreemptionDelayNotElapsed", "within its delay window (5m0s)")),
        "It waits until it may take the place of other work.",
        "Nothing needs to be done",
    ),
    InjectedCause(
        "others who leave its place",
        queue_pods("Waiting for 2 pods of muster-b/secret to leave n1"),
        "It has its place: waiting for 2 pods of another workload to leave n1.",
        "Nothing needs to be done",
    ),
    InjectedCause(
        "pipelined by KAI",
        queue_pods(pod_event="Pipelined", text="Pod was pipelined to node n1"),
        "It has its place on node n1: it waits for others to leave it.",
        "Nothing needs to be done",
    ),
    InjectedCause(
        "gang that is not complete",
        leave_pod_out(),
        "Its pods start together, and 2 have to exist before any starts: 1 of them exists.",
        "The training operator makes the others",
    ),
    InjectedCause(
        "pods that make no group",
        queue_pods(pod_event="PodGrouperWarning", text="replicas of Worker is missing"),
        "The scheduler cannot make a group of its pods: replicas of Worker is missing.",
        "Change what it names",
    ),
    InjectedCause(
        "topology of KAI",
        queue_pods(group=(NO_ROOM, "node-group(s) didn't have enough resources: GPUs")),
        "No node takes it: some are in groups of their topology with too few GPUs free.",
        "Ask for the topology as a preference",
    ),
    InjectedCause(
        "memory of a part of a GPU",
        queue_pods(
            "no nodes with enough resources were found: 2 node(s) didn't have enough resources: "
            "GPU memory.",
            resources={},
            annotations={"gpu-memory": "90000"},
        ),
        "No node takes it: 2 have no GPU with as much memory as it asks for.",
        "on these it can never start",
        nodes=[NODE],
    ),
    InjectedCause(
        "more GPUs than a node of its pool has",
        queue_pods(
            group=(
                NO_ROOM,
                "Resources were not found for pod muster-team-a/x due to: The pod muster-team-a/x "
                "requires GPU: 16, CPU: 4 (cores), memory: 8 (GB), pods: 1. Max GPU resources "
                "available in a single node in the default node-pool is topped at 8",
            )
        ),
        "It asks for more GPU than a node of the node pool default has: the most is 8.",
        "it can never start",
    ),
    InjectedCause(
        "parts of GPUs that are not free",
        queue_pods(resources={}, annotations={"gpu-fraction": "0.5"}),
        "Needs 1 GPU; none of 4 is free; other projects hold 4.",
        "It starts by itself",
        nodes=[NODE],
        holdings=[Holding(4, is_foreign=True)],
    ),
    InjectedCause(
        "GPUs that others hold, as the third of three",
        queue_pods(),
        "Needs 2 GPUs; 1 of 4 is free; other projects hold 3. "
        "It is 3rd of 3 that wait in team-a for GPUs.",
        "It starts by itself",
        nodes=[NODE],
        holdings=[Holding(3, is_foreign=True)],
        others_waiting=2,
    ),
)
KUEUE: Sequence[InjectedCause] = (
    InjectedCause(
        "Kueue's quota that others use",
        hold_in_kueue(
            (
                "Pending",
                "couldn't assign flavors to pod set worker: insufficient unused quota for "
                "nvidia.com/gpu in flavor a100, 2 more needed",
            )
        ),
        "Kueue holds it in the queue team-queue: its queue lacks 2 nvidia.com/gpu of the flavor "
        "a100, which other work uses.",
        "as soon as the queue has quota",
    ),
    InjectedCause(
        "Kueue's quota that it never fits",
        hold_in_kueue(
            (
                "Pending",
                "couldn't assign flavors to pod set worker: insufficient quota for nvidia.com/gpu "
                "in flavor a100, previously considered podsets requests (0) + current podset "
                "request (16) > maximum capacity (8)",
            )
        ),
        "Kueue holds it in the queue team-queue: it asks for more nvidia.com/gpu than the flavor "
        "a100 of its queue can ever have (8).",
        "it can never start",
    ),
    InjectedCause(
        "Kueue's queue that does not exist",
        hold_in_kueue(("Pending", "LocalQueue team-queue doesn't exist")),
        "Kueue holds it in the queue team-queue: the LocalQueue team-queue does not exist.",
        "Ask the administrator of the cluster about the queue",
    ),
    InjectedCause(
        "Kueue's admission check",
        hold_in_kueue(("Pending", "any"), ("QuotaReserved", "Quota reserved in ClusterQueue gpus")),
        "Kueue holds it in the queue team-queue: its quota is reserved, and an admission check is "
        "not done yet.",
        "a check may wait for new nodes",
    ),
    InjectedCause(
        "cluster of MultiKueue",
        hold_in_kueue(
            ("QuotaReserved", "Quota reserved in ClusterQueue gpus"),
            ("MultiKueue", 'The workload got reservation on "worker1"'),
            ("Admitted", "Admitted by ClusterQueue gpus"),
        ),
        "Kueue has given it to another cluster, worker1: it waits or runs there.",
        "Its pods and logs are in that cluster",
    ),
    InjectedCause(
        "cluster of MultiKueue that gave it back",
        hold_in_kueue(
            ("MultiKueue", 'The workload got reservation on "worker1"'),
            ("EvictedDueToAdmissionCheck", "Reserving remote lost"),
        ),
        "Kueue holds it in the queue team-queue: an admission check wants it to be tried again "
        "later, so that it lost its quota.",
        "Kueue tries it again by itself",
    ),
    InjectedCause(
        "preempted by Kueue",
        hold_in_kueue(
            ("Admitted", "Admitted by ClusterQueue gpus"),
            (
                "Preempted",
                "Preempted to accommodate a workload (UID: 16739dd5, JobUID: 60a0290d) due to "
                "prioritization in the ClusterQueue; preemptor path: /secret",
            ),
        ),
        "Kueue holds it in the queue team-queue: other work took its quota, and it waits for some "
        "again.",
        "as soon as the queue has quota",
    ),
    InjectedCause(
        "deactivated by Kueue",
        hold_in_kueue(
            ("EvictedDueToPodsReadyTimeout", "Exceeded the PodsReady timeout"),
            (
                "EvictedDueToDeactivatedDueToRequeuingLimitExceeded",
                "The workload is deactivated due to exceeding the maximum number of re-queuing "
                "retries",
            ),
        ),
        "Kueue holds it in the queue team-queue: it was put back so often that Kueue tries it no "
        "more.",
        "Find out why its pods do not become ready",
    ),
)

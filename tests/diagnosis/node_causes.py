"""Causes of waiting for nodes and volumes, in the words of schedulers."""

from collections.abc import Sequence

from tests.diagnosis.cluster_states import claim_volume, queue_pods
from tests.diagnosis.injected import InjectedCause
from tests.diagnosis.special_states import gate_pods, lose_node

NOT_HELPFUL = "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
NODE = {"name": "n1", "gpus": 4, "cpu": 64, "memory": 2**38}
NODES: Sequence[InjectedCause] = (
    InjectedCause(
        "node pool without a node",
        queue_pods(spec={"nodeSelector": {"pool": "dgx"}}),
        "No node that can take pods has the label pool=dgx.",
        "Choose another node type",
        nodes=[NODE],
    ),
    InjectedCause(
        "taint by its key",
        queue_pods(
            "0/3 nodes are available: 1 node(s) had untolerated taint {dedicated: team-b}, 2 "
            f"Insufficient nvidia.com/gpu. {NOT_HELPFUL}"
        ),
        "None of 3 nodes takes it: 1 has the taint dedicated=team-b, which it does not tolerate; 2 "
        "have too few GPUs free.",
        "Add a toleration for it",
    ),
    InjectedCause(
        "taint of all nodes, with their rows",
        queue_pods(),
        "Every node where it could be keeps it away by a taint that it does not tolerate: "
        "team=b:NoSchedule.",
        "Add a toleration for it",
        nodes=[NODE | {"taints": [{"key": "team", "value": "b", "effect": "NoSchedule"}]}],
    ),
    InjectedCause(
        "node affinity",
        queue_pods("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
        "None of 2 nodes takes it: 2 do not have the labels that its node selector or node "
        "affinity asks for.",
        "Choose another node type",
    ),
    InjectedCause(
        "pod anti-affinity",
        queue_pods("0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."),
        "None of 2 nodes takes it: 2 run pods that it has to keep away from (its pod "
        "anti-affinity).",
        "ask for the rule as a preference",
        nodes=[NODE],
    ),
    InjectedCause(
        "pod affinity",
        queue_pods("0/1 nodes are available: 1 node(s) didn't match pod affinity rules."),
        "The only node does not take it: it does not run the pods that it has to be beside (its "
        "pod affinity).",
        "Start the pods",
        nodes=[NODE],
    ),
    InjectedCause(
        "topology spread",
        queue_pods(
            "0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints."
        ),
        "None of 3 nodes takes it: 3 would have too many of its pods beside the others (its "
        "topology spread).",
        "loosen the rule",
    ),
    InjectedCause(
        "volume of another zone",
        queue_pods("0/3 nodes are available: 3 node(s) had volume node affinity conflict."),
        "None of 3 nodes takes it: 3 cannot reach its volume, which is bound to another node or "
        "zone.",
        "the volume's zone",
        nodes=[NODE],
    ),
    InjectedCause(
        "host port in use",
        queue_pods(
            "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
        ),
        "The only node does not take it: it has the host port in use that it asks for.",
        "no host port",
    ),
    InjectedCause(
        "too many pods",
        queue_pods("0/2 nodes are available: 2 Too many pods.", resources={}),
        "None of 2 nodes takes it: 2 run as many pods as they may.",
        "when other pods leave",
        nodes=[NODE],
    ),
    InjectedCause(
        "device that no node has",
        queue_pods(f"0/3 nodes are available: 3 Insufficient rdma/hca. {NOT_HELPFUL}"),
        "None of 3 nodes takes it: 3 have too little rdma/hca free.",
        "Ending other work would not help",
        nodes=[NODE],
    ),
    InjectedCause(
        "closed nodes",
        queue_pods(f"0/3 nodes are available: 3 node(s) were unschedulable. {NOT_HELPFUL}"),
        "None of 3 nodes takes it: 3 are closed to new pods.",
        "when they open again",
    ),
    InjectedCause(
        "scheduling gates",
        gate_pods(),
        "Scheduling gates hold back 2 of its pods: until they are taken away no scheduler looks "
        "at them.",
        "Whoever set the gates",
    ),
    InjectedCause(
        "scheduler that is silent",
        queue_pods(),
        "It is queued: the scheduler has not looked at its pods yet.",
        "may be missing or down",
    ),
    InjectedCause(
        "node that is lost",
        lose_node(),
        "Node n1 does not answer since 20 Nov, 14:02 UTC; 2 pods of it are lost.",
        "once the node is back",
        nodes=[
            NODE
            | {
                "is_ready": False,
                "conditions": [
                    {"type": "Ready", "status": "Unknown", "since": "2026-11-20T14:02:30Z"}
                ],
            }
        ],
    ),
)
CLAIMS: Sequence[InjectedCause] = (
    InjectedCause(
        "claim that is not there",
        claim_volume('persistentvolumeclaim "data" not found'),
        "It waits for a volume: the claim data is not there.",
        "Create it in the project's namespace",
        nodes=[NODE],
    ),
    InjectedCause(
        "claim without a storage class",
        claim_volume(
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
            (
                "FailedBinding",
                "no persistent volumes available for this claim and no storage class is set",
            ),
        ),
        "It waits for a volume: its claim {name}-data-1 names no storage class, and there is no "
        "volume that fits.",
        "Choose a storage class",
    ),
    InjectedCause(
        "claim that cannot be made",
        claim_volume(
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
            ("ProvisioningFailed", 'storageclass.storage.k8s.io "fast" not found'),
        ),
        "It waits for a volume: its claim {name}-data-1 could not be made: "
        'storageclass.storage.k8s.io "fast" not found.',
        "another storage class",
    ),
    InjectedCause(
        "claim that waits for its first pod",
        claim_volume("", ("WaitForFirstConsumer", "waiting for first consumer to be created")),
        "Its claim {name}-data-1 is made where the first pod gets its node, and the scheduler has "
        "found none yet.",
        "The claim itself needs nothing",
    ),
)

"""Causes of waiting in the words of Kubernetes' scheduler since 1.29, and of Volcano."""

from collections.abc import Sequence

from tests.diagnosis.cluster_states import queue_pods
from tests.diagnosis.injected import InjectedCause
from tests.diagnosis.node_causes import NODE, NOT_HELPFUL

NO_GPUS = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
FULL_NODES = "None of 3 nodes takes it: 3 have too few GPUs free."
SCHEDULERS: Sequence[InjectedCause] = (
    InjectedCause(
        "node that an autoscaler makes",
        queue_pods(
            NO_GPUS,
            pod_event="TriggeredScaleUp",
            text="pod triggered scale-up: [{gpu-nodes 1->2 (max: 5)}]",
        ),
        f"{FULL_NODES} New nodes are being made for it since 1 Jan, 00:00:00 UTC.",
        "it starts when they are ready",
    ),
    InjectedCause(
        "groups of nodes that may not grow",
        queue_pods(
            NO_GPUS,
            pod_event="NotTriggerScaleUp",
            text="pod didn't trigger scale-up: 12 node(s) didn't match Pod's node affinity/selector"
            ", 3 max node group size reached",
        ),
        f"{FULL_NODES} No new node is made for it: 3 groups of nodes are as large as they may be; "
        "new nodes of other groups would not take it either.",
        "whether more nodes may be made",
    ),
    InjectedCause(
        "gang of scheduler-plugins that is not complete",
        queue_pods(
            "0/4 nodes are available: pre-filter pod x cannot find enough sibling pods, current "
            "pods number: 1, minMember of group: 2. preemption: 0/4 nodes are available: 4 "
            "Preemption is not helpful for scheduling."
        ),
        "Its pods start together, and 2 have to exist before any starts: 1 of them exists.",
        "The training operator makes the others",
        nodes=[NODE],
    ),
    InjectedCause(
        "device class that is not there",
        queue_pods(
            "0/3 nodes are available: request gpu: device class gpu.nvidia.com does not exist. no "
            f"new claims to deallocate, {NOT_HELPFUL}"
        ),
        "None of 3 nodes takes it: all lack its devices: there is no device class gpu.nvidia.com.",
        "Correct the device class",
        nodes=[NODE],
    ),
    InjectedCause(
        "resource claim that is not there",
        queue_pods(
            "0/3 nodes are available: waiting for dynamic resource controller to create the "
            f'resourceclaim "train-gpu-x7k". {NOT_HELPFUL}'
        ),
        "None of 3 nodes takes it: all lack its devices: there is no resource claim train-gpu-x7k.",
        "one of a template Kubernetes makes itself",
    ),
    InjectedCause(
        "resource claim that others use",
        queue_pods(f"0/2 nodes are available: 2 resourceclaim in use. {NOT_HELPFUL}"),
        "None of 2 nodes takes it: 2 lack its devices: others use its resource claim.",
        "when those pods end; or use another resource claim.",
    ),
    InjectedCause(
        "claim that one pod at a time may use",
        queue_pods(
            "0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with "
            "ReadWriteOncePod access mode already in-use by another pod."
        ),
        "It waits for a volume: another pod uses its claim, which one pod at a time may use.",
        "It starts when that pod ends",
    ),
    InjectedCause(
        "node that is being set up",
        queue_pods(
            "0/2 nodes are available: 1 node(s) had untolerated taint "
            "{node.cloudprovider.kubernetes.io/uninitialized: true}, 1 node(s) had untolerated "
            "taint {ToBeDeletedByClusterAutoscaler: 1764460800}."
        ),
        "None of 2 nodes takes it: 1 has the taint "
        "node.cloudprovider.kubernetes.io/uninitialized: it is being set up or removed; 1 has the "
        "taint ToBeDeletedByClusterAutoscaler: it is being set up or removed.",
        "nothing needs to be done",
    ),
    InjectedCause(
        "node whose disk is full, with its row",
        queue_pods(),
        "Every node where it could be keeps it away by a taint that it does not tolerate: "
        "node.kubernetes.io/disk-pressure:NoSchedule.",
        "Those nodes take pods again when they are well",
        nodes=[
            NODE | {"taints": [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]}
        ],
    ),
    InjectedCause(
        "gang of Volcano",
        queue_pods(
            "2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; "
            "Pending: 1 Unschedulable, 1 Undetermined. Origin reason is train-worker-0: 0/3 nodes "
            "are unavailable: 3 Insufficient nvidia.com/gpu."
        ),
        "None of 3 nodes takes it: 3 have too few GPUs free.",
        "It starts by itself",
    ),
    InjectedCause(
        "gang of Volcano without a node's reason",
        queue_pods("pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Unschedulable"),
        "Its pods start together, and there is no place yet for all of them at once.",
        "It starts by itself",
    ),
)

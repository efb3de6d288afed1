"""What schedulers, autoscalers and admissions say in real clusters, and what is made of it.

Each is a message in the words of the versions that write it; the catalogue of causes in
`tests/diagnosis` has those that go through a journal. Those of pods that have a node are in
`test_starting_words.py`.
"""

import pytest

from tests.workloads.objects import Object, event, queued_pod
from tests.workloads.waiting_objects import GPU, diagnose, node_capacity
from workloads.diagnosis import Diagnosis

POD = "train1-worker-0"
NOT_HELPFUL = "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."


def place(message: str, *events: Object) -> Diagnosis:
    """Diagnose a pod of one GPU for which a scheduler has this message, on a free node."""
    pods = [queued_pod("worker", message=message, resources=GPU)]
    return diagnose(pods, node_capacity(8, 8), events=events)


@pytest.mark.parametrize(
    ("message", "sentence", "advice"),
    [
        (
            "0/20 nodes are available: 1 node(s) didn't match pod affinity/anti-affinity, 19 "
            "node(s) didn't match node selector.",
            "None of 20 nodes takes it: 1 breaks a rule of what pods it has to be beside or away "
            "from (its pod affinity or anti-affinity); 19 do not have the labels that its node "
            "selector or node affinity asks for.",
            "ask for them as preferences",
        ),
        (
            "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports "
            "(TCP/23456 on 3 nodes for a gang of 3 pods, and 2 nodes take such pods: this can "
            "never fit).",
            "None of 2 nodes takes it: 2 have the host port once each, and more of its pods ask "
            "for it.",
            "not the host's network",
        ),
        (
            "0/1 nodes are available: 1 node(s) had taints that the pod didn't tolerate.",
            "The only node does not take it: it has a taint, which it does not tolerate.",
            "Add a toleration",
        ),
        (
            "0/3 nodes are available: 3 node(s) had no available volume zone.",
            "None of 3 nodes takes it: 3 cannot reach its volume, which is bound to another node "
            "or zone.",
            "the volume's zone",
        ),
        (
            f"0/3 nodes are available: 3 Insufficient ephemeral-storage. {NOT_HELPFUL}",
            "None of 3 nodes takes it: 3 have too little disk space free.",
            "Ask for less for each pod: those nodes are too small for it even if empty. Ending "
            "other work would not help.",
        ),
        (
            "0/3 nodes are available: resource claim a/shared is in the process of being "
            f"allocated. no new claims to deallocate, {NOT_HELPFUL}",
            "None of 3 nodes takes it: all lack its devices: those of its resource claim shared "
            "are being chosen.",
            "a resource claim for each pod.",
        ),
        (
            "0/3 nodes are available: 1 node(s) had untolerated taint {a: }, 2 cannot allocate "
            f"all claims. still not schedulable, {NOT_HELPFUL}",
            "None of 3 nodes takes it: 1 has the taint a, which it does not tolerate; 2 do not "
            "have the devices that its resource claim asks for.",
            "It starts when others give such devices back",
        ),
        (
            "0/3 nodes are available: claim gpu: selector #0: CEL runtime error: no such key: "
            f"memory. still not schedulable, {NOT_HELPFUL}",
            "None of 3 nodes takes it: all lack its devices: a selector of its resource claim or "
            "device class fails (no such key: memory).",
            "Correct the selector",
        ),
        (
            "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 cannot align container: x.",
            "None of 3 nodes takes it: 1 has too few GPUs free; 2 cannot give it their cores, "
            "memory and devices side by side (from one NUMA node).",
            "It starts when work on those nodes ends",
        ),
        (
            f"0/3 nodes are available: the moon, is not full. {NOT_HELPFUL}",
            "None of 3 nodes takes it: all are ruled out by the scheduler: the moon, is not full.",
            "what the scheduler's words mean",
        ),
        (
            "all nodes are unavailable: 1 plugin InterPodAffinity predicates failed node(s) "
            "didn't match pod affinity rules, 4 node(s) resource fit failed.",
            "No node takes it: 1 does not run the pods that it has to be beside (its pod "
            "affinity); 4 have too little free of something that it asks for.",
            "Start the pods",
        ),
    ],
)
def test_what_schedulers_say_of_nodes(message: str, sentence: str, advice: str) -> None:
    diagnosis = place(message)
    assert diagnosis.sentence == sentence
    assert advice in diagnosis.help


def test_devices_that_others_hold_are_freed_when_these_end() -> None:
    """Preemption frees no devices of resource claims; others that end do."""
    for reason in ("2 resourceclaim in use", "2 cannot allocate all claims"):
        diagnosis = place(f"0/3 nodes are available: {reason}. {NOT_HELPFUL}")
        assert "Ending other work would not help" not in diagnosis.help
    assert (
        "Ending other work would not help"
        in place(
            f"0/3 nodes are available: 3 node(s) had volume node affinity conflict. {NOT_HELPFUL}"
        ).help
    )


@pytest.mark.parametrize(
    ("message", "sentence", "advice", "is_queued"),
    [
        (
            "0/5 nodes are available: Insufficient quotas [[nvidia.com/gpu]], quotaName: team-a, "
            "runtime: nvidia.com/gpu:8, used: nvidia.com/gpu:8, exceedDimensions: "
            "[nvidia.com/gpu]. preemption: not eligible due to preemptionPolicy=Never..",
            "The scheduler's quota team-a has too little left for it.",
            "as soon as others of that quota give some back",
            True,
        ),
        (
            "pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Undetermined. Origin "
            "reason is: queue resource quota insufficient: insufficient nvidia.com/gpu",
            "Its scheduler's queue has too little left for it: insufficient nvidia.com/gpu.",
            "as soon as others of that queue give some back",
            True,
        ),
        (
            "10/6 tasks in gang unschedulable: job is not ready, 10 minAvailable, 6 Pending.",
            "Its pods start together, and 10 have to exist before any starts: 6 of them exist.",
            "The training operator makes the others.",
            False,
        ),
        (
            "waiting for minCount pods from a gang to appear in scheduling queue",
            "Its pods start together, and some of them do not exist yet.",
            "The training operator makes the others.",
            False,
        ),
        (
            'waiting for pods\'s workload "train1" to appear in scheduling queue',
            "The group of its pods, train1, does not exist yet.",
            "Whoever makes its pods",
            False,
        ),
        (
            "rejected due to timeout after waiting 10s at plugin Coscheduling",
            "Its pods start together, and there is no place yet for all of them at once.",
            "It starts by itself",
            True,
        ),
        (
            "No node in the default node-pool has rdma/hca resources",
            "No node of the node pool default has any rdma/hca.",
            "it can never start",
            False,
        ),
        (
            "Requested topology racks does not exist",
            "The topology racks that it asks for does not exist.",
            "Correct its name",
            False,
        ),
        (
            "topology racks, requirement rack couldn't be satisfied for job <a/train1>: not "
            "enough resources in the cluster to allocate the job",
            "Its pods have to be together within one rack of the topology racks, and none has "
            "room for them.",
            "the topology as a preference",
            True,
        ),
        (
            'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded',
            "Its storage did not make or bind its volume in the time that the scheduler waits.",
            "the storage's driver",
            False,
        ),
        (
            'running PreBind plugin "VolumeBinding": binding volumes: pv "pv1" node affinity '
            'doesn\'t match node "n1": no matching NodeSelectorTerms',
            "Its volume pv1 cannot be reached from the nodes that have room for it.",
            "nodes in the volume's zone",
            False,
        ),
        (
            'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC '
            '"data"',
            "The volume of its claim data could not be made.",
            "another storage class or size",
            False,
        ),
        (
            'running PreBind plugin "VolumeBinding": Operation cannot be fulfilled on '
            'persistentvolumeclaims "data": the object has been modified; please apply',
            "It waits for a volume: the scheduler and somebody else wrote to a claim at the same "
            "time, and it has to try again.",
            "Nothing needs to be done",
            False,
        ),
        (
            'running PreBind plugin "DynamicResources": Operation cannot be fulfilled on '
            'resourceclaims.resource.k8s.io "gpu": the object has been modified',
            "The scheduler and somebody else wrote to the same object, and it has to try again.",
            "Nothing needs to be done",
            False,
        ),
        (
            'running PreBind plugin "DynamicResources": claim gpu binding timeout',
            "Its devices cannot be given to it where there is room for it: claim gpu binding "
            "timeout.",
            "the devices' driver",
            False,
        ),
        (
            'binding rejected: running Bind plugin "DefaultBinder": Post "https://10.0.0.1/api": '
            "context deadline exceeded",
            "The scheduler has a node for it and could not give it the pod: Post "
            '"https://10.0.0.1/api": context deadline exceeded.',
            "The scheduler tries again by itself.",
            False,
        ),
        (
            "node gpu-1 has been locked within 5 minutes",
            "Its scheduler is still giving GPUs of gpu-1 to another pod.",
            "Nothing needs to be done",
            False,
        ),
        (
            "pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Unschedulable. Origin "
            "reason is: queue <team-a> is overused",
            "Its scheduler's queue team-a uses as much as it may, or more.",
            "as soon as others of that queue give some back",
            True,
        ),
        (
            "resource in cluster is overused: overused nvidia.com/gpu",
            "The cluster has too little left for it and what stands before it in its queues: "
            "overused nvidia.com/gpu.",
            "It starts by itself",
            True,
        ),
        (
            "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: not eligible due "
            "to a terminating pod on the nominated node.",
            "It has its place: it waits for others to leave it.",
            "Nothing needs to be done",
            False,
        ),
        (
            '0/3 nodes are available: persistentvolumeclaim "data" bound to non-existent '
            f'persistentvolume "pv1". {NOT_HELPFUL}',
            "It waits for a volume: pv1, to which the claim data is bound, is not there any more.",
            "Choose another claim",
            False,
        ),
        (
            "words of a later version",
            "The scheduler found no place for it: words of a later version.",
            "what its words mean",
            False,
        ),
    ],
)
def test_what_schedulers_say_of_a_pod_or_its_group(
    message: str, sentence: str, advice: str, is_queued: bool
) -> None:
    diagnosis = place(message)
    assert diagnosis.sentence == sentence
    assert advice in diagnosis.help
    assert diagnosis.is_queued == is_queued


def test_hami_says_what_of_its_gpus_the_nodes_lack() -> None:
    diagnosis = place(
        f"0/6 nodes are available: 1 node unregistered, 2 CardInsufficientMemory, 3 "
        f"CardTimeSlicingExhausted. {NOT_HELPFUL}"
    )
    assert diagnosis.sentence == (
        "None of 6 nodes takes it: 1 is not known to the scheduler as one with GPUs; 2 have no GPU "
        "with as much memory free as it asks for; 3 share their GPUs among as many pods as they "
        "may."
    )
    assert "whether HAMi's device plugin runs on them" in diagnosis.help
    assert "ask for less of it" in diagnosis.help
    assert "Ending other work would not help" not in diagnosis.help


def test_what_hami_leaves_out_of_its_answer_is_in_its_events() -> None:
    """Its answer counts nodes that do not fit; events of the same try have the reasons."""
    answer = "0/4 nodes are available: 1 node unregistered, 3 NodeUnfitPod."
    now = [
        event(POD, "FilteringFailed", "no available node, 4 nodes do not meet"),
        event(POD, "FilteringFailed", "1 nodes CardTypeMismatch(gpu-3)"),
        event(POD, "FilteringFailed", "2 nodes CardInsufficientCore(gpu-1,gpu-2)"),
    ]
    earlier = event(
        POD, "FilteringFailed", "3 nodes CardNotHealth(a,b,c)", at="2026-11-20T00:00:00Z"
    )
    assert place(answer, earlier, *now).sentence == (
        "None of 4 nodes takes it: 1 is not known to the scheduler as one with GPUs; 1 has no GPU "
        "of the sort that it asks for; 2 have no GPU with as many of its cores free as it asks for."
    )
    assert "3 do not have as many GPUs" in place(answer, earlier, *now[:2]).sentence


NO_GPUS = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
NO_NODE = "No new node is made for it"


@pytest.mark.parametrize(
    ("reason", "text", "more", "advice"),
    [
        (
            "NotTriggerScaleUp",
            "pod didn't trigger scale-up (it wouldn't fit if a new node is added): 1 max limit "
            "reached",
            f" {NO_NODE}: 1 group of nodes is as large as it may be.",
            "whether more nodes may be made",
        ),
        (
            "NotTriggerScaleUp",
            "pod didn't trigger scale-up: 1 in backoff after failed scale-up, 2 Insufficient cpu",
            f" {NO_NODE}: the last try to make one failed; new nodes of other groups would not "
            "take it either.",
            "tried again by itself",
        ),
        (
            "NotTriggerScaleUp",
            "pod didn't trigger scale-up: 2 node(s) had untolerated taint {gpu: }",
            f" {NO_NODE}: new nodes of its groups would not take it either.",
            "which nodes can be made",
        ),
        ("NotTriggerScaleUp", "pod didn't trigger scale-up", f" {NO_NODE}.", "can be made"),
        (
            "FailedScaleUp",
            "Node scale up in zones a associated with this pod failed: GCE out of resources. Pod "
            "is at risk of not being scheduled.",
            " A new node for it could not be made: GCE out of resources.",
            "whether more nodes may be made",
        ),
        (
            "Nominated",
            "Pod should schedule on: nodeclaim/gpu-x7k2p",
            " New nodes are being made for it since 21 Nov, 00:00:00 UTC.",
            "Nothing needs to be done",
        ),
        ("Nominated", "Pod should schedule on: node/gpu-1", "", "as soon as there is room"),
        (
            "FailedScheduling",
            'Failed to schedule pod, all available instance types exceed limits for nodepool: "g"',
            f' {NO_NODE}: all available instance types exceed limits for nodepool: "g".',
            "whether more nodes may be made",
        ),
        ("FailedScheduling", NO_GPUS, "", "as soon as there is room"),
    ],
)
def test_what_autoscalers_say_stands_behind_what_the_nodes_lack(
    reason: str, text: str, more: str, advice: str
) -> None:
    pods = [queued_pod("worker", message=NO_GPUS, resources=GPU)]
    diagnosis = diagnose(pods, node_capacity(8, 0), events=[event(POD, reason, text)])
    assert diagnosis.sentence == f"Needs 1 GPU; none of 8 is free.{more}"
    assert advice in diagnosis.help
    assert diagnosis.is_queued == ("being made" not in more)


def test_an_autoscaler_speaks_in_events_of_either_form() -> None:
    scaled = event(POD, "TriggeredScaleUp", "pod triggered scale-up: [{gpu-nodes 1->2 (max: 5)}]")
    scaled["regarding"] = scaled.pop("involvedObject")
    for message in (NO_GPUS, "no nodes available to schedule pods"):
        pods = [queued_pod("worker", message=message, resources=GPU)]
        diagnosis = diagnose(pods, node_capacity(8, 0), events=[scaled])
        assert "New nodes are being made for it" in diagnosis.sentence


def test_what_an_autoscaler_did_for_an_earlier_pod_is_not_said() -> None:
    """A pod that is made anew has the name of the one before it."""
    made = queued_pod("worker", message=NO_GPUS, resources=GPU)
    text = "pod triggered scale-up: [{gpu-nodes 1->2 (max: 5)}]"
    for made_at, is_said in (("2026-11-20T00:00:00Z", True), ("2026-11-22T00:00:00Z", False)):
        made["metadata"]["creationTimestamp"] = made_at
        diagnosis = diagnose(
            [made], node_capacity(8, 0), events=[event(POD, "TriggeredScaleUp", text)]
        )
        assert ("New nodes are being made" in diagnosis.sentence) == is_said


@pytest.mark.parametrize(
    ("message", "words", "advice"),
    [
        (
            'Internal error occurred: failed calling webhook "gpu-sharing.example": dial tcp: '
            "connect: connection refused",
            "connection refused",
            "A webhook of the cluster does not answer",
        ),
        (
            'admission webhook "rules.example" denied the request: pods must share the gpu label',
            "pods must share the gpu label",
            "A rule of the cluster forbids it",
        ),
        (
            'admission webhook "kai" denied the request: attempting to create a pod a/b with gpu '
            "sharing request, while GPU sharing is disabled",
            "GPU sharing is disabled",
            "Ask for whole GPU devices",
        ),
        (
            'pods is forbidden: User "system:serviceaccount:kubeflow:training-operator" cannot '
            'create resource "pods" in API group "" in the namespace "a"',
            "cannot create resource",
            "The training operator may not make them",
        ),
        (
            'admission webhook "kyverno" denied the request: \n\nresource Pod/a/b was blocked \n'
            "rule:\n  limits",
            "denied the request: resource Pod/a/b was blocked rule: limits.",
            "A rule of the cluster forbids it",
        ),
    ],
)
def test_who_is_asked_about_pods_that_are_refused(message: str, words: str, advice: str) -> None:
    diagnosis = diagnose([], events=[event("train1", "FailedCreatePod", message)])
    assert words in diagnosis.sentence
    assert diagnosis.help.startswith(advice)


@pytest.mark.parametrize(
    "words",
    [
        "leader pod not yet scheduled, not creating follower pod",
        'follower pod node selector for topology key "rack" not set',
    ],
)
def test_pods_that_wait_for_the_first_one_are_not_refused(words: str) -> None:
    """JobSet makes the others once the leader of their place has its node."""
    message = f'Error creating: admission webhook "vpod.kb.io" denied the request: {words}'
    diagnosis = diagnose(
        [queued_pod("master", message=NO_GPUS, resources=GPU)],
        node_capacity(8, 0),
        events=[event("train1", "FailedCreate", message)],
    )
    assert diagnosis.sentence == "Needs 1 GPU; none of 8 is free."


def test_what_an_event_stands_for_is_not_said_before_it() -> None:
    message = (
        '(combined from similar events): Error creating: pods "x" is forbidden: unable to validate '
        "against any pod security policy: [hostPath]"
    )
    diagnosis = diagnose([], events=[event("train1", "FailedCreate", message)])
    assert diagnosis.sentence == (
        'The cluster refuses to make its pods: pods "x" is forbidden: unable to validate against '
        "any pod security policy: [hostPath]."
    )
    assert diagnosis.help.startswith("The namespace allows no such pods")


def test_a_quota_of_services_is_not_one_of_pods() -> None:
    message = (
        'services "x" is forbidden: exceeded quota: counts, requested: services=1, used: '
        "services=5, limited: services=5"
    )
    diagnosis = diagnose([], events=[event("train1", "FailedCreateService", message)])
    assert diagnosis.sentence == (
        "The cluster refuses to make its services: the namespace's quota counts allows 5 of "
        "services, 5 are in use, and one more service asks for 1."
    )

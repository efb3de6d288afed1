"""Why a pod waits for its volumes: claims that are missing or not bound, and mounts that fail."""

import re
from collections.abc import Sequence

from workloads.diagnosis.events import find_newest, get_text, get_time
from workloads.diagnosis.result import Diagnosis, build_sentence
from workloads.diagnosis.word_forms import LONGEST_DETAIL, WordForm
from workloads.kube_objects import Object, clean_text, get_involved_object
from workloads.pod_views import PodView

MOUNT_REASONS = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")
LATER_REASONS = ("Pulling", "Pulled", "Created", "Started")
"""Reasons of events that come when the volumes and the network of a pod are there."""
CLAIM = "PersistentVolumeClaim"
_CLAIM_REASONS = (
    "ProvisioningFailed",
    "FailedBinding",
    "WaitForFirstConsumer",
    "WaitForPodScheduled",
    "ExternalProvisioning",
    "Provisioning",
    "ProvisioningSucceeded",
    "VolumeMismatch",
)
_CLAIM_ADVICE = (
    "Check that the claim exists in the project's namespace, and that its storage class, or the "
    "default one, can make it."
)
_PREEMPTION = re.compile(r"[\s.,]{0,4}preemption: .*$", re.DOTALL)
"""What a scheduler adds to its reasons, of which it is none."""


_GENERAL_TEXT = "Unable to attach or mount volumes"
"""How the kubelet says every two minutes that volumes are missing, whatever keeps them away."""
_MOUNT_FORMS: Sequence[WordForm] = (
    WordForm(
        re.compile(
            r"failed to sync (?:secret|configmap) cache|"
            r"object \"[^\"]{1,253}\"/\"[^\"]{1,253}\" not registered",
            re.I,
        ),
        "The node of {pod} has not read the Secrets and ConfigMaps that it mounts yet",
        "Nothing needs to be done: the node tries again by itself. If it lasts, ask the "
        "administrator whether the node reaches the API server.",
    ),
    # Kubernetes and its administrator make these, not the workload's owner.
    WordForm(
        re.compile(r"(?P<name>kube-root-ca\.crt)\" not found"),
        "{pod} mounts the ConfigMap {name}, which Kubernetes makes in each namespace, and which is "
        "not there",
        "If this lasts, ask the administrator of the cluster whether its controller manager works.",
    ),
    WordForm(
        re.compile(r"failed to fetch token: serviceaccounts \"(?P<name>[^\"]{1,253})\" not found"),
        "{pod} runs as the service account {name}, which is not there",
        "Ask the administrator of the cluster to look at the project's namespace.",
    ),
    WordForm(
        re.compile(r"(?P<sort>secret|configmap) \"(?P<name>[^\"]{1,253})\" not found", re.I),
        "{pod} mounts the {sort} {name}, which is not there",
        "Create it in the project's namespace, or choose another data source.",
    ),
    WordForm(
        re.compile(r"references non-existent (?P<sort>secret|config) key: (?P<name>\S{1,253})"),
        "{pod} mounts the key {name} of a {sort}, and it has no such key",
        "Check the keys of its Secrets and ConfigMaps.",
    ),
    WordForm(
        re.compile(r"multi-attach error for volume \"(?P<name>[^\"]{1,253})\"", re.I),
        "The volume {name} of {pod} is still attached to another node, and may be used on one only",
        "It starts when the pods there have ended; for pods on several nodes choose a claim with "
        "the access mode ReadWriteMany.",
    ),
    WordForm(
        re.compile(
            r"attach failed for volume \"(?P<name>[^\"]{1,253})\" ?: .{0,400}already (?:being used|"
            r"attached|in use)",
            re.I,
        ),
        "The volume {name} of {pod} is in use elsewhere, and may be used in one place only",
        "It starts when what uses it has ended; for pods on several nodes choose a claim with the "
        "access mode ReadWriteMany.",
    ),
    WordForm(
        re.compile(r"persistentvolumeclaim \"(?P<name>[^\"]{1,253})\" not found"),
        "{pod} mounts the claim {name}, which is not there",
        "Create it in the project's namespace, or choose another data source.",
    ),
    WordForm(
        re.compile(
            r"driver name (?P<name>\S{1,253}) not found in the list of registered CSI|"
            r"CSINode \S{1,253} does not contain driver (?P<other>\S{1,253})"
        ),
        "The node of {pod} lacks the driver {name}{other} of a volume",
        "Ask the administrator whether the storage's driver runs on that node.",
    ),
    WordForm(
        re.compile(r"dialing? .{0,40}unix .{1,300}\.sock", re.I),
        "The driver of a volume does not answer on the node of {pod}",
        "Ask the administrator whether the storage's driver runs on that node.",
    ),
    WordForm(
        re.compile(
            r"attach failed for volume \"(?P<name>[^\"]{1,253})\" ?: .{0,400}(?:attachment ?limit|"
            r"attachments? .{0,40}(?:reached|exceed)|volumelimitexceeded|resourceexhausted|"
            r"max(?:imum)? .{0,40}(?:attach|volume|disk))",
            re.I,
        ),
        "The node of {pod} has as many volumes as can be attached to it, and {name} is one more",
        "It starts when other pods with volumes leave the node; or run it again, so that it gets "
        "another one, or use fewer claims.",
    ),
    WordForm(
        re.compile(r"external-attacher of (?P<name>\S{1,253}) CSI driver", re.I),
        "The driver {name} does not attach a volume of {pod}: the node waited for it in vain",
        "Ask the administrator whether the controller of that driver works; the node tries again "
        "by itself.",
    ),
    WordForm(
        re.compile(r"expected device to be attached but was attaching|attachment is being deleted"),
        "A volume of {pod} is still being attached, or taken away from where it was",
        "The node tries again by itself. If it lasts, ask the administrator whether the storage's "
        "driver works.",
    ),
    WordForm(
        re.compile(r"no space left on device", re.I),
        "The node of {pod} has no disk space left for its volumes",
        "Ask the administrator of the cluster to make room on the node, or choose other nodes.",
    ),
    WordForm(
        re.compile(r"code = (?P<code>NotFound|Unauthenticated|InvalidArgument) desc = "),
        "The storage does not give a volume of {pod} to its node: {code}, {detail}",
        "Check the volume's source, its access mode and its credential; the volume may have been "
        "deleted.",
    ),
    WordForm(
        re.compile(r"code = Unavailable desc = "),
        "The driver of a volume of {pod} does not answer its node: {detail}",
        "The node tries again by itself. If it lasts, ask the administrator whether the storage's "
        "driver works.",
    ),
    WordForm(
        re.compile(r"/sbin/mount\.<type> helper program|modules loaded\?|unknown filesystem type"),
        "The node of {pod} lacks the program or module that mounts one of its volumes",
        "Ask the administrator of the cluster to install what mounts such volumes on the node, or "
        "choose other nodes.",
    ),
    WordForm(
        re.compile(
            r"wrong fs type|bad superblock|fsck found errors|structure needs cleaning", re.I
        ),
        "The file system of a volume of {pod} is damaged, or of a sort that its node does not know",
        "Ask the administrator of the cluster to look at the volume before anything writes to it.",
    ),
    WordForm(
        re.compile(r"(?:error processing PVC|PVC) \S{1,253}: PVC is not bound"),
        "A claim of {pod} has no volume yet",
        "Look at the claim: its storage class may not make volumes, or its size may be too large.",
    ),
    WordForm(
        re.compile(r"an operation with the given Volume ID .{1,253} already exists", re.I),
        "The storage of a volume of {pod} is still at work on an earlier try",
        "The node tries again by itself. If it lasts, ask the administrator whether the storage's "
        "driver works.",
    ),
    WordForm(
        re.compile(r"failed to resolve server (?P<name>\S{1,253}?):", re.I),
        "The node of {pod} does not find the server {name} of a volume",
        "Check the server's name in the data source; names of services of the cluster are often "
        "not known to its nodes.",
    ),
    WordForm(
        re.compile(r"stale (?:NFS )?file handle", re.I),
        "A volume of {pod} is not what it was: its server has put something else in its place",
        "Ask the administrator of the cluster to mount it anew on the node; what is exported may "
        "have been moved or made anew.",
    ),
    WordForm(
        re.compile(r"access denied|permission ?denied", re.I),
        "The server of a volume refuses {pod}: access is denied",
        "Check the exported path, and that the node may mount it.",
    ),
    WordForm(
        re.compile(
            r"no such file or directory|is not a directory|path .{1,253} does not exist", re.I
        ),
        "A volume of {pod} names a path that is not there",
        "Check the path of the data source on the node or on its server.",
    ),
    WordForm(
        re.compile(r"connection refused|no route to host|network is unreachable", re.I),
        "The server of a volume of {pod} does not answer its node",
        "Check the server's name or address in the data source; if it is right, ask the "
        "administrator whether the nodes may reach it.",
    ),
    WordForm(
        re.compile(r"timed out waiting|deadline ?exceeded|connection timed out", re.I),
        "A volume of {pod} does not come: its node waited for it in vain",
        "Ask the administrator whether the storage answers; the node tries again by itself.",
    ),
)
_CLAIM_FORMS: Sequence[WordForm] = (
    WordForm(
        re.compile(
            r'persistentvolumeclaim "(?P<claim>[^"]{1,253})" bound to non-existent '
            r'persistentvolume "(?P<volume>[^"]{1,253})"'
        ),
        "{volume}, to which the claim {claim} is bound, is not there any more",
        "Choose another claim, or make it anew: its data was in that volume.",
    ),
    WordForm(
        re.compile(r'persistentvolumeclaim "(?P<claim>[^"]{1,253})" is being deleted'),
        "the claim {claim} is being deleted",
        "Choose another claim, or make it anew when it is gone.",
    ),
    WordForm(
        re.compile(r'persistentvolumeclaim "(?P<claim>[^"]{1,253})" not found'),
        "the claim {claim} is not there",
        "Create it in the project's namespace, or choose another data source.",
    ),
    WordForm(
        re.compile(r"object has been modified"),
        "the scheduler and somebody else wrote to a claim at the same time, and it has to try "
        "again",
        "Nothing needs to be done: the scheduler tries again by itself.",
    ),
    WordForm(
        re.compile(r"ReadWriteOncePod"),
        "another pod uses its claim, which one pod at a time may use",
        "It starts when that pod ends; for several pods choose a claim with the access mode "
        "ReadWriteMany.",
    ),
    WordForm(
        re.compile(r"unbound immediate PersistentVolumeClaims"),
        "one of its claims has none yet",
        _CLAIM_ADVICE,
    ),
)
"""Forms of words of schedulers about claims."""


def diagnose_claims(
    messages: Sequence[tuple[str, str]], events: Sequence[Object]
) -> Diagnosis | None:
    """Return the claim that a pod without a node waits for: before it nobody looks for room.

    `messages` are what the scheduler says, each with the pod that it is about.
    """
    for message, pod in messages:
        if "persistentvolumeclaim" not in message.lower():
            continue
        return _diagnose_claim_by_events(events, pod) or _diagnose_claim_by_message(message, pod)
    return None


def _diagnose_claim_by_message(message: str, pod: str) -> Diagnosis:
    for form in _CLAIM_FORMS:
        if match := form.pattern.search(message):
            words = form.describe(match)
            return Diagnosis(build_sentence(f"It waits for a volume: {words}"), form.help, pod=pod)
    words = _PREEMPTION.sub("", message)
    return Diagnosis(build_sentence(f"It waits for a volume: {words}"), _CLAIM_ADVICE, pod=pod)


def _find_claim_event(events: Sequence[Object]) -> tuple[str, str, str] | None:
    """Return the newest event about a claim that Muster made: claim, reason and text."""
    of_claims = [each for each in events if get_involved_object(each).get("kind") == CLAIM]
    newest = find_newest(of_claims, *_CLAIM_REASONS)
    if newest is None:
        return None
    name = str(get_involved_object(newest).get("name") or "")
    return name, str(newest.get("reason")), get_text(newest)


def _diagnose_claim_by_events(events: Sequence[Object], pod: str) -> Diagnosis | None:
    event = _find_claim_event(events)
    if event is None:
        return None
    claim, reason, text = event
    lead = f"It waits for a volume: its claim {claim}"
    if reason == "FailedBinding" or "no storage class is set" in text:
        words = f"{lead} names no storage class, and there is no volume that fits"
        advice = "Choose a storage class, or ask the administrator to set a default one."
    elif reason in ("ProvisioningFailed", "VolumeMismatch"):
        words = f"{lead} could not be made: {text}"
        advice = "Choose another storage class or size, or ask the administrator of the cluster."
    elif reason in ("ExternalProvisioning", "Provisioning"):
        words = f"{lead} is being made"
        advice = (
            "If this lasts for minutes, ask the administrator whether the storage's driver works."
        )
    else:
        return None
    return Diagnosis(build_sentence(words), advice, pod=pod)


def diagnose_first_consumer(events: Sequence[Object], pod: str) -> Diagnosis | None:
    """Return that a claim is made once a pod has its node: it is not the cause of the wait."""
    event = _find_claim_event(events)
    if event is None or event[1] not in ("WaitForFirstConsumer", "WaitForPodScheduled"):
        return None
    words = (
        f"Its claim {event[0]} is made where the first pod gets its node, and the scheduler has "
        "found none yet"
    )
    advice = "The claim itself needs nothing: it waits for room on a node that its storage reaches."
    return Diagnosis(build_sentence(words), advice, pod=pod)


def diagnose_mounts(pod: PodView, pod_events: Sequence[Object]) -> Diagnosis | None:
    """Return why a volume of a pod on a node cannot be mounted; None without such an event."""
    event = find_newest(pod_events, *MOUNT_REASONS, *LATER_REASONS)
    if event is None or event.get("reason") not in MOUNT_REASONS:
        return None
    later = find_newest(pod_events, *LATER_REASONS)
    precise = find_newest(
        [each for each in pod_events if not get_text(each).startswith(_GENERAL_TEXT)],
        *MOUNT_REASONS,
    )
    if precise is not None and (later is None or get_time(later) <= get_time(precise)):
        event = precise
    text = get_text(event)
    for form in _MOUNT_FORMS:
        if match := form.pattern.search(text):
            sort = _describe_sort(match.groupdict().get("sort") or "")
            detail = clean_text(text.rpartition(" desc = ")[2], LONGEST_DETAIL)
            words = form.describe(match, pod=pod.title, sort=sort, detail=detail)
            return Diagnosis(build_sentence(words), form.help, pod.name)
    return Diagnosis(
        build_sentence(f"A volume of {pod.title} cannot be mounted: {text}"),
        "Check that the volume's source exists and may be used on this node.",
        pod.name,
    )


def _describe_sort(sort: str) -> str:
    return {"secret": "Secret"}.get(sort.lower(), "ConfigMap")

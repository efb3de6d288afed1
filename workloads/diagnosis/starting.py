"""Why pods that have their node do not run yet."""

from collections.abc import Sequence

from workloads import quantities
from workloads.diagnosis.events import about, newest
from workloads.diagnosis.result import Diagnosis, sentence
from workloads.observed import Object, PodView, Wait, plain

IMAGE = frozenset(
    (
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
    )
)
CONFIGURATION = frozenset(("CreateContainerConfigError",))
CREATION = frozenset(
    ("CreateContainerError", "RunContainerError", "ContainerCannotRun", "StartError")
)
VOLUMES = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")
NETWORK = ("FailedCreatePodSandBox",)
FETCHING = (
    "Look into its log, and check the repository's or bucket's address, its revision and its "
    "Secret."
)


def why_not_started(pods: Sequence[PodView], events: Sequence[Object]) -> Diagnosis | None:
    """What is wrong with the first pod that something is wrong with, else what is still going on;
    None when all pods are ready.
    """
    waiting = [pod for pod in pods if not pod.ready]
    if not waiting:
        return None
    for pod in waiting:
        for wait in pod.waits:
            if told := _by_reason(pod, wait):
                return told
        if told := _by_event(pod, events):
            return told
    up = f"{len(pods) - len(waiting)} of {len(pods)} pods are ready"
    return Diagnosis(
        sentence(
            f"{up}; {waiting[0].title} is starting: its image is pulled and its volumes are mounted"
        ),
        "The first start on a node takes as long as its image is large.",
        pod=waiting[0].name,
    )


def _by_reason(pod: PodView, wait: Wait) -> Diagnosis | None:
    behind = f": {wait.message}" if wait.message else ""
    if wait.reason in IMAGE:
        return Diagnosis(
            sentence(
                f"The image {wait.image or pod.image} of {pod.title} cannot be pulled "
                f"({wait.reason}){behind}"
            ),
            (
                "It is not the workload's own: ask the administrator to make it reachable, or to "
                "name another one."
            )
            if pod.is_init(wait.container)
            else (
                "Check the image's name and tag; if its registry asks for a login, choose a pull "
                "credential."
            ),
            pod.name,
            wait.container,
        )
    if wait.reason in CONFIGURATION:
        return Diagnosis(
            sentence(f"{pod.title} refers to something that is not there{behind}"),
            "Check the names and keys of its Secrets and ConfigMaps in this project.",
            pod.name,
            wait.container,
        )
    if wait.reason in CREATION:
        return Diagnosis(
            sentence(f"The container of {pod.title} cannot be started ({wait.reason}){behind}"),
            "Check the command and the working directory against the image.",
            pod.name,
            wait.container,
        )
    if wait.reason == "CrashLoopBackOff":
        codes = [
            f" with exit code {end.exit_code}"
            for end in pod.ends
            if end.container == wait.container
        ]
        restarts = quantities.counted(pod.restarts, "restart")
        who = (
            f"{wait.container}, which has to end well before {pod.title} starts,"
            if pod.is_init(wait.container)
            else pod.title
        )
        told = (
            f"{who} keeps ending{codes[0] if codes else ''} and waits before it is started again, "
            f"after {restarts}"
        )
        advice = FETCHING if wait.container.startswith("fetch-") else "Look into its log."
        return Diagnosis(sentence(told), advice, pod.name, wait.container)
    return None


def _by_event(pod: PodView, events: Sequence[Object]) -> Diagnosis | None:
    mine = about(events, pod.name)
    for reasons, what, advice in (
        (
            VOLUMES,
            "A volume of {} cannot be mounted",
            "Check that the volume's source exists and may be used on this node.",
        ),
        (
            NETWORK,
            "The network of {} cannot be set up",
            "Ask the administrator of the cluster to look at the node.",
        ),
    ):
        event = newest(mine, *reasons)
        if event is not None:
            text = plain(event.get("message") or event.get("note"))
            return Diagnosis(sentence(f"{what.format(pod.title)}: {text}"), advice, pod.name)
    return None

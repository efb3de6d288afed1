"""Why pods that have their node do not run yet."""

from collections.abc import Mapping, Sequence

from workloads import quantities
from workloads.diagnosis.events import filter_events_about, find_newest
from workloads.diagnosis.result import Diagnosis, build_sentence
from workloads.kube_objects import ContainerWait, Object, PodView, clean_text

IMAGE_REASONS = frozenset(
    (
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
    )
)
CONFIGURATION_REASONS = frozenset(("CreateContainerConfigError",))
CREATION_REASONS = frozenset(
    ("CreateContainerError", "RunContainerError", "ContainerCannotRun", "StartError")
)
VOLUME_REASONS = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")
NETWORK_REASONS = ("FailedCreatePodSandBox",)
FETCHER_ADVICE = (
    "Look into its log, and check the repository's or bucket's address, its revision and its "
    "Secret."
)


def diagnose_start(
    pods: Sequence[PodView], events: Sequence[Object], counts: Mapping[str, int]
) -> Diagnosis | None:
    """Return what is wrong with the first such pod, else what is still going on.

    None when all pods are ready. `counts` is how many pods one stands for, by its name; 1 without.
    """
    waiting = [pod for pod in pods if not pod.ready]
    if not waiting:
        return None
    for pod in waiting:
        for wait in pod.waits:
            if diagnosis := _diagnose_wait(pod, wait):
                return diagnosis
        if diagnosis := _diagnose_by_events(pod, events):
            return diagnosis
    total, not_ready = (sum(counts.get(pod.name, 1) for pod in part) for part in (pods, waiting))
    up = f"{total - not_ready} of {total} pods are ready"
    return Diagnosis(
        build_sentence(
            f"{up}; {waiting[0].title} is starting: its image is pulled and its volumes are mounted"
        ),
        "The first start on a node takes as long as its image is large.",
        pod=waiting[0].name,
    )


def _diagnose_wait(pod: PodView, wait: ContainerWait) -> Diagnosis | None:
    behind = f": {wait.message}" if wait.message else ""
    if wait.reason in IMAGE_REASONS:
        return Diagnosis(
            build_sentence(
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
    if wait.reason in CONFIGURATION_REASONS:
        return Diagnosis(
            build_sentence(f"{pod.title} refers to something that is not there{behind}"),
            "Check the names and keys of its Secrets and ConfigMaps in this project.",
            pod.name,
            wait.container,
        )
    if wait.reason in CREATION_REASONS:
        return Diagnosis(
            build_sentence(
                f"The container of {pod.title} cannot be started ({wait.reason}){behind}"
            ),
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
        restarts = quantities.format_count(pod.restarts, "restart")
        who = (
            f"{wait.container}, which has to end well before {pod.title} starts,"
            if pod.is_init(wait.container)
            else pod.title
        )
        text = (
            f"{who} keeps ending{codes[0] if codes else ''} and waits before it is started again, "
            f"after {restarts}"
        )
        advice = FETCHER_ADVICE if wait.container.startswith("fetch-") else "Look into its log."
        return Diagnosis(build_sentence(text), advice, pod.name, wait.container)
    return None


def _diagnose_by_events(pod: PodView, events: Sequence[Object]) -> Diagnosis | None:
    pod_events = filter_events_about(events, pod.name)
    for reasons, what, advice in (
        (
            VOLUME_REASONS,
            "A volume of {} cannot be mounted",
            "Check that the volume's source exists and may be used on this node.",
        ),
        (
            NETWORK_REASONS,
            "The network of {} cannot be set up",
            "Ask the administrator of the cluster to look at the node.",
        ),
    ):
        event = find_newest(pod_events, *reasons)
        if event is not None:
            text = clean_text(event.get("message") or event.get("note"))
            return Diagnosis(build_sentence(f"{what.format(pod.title)}: {text}"), advice, pod.name)
    return None

"""Why pods that have their node do not run yet."""

import re
from collections.abc import Mapping, Sequence

from workloads import quantities
from workloads.diagnosis.container_ends import OUT_OF_MEMORY, choose_memory_advice, is_fetcher
from workloads.diagnosis.events import filter_events_about, find_newest, get_text
from workloads.diagnosis.image_pulls import IMAGE_REASONS, diagnose_image, diagnose_pull
from workloads.diagnosis.result import LOOK_INTO_LOG, Diagnosis, build_sentence
from workloads.diagnosis.runtime_refusals import find_runtime_refusal
from workloads.diagnosis.volumes import LATER_REASONS, diagnose_mounts
from workloads.kube_objects import Object
from workloads.pod_views import ContainerWait, PodView

CONFIGURATION_REASONS = frozenset(("CreateContainerConfigError",))
CREATION_REASONS = frozenset(
    ("CreateContainerError", "RunContainerError", "ContainerCannotRun", "StartError")
)
NODE_REASONS = (
    "FailedCreatePodContainer",
    "FailedCreatePodSandBox",
    "FailedPrepareDynamicResources",
    "NetworkNotReady",
)
"""Reasons of events of a pod whose node cannot begin to start it."""
_NETWORK = re.compile(r"network|\bcni\b|\bip address", re.I)
_RUNTIME = re.compile(r"no runtime for \"(?P<name>[^\"]{1,253})\" is configured")
FETCHER_ADVICE = (
    "Look into its log, and check the repository's or bucket's address, its revision and its "
    "Secret."
)
_MISSING_KEY = re.compile(
    r"couldn't find key (?P<key>\S{1,253}) in (?P<sort>Secret|ConfigMap) (?P<name>\S{1,253})"
)
_MISSING_OBJECT = re.compile(r"(?P<sort>secret|configmap) \"(?P<name>[^\"]{1,253})\" not found")
_SORTS = {"secret": "Secret", "configmap": "ConfigMap"}
_LOOK_AT_NODE = "Ask the administrator of the cluster to look at the node."
_HOOK_ADVICE = "Look into its log, and check the command of its postStart hook."
_NOT_READ_YET = re.compile(
    r"failed to sync (?:secret|configmap) cache|services have not yet been read|"
    r"no relationship found between node"
)
_CONFIGURATION_ADVICE = "Check the names and keys of its Secrets and ConfigMaps in this project."


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
            if diagnosis := _diagnose_wait(pod, wait, events):
                return diagnosis
        if diagnosis := _diagnose_by_events(pod, events):
            return diagnosis
    total, not_ready = (sum(counts.get(pod.name, 1) for pod in part) for part in (pods, waiting))
    return _diagnose_progress(waiting, events, f"{total - not_ready} of {total} pods are ready")


def _diagnose_progress(
    waiting: Sequence[PodView], events: Sequence[Object], ready: str
) -> Diagnosis:
    """Return what still goes on: an image is pulled, an init container runs, a probe fails."""
    if pull := diagnose_pull(waiting, events, ready):
        return pull
    for pod in waiting:
        if running := _find_running_init(pod):
            return _describe_init(pod, running, ready)
    for pod in waiting:
        if pod.phase == "Running" and not pod.waits:
            return _describe_probe(pod, events, ready)
    return Diagnosis(
        build_sentence(
            f"{ready}; {waiting[0].title} is starting: its image is pulled and its volumes are "
            "mounted"
        ),
        "The first start on a node takes as long as its image is large.",
        pod=waiting[0].name,
    )


def _find_running_init(pod: PodView) -> str:
    """Return the init container that runs; "" where none does, or nothing is known of them."""
    if not any(wait.reason == "PodInitializing" for wait in pod.waits):
        return ""
    idle_containers = {wait.container for wait in pod.waits} | {
        end.container for end in pod.ends if end.current
    }
    return next((name for name in pod.init_containers if name not in idle_containers), "")


def _describe_init(pod: PodView, container: str, ready: str) -> Diagnosis:
    place = pod.init_containers.index(container) + 1
    steps = f" ({place} of {len(pod.init_containers)})" if len(pod.init_containers) > 1 else ""
    if container == "init-pytorch":
        advice = "It waits until the name of the master can be resolved: the master has to start."
    elif is_fetcher(container):
        advice = "It fetches data: how far it is, is in its log."
    else:
        advice = "How far it is, is in its log."
    return Diagnosis(
        build_sentence(
            f"{ready}; {container} of {pod.title} runs{steps}, which has to end well before the "
            "program starts"
        ),
        advice,
        pod.name,
        container,
    )


def _describe_probe(pod: PodView, events: Sequence[Object], ready: str) -> Diagnosis:
    unhealthy = find_newest(filter_events_about(events, pod.name), "Unhealthy")
    text = get_text(unhealthy) if unhealthy is not None else ""
    behind = f": {text}" if text else ""
    return Diagnosis(
        build_sentence(f"{ready}; {pod.title} runs, and does not say yet that it is ready{behind}"),
        "Look into its log, and check the path and port of its readiness probe."
        if text
        else LOOK_INTO_LOG,
        pod.name,
    )


def _diagnose_wait(pod: PodView, wait: ContainerWait, events: Sequence[Object]) -> Diagnosis | None:
    behind = f": {wait.message}" if wait.message else ""
    if wait.reason in IMAGE_REASONS:
        return diagnose_image(pod, wait, events)
    if wait.reason in CONFIGURATION_REASONS:
        return _diagnose_configuration(pod, wait)
    lead = f"The container of {pod.title} cannot be started ({wait.reason})"
    if wait.reason in CREATION_REASONS:
        refusal = find_runtime_refusal(wait.message)
        meaning = f", because {refusal.meaning}" if refusal.meaning else ""
        return Diagnosis(
            build_sentence(f"{lead}{meaning}{behind}"), refusal.help, pod.name, wait.container
        )
    if wait.reason == "CrashLoopBackOff":
        return _diagnose_crash_loop(pod, wait)
    if wait == pod.known_wait:
        # The hook is the container's own command, unlike what else keeps it from starting.
        advice = _HOOK_ADVICE if wait.reason == "PostStartHookError" else _LOOK_AT_NODE
        return Diagnosis(build_sentence(f"{lead}{behind}"), advice, pod.name, wait.container)
    return None


def _diagnose_configuration(pod: PodView, wait: ContainerWait) -> Diagnosis:
    """Return which Secret, ConfigMap or key a container refers to that is not there."""
    if key := _MISSING_KEY.search(wait.message):
        return Diagnosis(
            build_sentence(
                f"{pod.title} refers to the key {key['key']} of the {key['sort']} "
                f"{key['name'].rpartition('/')[2]}, which has no such key"
            ),
            _CONFIGURATION_ADVICE,
            pod.name,
            wait.container,
        )
    if missing := _MISSING_OBJECT.search(wait.message):
        sort = _SORTS[missing["sort"]]
        return Diagnosis(
            build_sentence(
                f"{pod.title} refers to the {sort} {missing['name']}, which is not there"
            ),
            f"Create the {sort} in the project's namespace, or correct its name.",
            pod.name,
            wait.container,
        )
    if _NOT_READ_YET.search(wait.message):
        return Diagnosis(
            build_sentence(
                f"The node of {pod.title} has not read all that it needs: {wait.message}"
            ),
            "Nothing needs to be done: the node tries again by itself. If it lasts, ask the "
            "administrator whether the node reaches the API server.",
            pod.name,
            wait.container,
        )
    if "subPath" in wait.message:
        return Diagnosis(
            build_sentence(
                f"A volume of {pod.title} has not the path that is to be mounted of it, and it "
                f"cannot be made: {wait.message}"
            ),
            "Check the path within the volume, and that the volume may be written.",
            pod.name,
            wait.container,
        )
    if "non-numeric user" in wait.message:
        return Diagnosis(
            build_sentence(
                f"{pod.title} may not run as root, and its node cannot tell whether its image "
                f"would, which names its user without a number: {wait.message}"
            ),
            "Set a user ID other than 0.",
            pod.name,
            wait.container,
        )
    if "runAsNonRoot" in wait.message:
        return Diagnosis(
            build_sentence(f"{pod.title} may not run as root, and its image would: {wait.message}"),
            "Set a user ID other than 0, or choose an image that runs as another user.",
            pod.name,
            wait.container,
        )
    behind = f": {wait.message}" if wait.message else ""
    return Diagnosis(
        build_sentence(f"{pod.title} refers to something that is not there{behind}"),
        _CONFIGURATION_ADVICE,
        pod.name,
        wait.container,
    )


def _diagnose_crash_loop(pod: PodView, wait: ContainerWait) -> Diagnosis:
    end = next((end for end in pod.ends if end.container == wait.container), None)
    is_out_of_memory = end is not None and end.reason == OUT_OF_MEMORY
    code = f" with exit code {end.exit_code}" if end else ""
    how = "being killed for using more memory than it may" if is_out_of_memory else f"ending{code}"
    restarts = quantities.format_count(pod.restarts, "restart")
    subject = (
        f"{wait.container}, which has to end well before {pod.title} starts,"
        if pod.is_init(wait.container)
        else pod.title
    )
    text = f"{subject} keeps {how} and waits before it is started again, after {restarts}"
    if is_out_of_memory:
        advice = choose_memory_advice(wait.container)
    else:
        advice = FETCHER_ADVICE if is_fetcher(wait.container) else LOOK_INTO_LOG
    return Diagnosis(build_sentence(text), advice, pod.name, wait.container)


def _diagnose_by_events(pod: PodView, events: Sequence[Object]) -> Diagnosis | None:
    if pod.phase == "Running":
        return None
    pod_events = filter_events_about(events, pod.name)
    if mounts := diagnose_mounts(pod, pod_events):
        return mounts
    event = find_newest(pod_events, *NODE_REASONS, *LATER_REASONS)
    if event is None or event.get("reason") not in NODE_REASONS:
        return None
    text = get_text(event)
    if event.get("reason") == "FailedPrepareDynamicResources":
        words = f"The devices of {pod.title} cannot be made ready: {text}"
    elif runtime := _RUNTIME.search(text):
        words = f"The node of {pod.title} has not the container runtime {runtime['name']}"
    elif _NETWORK.search(text):
        words = f"The network of {pod.title} cannot be set up: {text}"
    else:
        words = f"The node cannot prepare {pod.title}: {text}"
    return Diagnosis(build_sentence(words), _LOOK_AT_NODE, pod.name)

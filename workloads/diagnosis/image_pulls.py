"""What comes of the image of a container: why it cannot be pulled, or how long it has been."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from workloads import quantities
from workloads.diagnosis.events import (
    describe_since,
    filter_events_about,
    find_newest,
    get_text,
    get_time,
)
from workloads.diagnosis.result import Diagnosis, build_sentence
from workloads.kube_objects import Object
from workloads.pod_views import ContainerWait, PodView

IMAGE_REASONS = frozenset(
    (
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    )
)
_PROGRESS = ("Pulling", "Pulled", "Created", "Started", "Failed", "BackOff")
"""Reasons of events of a pod, of which the newest says whether an image is being pulled."""
_PULLING = re.compile(r'^Pulling image "([^"]{1,512})"')
_PULLED = re.compile(
    r'^Successfully pulled image "(?P<image>[^"]{1,512})" in (?P<took>[0-9.hmsµn]{1,20})'
    r"(?:.{0,60}?Image size: (?P<bytes>\d{1,15}) bytes)?",
    re.DOTALL,
)
_BACK_OFF = re.compile(r"^Back-off pulling image \"[^\"]{1,512}\"$")
"""What a kubelet before 1.31 says between two pulls, without why they fail."""
_FAILED_PULL = re.compile(
    r'^Failed to pull image "(?P<image>[^"]{1,512})": (?P<words>.+)', re.DOTALL
)
_MISSING_SECRET = re.compile(r"image pull secrets \(([^)]{1,512})\)")
_NOT_OURS = (
    "It is not the workload's own: ask the administrator to make it reachable, or to name another "
    "one."
)
_ANY = "Check the image's name and tag; if its registry asks for a login, choose a pull credential."


@dataclass(frozen=True, slots=True)
class _PullForm:
    """What the registry or the node says of a pull that failed, and what that means."""

    pattern: re.Pattern[str]
    meaning: str
    help: str


_LOGIN = _PullForm(
    re.compile(
        r"unauthorized|authentication required|access denied|denied: |"
        r"40[23] \(?(?:payment required|forbidden)|"
        r"no basic auth|authorization failed",
        re.I,
    ),
    "its registry asks for a login, or does not allow this one",
    "Choose a pull credential that may read the image; check the image's name, too: some "
    "registries answer so where there is none.",
)
_FORMS: Sequence[_PullForm] = (
    _PullForm(
        re.compile(r"toomanyrequests|too many requests|rate limit", re.I),
        "its registry allows no more pulls for now",
        "It is tried again by itself; a pull credential has a limit of its own.",
    ),
    _PullForm(
        re.compile(r"pull QPS exceeded"),
        "the node pulls as many images at once as it may",
        "It is tried again by itself: nothing needs to be done.",
    ),
    _PullForm(
        re.compile(r"signature was required|signature validation|SignatureValidationFailed"),
        "the node takes signed images alone, and does not trust this one's signature",
        "Choose an image that is signed, or ask the administrator of the cluster about its rules.",
    ),
    _LOGIN,
    _PullForm(
        re.compile(
            r"no matching manifest|exec format|does not match the specified platform|"
            r"no match for platform|no image found in (?:manifest list|image index)",
            re.I,
        ),
        "it is not made for the processors of its node",
        "Build the image for the nodes' architecture, or choose nodes of another one.",
    ),
    _PullForm(
        re.compile(r"content digest sha256:[0-9a-f]{1,64}: not found", re.I),
        "its node has lost a part of it",
        "Choose other nodes, or ask the administrator of the cluster to look at the container "
        "runtime of the node.",
    ),
    _PullForm(
        re.compile(r"manifest unknown|not found|name unknown|repository does not exist", re.I),
        "there is no such image or tag",
        "Check the image's name and tag against its registry.",
    ),
    _PullForm(
        re.compile(r"certificate has expired or is not yet valid", re.I),
        "its registry's certificate has expired, or the node's clock is wrong",
        "Ask whoever runs the registry for a new certificate, or the administrator of the cluster "
        "about the node's clock.",
    ),
    _PullForm(
        re.compile(r"http response to https", re.I),
        "its registry speaks no HTTPS, and the node asks for it",
        "Ask the administrator of the cluster to let its nodes reach the registry without HTTPS.",
    ),
    _PullForm(
        re.compile(r"x509|certificate", re.I),
        "the node does not trust its registry's certificate",
        "Ask the administrator of the cluster to let its nodes trust the registry.",
    ),
    _PullForm(
        re.compile(r"no space left on device|disk.?pressure", re.I),
        "the node's disk is full",
        "Ask the administrator of the cluster to make room on the node, or choose other nodes.",
    ),
    _PullForm(
        re.compile(r"media type .{1,160} (?:is )?no longer supported", re.I),
        "its registry has it in an old form, which the node no longer takes",
        "Build the image anew and push it, or choose another one.",
    ),
    _PullForm(
        re.compile(r"unexpected commit digest|failed size validation", re.I),
        "what came from its registry was damaged",
        "It is tried again by itself; if it lasts, ask whoever runs the registry.",
    ),
    _PullForm(
        re.compile(r"proxyconnect", re.I),
        "the proxy of its node does not answer",
        "Ask the administrator of the cluster to look at the proxy that its nodes use.",
    ),
    _PullForm(
        re.compile(r"unexpected EOF|context canceled", re.I),
        "the transfer from its registry broke off",
        "It is tried again by itself; if it lasts, ask the administrator whether the nodes reach "
        "the registry well.",
    ),
    _PullForm(
        re.compile(
            r"no such host|i/o timeout|connection refused|network is unreachable|"
            r"deadline exceeded|temporary failure|tls handshake timeout|no route to host|"
            r"client\.timeout|request canceled|connection reset|registry is unavailable|\bEOF\b",
            re.I,
        ),
        "the node does not reach its registry",
        "Check the registry's name in the image; if it is right, ask the administrator whether "
        "the nodes may reach it.",
    ),
    _PullForm(
        re.compile(r"\b50[0-4] \(?(?:internal|bad|service|gateway)", re.I),
        "its registry fails",
        "It is tried again by itself; if it lasts, ask whoever runs the registry.",
    ),
)


def diagnose_image(pod: PodView, wait: ContainerWait, events: Sequence[Object]) -> Diagnosis:
    """Return why a container's image cannot be pulled, with what the registry says."""
    image = wait.image or pod.image
    words = _find_failed_pull(pod, image, events) if _BACK_OFF.match(wait.message) else ""
    words = words or wait.message
    behind = f": {words}" if words else ""
    text = f"{wait.reason} {words}"
    form = next((each for each in _FORMS if each.pattern.search(text)), None)
    lead = f"The image {image} of {pod.title} cannot be pulled ({wait.reason})"
    if wait.reason == "InvalidImageName":
        advice = "Correct the image's name: it has characters or a form that no image has."
    elif wait.reason == "ErrImageNeverPull":
        advice = "Allow its image to be pulled, or ask the administrator to put it on the nodes."
    else:
        advice = form.help if form else _ANY
    if pod.is_init(wait.container):
        advice = _NOT_OURS
    elif form is _LOGIN and (missing := _find_missing_secret(pod, events)):
        return Diagnosis(
            build_sentence(f"{lead}, because its pull credential {missing} is not there{behind}"),
            "Create that Secret in the project's namespace, or choose another pull credential.",
            pod.name,
            wait.container,
        )
    meaning = f", because {form.meaning}" if form else ""
    return Diagnosis(build_sentence(f"{lead}{meaning}{behind}"), advice, pod.name, wait.container)


def _find_failed_pull(pod: PodView, image: str, events: Sequence[Object]) -> str:
    """Return why the last pull of an image for a pod failed; "" where no event says it."""
    failed = find_newest(
        [
            each
            for each in filter_events_about(events, pod.name)
            if (match := _FAILED_PULL.match(get_text(each))) and match["image"] == image
        ],
        "Failed",
    )
    match = _FAILED_PULL.match(get_text(failed)) if failed is not None else None
    return match["words"] if match else ""


def _find_missing_secret(pod: PodView, events: Sequence[Object]) -> str:
    """Return the pull credentials that the node of a pod did not find; "" where it says none."""
    event = find_newest(filter_events_about(events, pod.name), "FailedToRetrieveImagePullSecret")
    match = _MISSING_SECRET.search(get_text(event)) if event is not None else None
    return match[1] if match else ""


def diagnose_pull(
    pods: Sequence[PodView], events: Sequence[Object], ready: str
) -> Diagnosis | None:
    """Return the first pod whose image is being pulled, since when, and its size where known.

    `ready` says how many pods are ready. The size is that of the same image on another node.
    """
    for pod in pods:
        newest = find_newest(filter_events_about(events, pod.name), *_PROGRESS)
        match = _PULLING.match(get_text(newest)) if newest is not None else None
        if newest is None or match is None or newest.get("reason") != "Pulling":
            continue
        image, since = match[1], describe_since(get_time(newest))
        text = f"{ready}; the image {image} of {pod.title} is being pulled{since}"
        return Diagnosis(
            build_sentence(f"{text}{_describe_size(image, events)}"),
            "The first start on a node takes as long as its image is large.",
            pod.name,
        )
    return None


def _describe_size(image: str, events: Sequence[Object]) -> str:
    """Describe the size of an image, and how long its pull took elsewhere; "" where unknown."""
    for event in events:
        match = _PULLED.match(get_text(event)) if event.get("reason") == "Pulled" else None
        if match is None or match["image"] != image:
            continue
        took = f"elsewhere its pull took {match['took']}"
        if not match["bytes"]:
            return f"; {took}"
        return f"; it has {quantities.format_memory(Decimal(match['bytes']))}, and {took}"
    return ""

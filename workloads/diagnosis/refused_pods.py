"""Why the cluster refuses to make a job's pods, by the events of the job or of its batch Jobs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clusters.job_kinds import JOB_KINDS
from workloads.diagnosis.events import filter_job_events, find_newest, get_text
from workloads.diagnosis.result import Diagnosis, build_sentence
from workloads.kube_objects import Object

SERVICE_REASON = "FailedCreateService"
"""The reason of an event about a job whose services are refused."""
REFUSAL_REASONS = ("FailedCreatePod", "FailedCreate", SERVICE_REASON)
"""Reasons of events about a job whose pods are refused."""
INVALID_REASONS = tuple(reason for kind in JOB_KINDS.values() for reason in kind.refusal_reasons)
"""Reasons of operators that create nothing for a job, and report it nowhere else."""
_QUOTA = re.compile(
    r"exceeded quota: (?P<name>[a-z0-9.-]{1,253}), requested: (?P<asked>[^ ]+?), "
    r"used: (?P<used>[^ ]+?), limited: (?P<most>[^ ]+)"
)
_NO_WEBHOOK = re.compile(r"failed calling webhook|connection refused|no endpoints available")
_PLACED_LATER = re.compile(
    r"leader pod not (?:yet )?scheduled|follower pod node selector|expected 1 leader pod"
)
"""How JobSet holds back pods that are to be where the first one is, until it has its node."""
_QUOTA_ADVICE = (
    "The namespace has a quota of its own: ask for less, or ask the administrator of the cluster "
    "for more."
)


@dataclass(frozen=True, slots=True)
class _RefusalForm:
    """A form of words of an admission, and what would help."""

    pattern: re.Pattern[str]
    help: str


_FORMS: Sequence[_RefusalForm] = (
    # What a webhook that does not answer is called must not be taken for its reason.
    _RefusalForm(
        _NO_WEBHOOK,
        "A webhook of the cluster does not answer: ask the administrator of the cluster. The "
        "operator tries again by itself.",
    ),
    _RefusalForm(re.compile(r"exceeded quota"), _QUOTA_ADVICE),
    _RefusalForm(
        re.compile(r"must specify (?:limits|requests)|failed quota"),
        "The namespace has a quota, under which each pod has to say what it needs: set its CPU "
        "and memory.",
    ),
    _RefusalForm(
        re.compile(
            r"(?:maximum|minimum) (?:cpu|memory|\S+) usage per|max limit to request ratio per"
        ),
        "The namespace bounds what one pod may ask for (LimitRange): stay within it, or ask the "
        "administrator of the cluster.",
    ),
    _RefusalForm(
        re.compile(
            r"violates PodSecurity|against any (?:security context constraint|pod security policy)"
        ),
        "The namespace allows no such pods: take out what the message names, such as host paths, "
        "or root as the user.",
    ),
    _RefusalForm(
        re.compile(r"no PriorityClass with name"),
        "Choose another priority, or ask the administrator to create it.",
    ),
    _RefusalForm(
        re.compile(r"serviceaccount .{1,260} not found|error looking up service account"),
        "Ask the administrator of the cluster to look at the project's namespace.",
    ),
    _RefusalForm(
        re.compile(r"namespace \S{1,253} because it is being terminated"),
        "The project's namespace is being removed: ask the administrator of the cluster.",
    ),
    _RefusalForm(
        re.compile(
            r"object has been modified|object is being deleted|status unknown for quota|"
            r"etcdserver: (?:request timed out|leader changed|no leader|too many requests)"
        ),
        "Nothing needs to be done: it is tried again by itself. If it lasts, ask the administrator "
        "of the cluster.",
    ),
    _RefusalForm(
        re.compile(r"gpu[ -](?:shar|fraction).{0,200}disabled", re.I | re.DOTALL),
        "Ask for whole GPU devices, or ask the administrator of the cluster to turn GPU sharing "
        "on.",
    ),
    _RefusalForm(
        re.compile(r"cannot create resource \"[a-z]{1,63}\""),
        "The training operator may not make them in the project's namespace: ask the "
        "administrator of the cluster for its rights.",
    ),
    _RefusalForm(
        re.compile(r"RuntimeClass \"[^\"]{1,253}\" not found"),
        "Choose another runtime class, or ask the administrator of the cluster to create it.",
    ),
    _RefusalForm(
        re.compile(r"admission webhook \S{1,260} denied the request|ValidatingAdmissionPolicy"),
        "A rule of the cluster forbids it: change what the message names, or ask the "
        "administrator of the cluster.",
    ),
)
_ANY_ADVICE = (
    "Change what the message names and run it again, or ask the administrator of the cluster."
)


def diagnose_refused_pods(
    job: Object, events: Sequence[Object], reasons: Sequence[str]
) -> Diagnosis | None:
    """Return the newest refusal of the pods of a job; None without one."""
    refused = find_newest(
        [
            each
            for each in filter_job_events(events, job)
            if not _PLACED_LATER.search(get_text(each))
        ],
        *reasons,
    )
    if refused is None:
        return None
    text = get_text(refused)
    advice = next((each.help for each in _FORMS if each.pattern.search(text)), _ANY_ADVICE)
    quota = _QUOTA.search(text)
    noun = "service" if refused.get("reason") == SERVICE_REASON else "pod"
    words = _describe_quota(quota, noun) if quota else text.removeprefix("Error creating: ")
    return Diagnosis(build_sentence(f"The cluster refuses to make its {noun}s: {words}"), advice)


def _describe_quota(quota: re.Match[str], noun: str) -> str:
    """Describe the first amount that is exceeded: what is asked for, in use and allowed."""
    requested, used, most = (_parse_amounts(quota[name]) for name in ("asked", "used", "most"))
    resource = next(iter(requested))
    return (
        f"the namespace's quota {quota['name']} allows {most.get(resource, '?')} of {resource}, "
        f"{used.get(resource, '?')} are in use, and one more {noun} asks for "
        f"{requested[resource]}"
    )


def _parse_amounts(text: str) -> dict[str, str]:
    pairs = (each.partition("=") for each in text.split(","))
    return {name: amount for name, _, amount in pairs}

"""What autoscalers say of a pod that has no node: Kubernetes' cluster autoscaler and Karpenter."""

import re
from collections.abc import Sequence
from dataclasses import replace

from workloads import quantities
from workloads.diagnosis.container_ends import parse_time
from workloads.diagnosis.events import describe_since, find_newest, get_text, get_time
from workloads.diagnosis.result import Diagnosis, build_sentence
from workloads.diagnosis.word_forms import LONGEST_DETAIL
from workloads.kube_objects import Object, clean_text, get_involved_object, nested_dict

_REASONS = (
    "TriggeredScaleUp",
    "NotTriggerScaleUp",
    "FailedScaleUp",
    "Nominated",
    "FailedScheduling",
)
"""Reasons of events about a pod; the last two are Karpenter's, and others have them, too."""
_NEW_NODE = re.compile(r"should schedule on: nodeclaim/")
_KARPENTER = re.compile(r"^Failed to schedule pod, (?P<words>.+)", re.DOTALL)
_WHY_FAILED = re.compile(r"failed: (?P<words>[^.]{1,200})")
_LIMIT = re.compile(
    r"(?P<count>\d{1,5}) max (?:node group size|limit|cluster [\w, ]{1,60} limit) reached"
)
_BACKOFF = re.compile(r"\d{1,5} in backoff after failed scale-up")
_OTHER_REASON = re.compile(r"\d{1,5} (?!max |in backoff )\S")
_MAY_GROW = "Ask the administrator of the cluster whether more nodes may be made."
_NONE_FITS = "Ask the administrator of the cluster which nodes can be made."


def add_scaling(
    diagnosis: Diagnosis, events: Sequence[Object], pods: Sequence[Object]
) -> Diagnosis:
    """Return the diagnosis of pods that lack a node, with what an autoscaler does about it.

    It is returned as it is where no autoscaler has said anything of the pods.
    """
    metadata = [nested_dict(pod, "metadata") for pod in pods]
    made_at = {each.get("name"): str(each.get("creationTimestamp") or "") for each in metadata}
    newest = find_newest(
        [
            each
            for each in events
            if (name := get_involved_object(each).get("name")) in made_at
            and _is_of_autoscaler(each)
            and not _is_before(each, made_at[name])
        ],
        *_REASONS,
    )
    if newest is None:
        return diagnosis
    text = get_text(newest)
    match newest.get("reason"):
        case "TriggeredScaleUp" | "Nominated":
            return replace(
                diagnosis,
                sentence=f"{diagnosis.sentence} New nodes are being made for it"
                f"{describe_since(get_time(newest))}.",
                help="Nothing needs to be done: it starts when they are ready, which takes some "
                "minutes. If none comes, ask the administrator of the cluster.",
                is_queued=False,
            )
        case "FailedScaleUp":
            why = _WHY_FAILED.search(text)
            sentence, advice = (
                f"A new node for it could not be made: {why['words'] if why else text}",
                _MAY_GROW,
            )
        case "NotTriggerScaleUp":
            sentence, advice = _describe_refusals(text)
        case _:
            words = clean_text(_KARPENTER.sub(r"\g<words>", text), LONGEST_DETAIL)
            sentence = f"No new node is made for it: {words}"
            advice = _MAY_GROW if "exceed limits" in text else _NONE_FITS
    return replace(
        diagnosis,
        sentence=f"{diagnosis.sentence} {build_sentence(sentence)}",
        help=f"{diagnosis.help} {advice}".strip(),
    )


def _is_before(event: Object, made_at: str) -> bool:
    """Return whether an event is about an earlier pod of the same name."""
    at, made = parse_time(get_time(event)), parse_time(made_at)
    return at is not None and made is not None and at < made


def _is_of_autoscaler(event: Object) -> bool:
    text = get_text(event)
    match event.get("reason"):
        case "FailedScheduling":
            return _KARPENTER.match(text) is not None
        case "Nominated":
            return _NEW_NODE.search(text) is not None
        case _:
            return True


def _describe_refusals(text: str) -> tuple[str, str]:
    """Return why no group of nodes grows, and what would help."""
    full = sum(int(match["count"]) for match in _LIMIT.finditer(text))
    parts, advice = [], _NONE_FITS
    if _BACKOFF.search(text):
        parts.append("the last try to make one failed")
        advice = "It is tried again by itself after a while."
    if full:
        groups = quantities.format_count(full, "group")
        parts.append(
            f"{groups} of nodes {'is as large as it' if full == 1 else 'are as large as they'} may "
            "be"
        )
        advice = _MAY_GROW
    if _OTHER_REASON.search(text):
        groups = "other groups" if parts else "its groups"
        parts.append(f"new nodes of {groups} would not take it either")
    return f"No new node is made for it{': ' if parts else ''}{'; '.join(parts)}", advice

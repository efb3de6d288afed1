"""How a pod asks for a part of a GPU, and what the KAI scheduler's admission refuses (its
`gpusharing` webhook; sharing is on here).
"""

import re

from localkube.metadata import Object, annotations_of
from localkube.resources.pod_defaults import containers

GPU = "nvidia.com/gpu"
FRACTION = "gpu-fraction"
MEMORY = "gpu-memory"
DEVICES = "gpu-fraction-num-devices"

WEBHOOK = "validating-kai-admission"


def denied(reason: str) -> str:
    """The message of a 403 from an admission webhook."""
    return f'admission webhook "{WEBHOOK}" denied the request: {reason}'


def refusal(pod: Object) -> str | None:
    """Why the pod's request for parts of GPUs makes no sense, in the webhook's words; None when it
    does, or there is none.
    """
    annotations = annotations_of(pod)
    fraction, memory, devices = (
        annotations.get(FRACTION),
        annotations.get(MEMORY),
        annotations.get(DEVICES),
    )
    whole = any(
        GPU in ((container.get("resources") or {}).get("limits") or {})
        for container in containers(pod["spec"])
    )
    if fraction is not None and whole:
        return "cannot have both GPU fraction request and whole GPU resource request/limit"
    if memory is not None and (fraction is not None or whole):
        return "cannot request both GPU and GPU memory"
    if devices is not None and fraction is None and memory is None:
        return (
            "cannot request multiple fractional devices without specifying fraction portion or "
            "gpu-memory"
        )
    if memory is not None and not _is_positive(memory):
        return "gpu-memory annotation value must be a positive integer greater than 0"
    if fraction is not None and not _is_part(fraction):
        return "gpu-fraction annotation value must be a positive number smaller than 1.0"
    if devices is not None and not _is_positive(devices):
        return "fraction count annotation value must be a positive integer greater than 0"
    return None


def _is_positive(text: str) -> bool:
    return bool(re.fullmatch("[0-9]{1,19}", text)) and 0 < int(text) < 2**64


def _is_part(text: str) -> bool:
    return (
        bool(
            re.fullmatch(
                r"[+]?([0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})([eE][-+]?[0-9]{1,3})?", text
            )
        )
        and 0 < float(text) < 1
    )

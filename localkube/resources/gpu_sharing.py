"""How a pod asks for a part of a GPU, and what the KAI scheduler's admission refuses.

The rules are those of its `gpusharing` webhook; sharing is on here.
"""

import re

from localkube.metadata import Object, annotations_of
from localkube.resources.pod_defaults import iterate_containers

GPU_RESOURCE = "nvidia.com/gpu"
FRACTION_ANNOTATION = "gpu-fraction"
MEMORY_ANNOTATION = "gpu-memory"
DEVICES_ANNOTATION = "gpu-fraction-num-devices"

WEBHOOK_NAME = "validating-kai-admission"


def describe_denial(reason: str) -> str:
    """Return the message of a 403 from an admission webhook."""
    return f'admission webhook "{WEBHOOK_NAME}" denied the request: {reason}'


def find_refusal(pod: Object) -> str | None:
    """Return why the pod's request for parts of GPUs makes no sense, or None.

    The words are the webhook's.
    """
    annotations = annotations_of(pod)
    fraction, memory, devices = (
        annotations.get(FRACTION_ANNOTATION),
        annotations.get(MEMORY_ANNOTATION),
        annotations.get(DEVICES_ANNOTATION),
    )
    has_whole_gpu = any(
        GPU_RESOURCE in ((container.get("resources") or {}).get("limits") or {})
        for container in iterate_containers(pod["spec"])
    )
    if fraction is not None and has_whole_gpu:
        return "cannot have both GPU fraction request and whole GPU resource request/limit"
    if memory is not None and (fraction is not None or has_whole_gpu):
        return "cannot request both GPU and GPU memory"
    if devices is not None and fraction is None and memory is None:
        return (
            "cannot request multiple fractional devices without specifying fraction portion or "
            "gpu-memory"
        )
    if memory is not None and not _is_positive_integer(memory):
        return "gpu-memory annotation value must be a positive integer greater than 0"
    if fraction is not None and not _is_proper_fraction(fraction):
        return "gpu-fraction annotation value must be a positive number smaller than 1.0"
    if devices is not None and not _is_positive_integer(devices):
        return "fraction count annotation value must be a positive integer greater than 0"
    return None


def _is_positive_integer(text: str) -> bool:
    return bool(re.fullmatch("[0-9]{1,19}", text)) and 0 < int(text) < 2**64


def _is_proper_fraction(text: str) -> bool:
    return (
        bool(
            re.fullmatch(
                r"[+]?([0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})([eE][-+]?[0-9]{1,3})?", text
            )
        )
        and 0 < float(text) < 1
    )

"""What HAMi's scheduler says of the GPUs of nodes that do not take a pod. Pure."""

import re
from collections.abc import Sequence

from workloads.diagnosis.refusal_forms import RefusalForm, RefusalSort, build_refusal_form

HAMI_FORMS: Sequence[RefusalForm] = (
    build_refusal_form(
        r"\bcardinsufficientmemory\b",
        "has no GPU with as much memory free as it asks for",
        "have no GPU with as much memory free as it asks for",
        "It starts when others give GPU memory back; or ask for less of it.",
        RefusalSort.DEVICE,
    ),
    build_refusal_form(
        r"\bcard(?:insufficientcore|computeunitsexhausted)\b",
        "has no GPU with as many of its cores free as it asks for",
        "have no GPU with as many of its cores free as it asks for",
        "It starts when others give cores of GPUs back; or ask for a smaller share of them.",
        RefusalSort.DEVICE,
    ),
    build_refusal_form(
        r"\bcardtimeslicingexhausted\b",
        "shares its GPUs among as many pods as it may",
        "share their GPUs among as many pods as they may",
        "It starts when pods that share those GPUs leave.",
        RefusalSort.DEVICE,
    ),
    build_refusal_form(
        r"\bexclusivedeviceallocateconflict\b",
        "has no GPU that it could have to itself",
        "have no GPU that it could have to itself",
        "It starts when all who share a GPU leave it; or ask for a part of a GPU.",
        RefusalSort.DEVICE,
    ),
    build_refusal_form(
        r"\bcard(?:typemismatch|uuidmismatch|notfoundcustomfilterrule)\b",
        "has no GPU of the sort that it asks for",
        "have no GPU of the sort that it asks for",
        "Ask for another sort of GPU, or for none in particular.",
        RefusalSort.DEVICE,
    ),
    build_refusal_form(
        r"\bcardnothealth\b",
        "has GPUs that are not healthy",
        "have GPUs that are not healthy",
        "Tell the administrator of the cluster about those nodes.",
        RefusalSort.DEVICE,
    ),
    build_refusal_form(
        r"\bnumanotfit\b",
        "cannot give it GPUs that are side by side (of one NUMA node)",
        "cannot give it GPUs that are side by side (of one NUMA node)",
        "It starts when work on those nodes ends; or ask for fewer GPUs for each pod.",
        RefusalSort.DEVICE,
    ),
    build_refusal_form(
        r"\bnodeinsufficientdevice\b",
        "has fewer GPUs than it asks for",
        "have fewer GPUs than it asks for",
        "Ask for fewer GPUs for each pod, or for other nodes: on these it can never start.",
        RefusalSort.DEVICE,
    ),
    build_refusal_form(
        r"\bresourcequotanotfit\b",
        "would give it more of GPUs than the quota of its namespace allows",
        "would give it more of GPUs than the quota of its namespace allows",
        "It starts when others in the namespace give some back; or ask the administrator of the "
        "cluster for more.",
        RefusalSort.DEVICE,
    ),
    build_refusal_form(
        r"\b(?:nodeunfitpod|node not fit pod|allocatedcardsinsufficientrequest)\b",
        "does not have as many GPUs as it asks for with as much of each free",
        "do not have as many GPUs as it asks for with as much of each free",
        "It starts when others give GPUs, their memory or their cores back; or ask for less.",
        RefusalSort.DEVICE,
    ),
    build_refusal_form(
        r"\bnode unregistere?d\b",
        "is not known to the scheduler as one with GPUs",
        "are not known to the scheduler as ones with GPUs",
        "If those nodes have GPUs, ask the administrator of the cluster whether HAMi's device "
        "plugin runs on them.",
        RefusalSort.DEVICE,
    ),
)
"""What HAMi's scheduler says: its reasons in `pkg/device/common`, which count nodes."""
_UNFIT = re.compile(r"(?P<count>\d{1,7}) (?:NodeUnfitPod|node not fit pod)")
_DEVICE_REASON = re.compile(r"(?P<count>\d{1,7}) nodes? (?P<reason>[A-Z][A-Za-z]{1,60})\(")
"""How HAMi's events say what its answer leaves out, with the names of the nodes in brackets."""


def add_device_reasons(message: str, texts: Sequence[str]) -> str:
    """Return HAMi's answer with the reasons from its events, where those are of as many nodes."""
    unfit = _UNFIT.search(message)
    matches = [match for text in texts if (match := _DEVICE_REASON.match(text))]
    if unfit is None or sum(int(match["count"]) for match in matches) != int(unfit["count"]):
        return message
    reasons = ", ".join(f"{match['count']} {match['reason']}" for match in matches)
    return message[: unfit.start()] + reasons + message[unfit.end() :]

"""What a cluster's sentences say of other workloads, and the sentences without that. Pure."""

import re

NAME = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_GROUP = r"[-a-z0-9.]{0,252}[a-z0-9]"
TAKER = re.compile(
    rf"\b(?P<before>(?:by|for) (?:(?P<higher>higher priority) )?)workload "
    rf"(?:(?P<namespace>{NAME})/)?(?P<group>{_GROUP})"
)
"""Who gets the room of a pod."""
_LEAVER = re.compile(rf"\b(?P<pods>pods? of )(?P<namespace>{NAME})/{_GROUP}")
"""Whose pods leave a place for others, as the embedded scheduler says it."""
_PREEMPTOR = re.compile(
    r"to accommodate a workload \(UID: [^)]{0,200}\)(?P<why> due to [^;\n]{0,200})?[^\n]*"
)
"""For whom Kueue takes quota back: ids of a workload, and the path to its queue."""

_VICTIM = re.compile(rf"\bPreempted workload (?P<namespace>{NAME})/{_GROUP}[^\n]*")
"""Whose quota Kueue took for a workload, its queue and both priorities."""


def strip_names(text: str, namespace: str) -> str:
    """Return a cluster's sentence without the name of a workload in another namespace.

    One without a namespace may be anybody's. The lines below who got the room of a pod, which have
    the amounts of queues, go as well.
    """
    text = _PREEMPTOR.sub(
        lambda taken: f"to accommodate another workload{taken['why'] or ''}", text
    )
    text = _VICTIM.sub(
        lambda victim: (
            victim[0] if victim["namespace"] == namespace else "Preempted another workload"
        ),
        text,
    )
    if any(taker["namespace"] != namespace for taker in TAKER.finditer(text)):
        text = TAKER.sub(
            lambda taker: (
                taker[0]
                if taker["namespace"] == namespace
                else f"{taker['before']}another workload"
            ),
            text.partition("\n")[0],
        )
    return _LEAVER.sub(
        lambda leaver: (
            leaver[0] if leaver["namespace"] == namespace else f"{leaver['pods']}another workload"
        ),
        text,
    )

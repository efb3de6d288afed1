"""Tallies: what the owner of an object counts it by. Pure functions.

The store keeps, for each owner, how many of its objects have the same tally. So a controller knows
the state of ten thousand children without reading one of them.
"""

from typing import NamedTuple

from localkube.metadata import (
    FINISHED_PHASES,
    Object,
    annotations_of,
    find_condition,
    find_controller_reference,
    is_terminating,
    name_of,
)
from localkube.options import DOMAIN

RESTARTS_ANNOTATION = f"{DOMAIN}/restarts"
"""Annotation of a replica's Service: restarts before its present pod, and the uid of the last pod
counted.

A replaced pod starts its own count at 0; without the annotation a replica with restartPolicy
ExitCode would restart for ever, whatever backoffLimit says.
"""

MAX_INDEX_DIGITS = 10
"""As many as the largest replica count has."""

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"


class Tally(NamedTuple):
    """What counts of a pod or a service; equal for children in the same state."""

    role: str
    """The replica type in the child's name, in lower case; "" where the name has none."""
    phase: str
    """The phase of a pod."""
    terminating: bool
    ready: bool
    restarts: int
    """Restarts of a pod in place; of a service, those before its present pod."""
    tracked: bool
    """Whether the pod still waits for its Job to count it."""
    in_grace: bool
    """Whether the kubelet has still to confirm the deletion."""
    shut_down: bool
    """Whether the pod failed because its node went down."""

    @property
    def is_finished(self) -> bool:
        return self.phase in FINISHED_PHASES

    @property
    def is_active(self) -> bool:
        """Whether the child is neither finished nor terminating."""
        return not (self.is_finished or self.terminating)


def tally_object(key: str, obj: Object) -> Tally | None:
    """Return the tally of an object under its store key; None where nobody counts such objects."""
    if key == "pods":
        return _tally_pod(obj)
    if key == "services":
        restarts = parse_restarts(obj)
        return Tally(_find_role(obj), "", is_terminating(obj), False, restarts, False, False, False)
    return None


def parse_restarts(service: Object) -> int:
    """Return how often a service's replica was restarted before its present pod."""
    text, _, _ = annotations_of(service).get(RESTARTS_ANNOTATION, "0").partition(" ")
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def parse_replica_index(text: str) -> int | None:
    """Return the index that ends a replica's name; None unless it is written as operators do.

    `00` is none: a pod of that name would be counted as a replica that it is not.
    """
    if len(text) > MAX_INDEX_DIGITS or not (text.isascii() and text.isdecimal()):
        return None
    index = int(text)
    return index if str(index) == text else None


def _tally_pod(pod: Object) -> Tally:
    metadata, status = pod["metadata"], pod.get("status") or {}
    phase = str(status.get("phase") or "Pending")
    ready = find_condition(status.get("conditions") or (), "Ready")
    return Tally(
        role=_find_role(pod),
        phase=phase,
        terminating=is_terminating(pod),
        ready=ready is not None and ready.get("status") == "True",
        restarts=sum(
            int(container.get("restartCount") or 0)
            for part in ("initContainerStatuses", "containerStatuses")
            for container in status.get(part) or ()
        ),
        tracked=TRACKING_FINALIZER in (metadata.get("finalizers") or ()),
        in_grace=bool(metadata.get("deletionGracePeriodSeconds")),
        shut_down=phase == "Failed" and status.get("reason") == "NodeShutdown",
    )


def _find_role(child: Object) -> str:
    """Return TYPE of a child that is named OWNER-TYPE-INDEX, else ""."""
    owner = find_controller_reference(child)
    if owner is None:
        return ""
    stem, _, index = name_of(child).rpartition("-")
    role = stem.removeprefix(f"{owner.get('name')}-")
    return role if role != stem and parse_replica_index(index) is not None else ""

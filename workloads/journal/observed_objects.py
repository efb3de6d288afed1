"""What was seen in a cluster, made ready before the transaction: bounded, named, and told apart
from garbage.
"""

import functools
import logging
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from workloads.kube_objects import Object, clean_text, find_controller, nested_dict
from workloads.manifests import keys
from workloads.slimming import slim_object

log = logging.getLogger(__name__)

Kind = Literal["job", "pod", "podgroup", "event"]


@dataclass(frozen=True, slots=True)
class Observation:
    """One object as the cluster told it; with `gone` it is not there any more, and the object is
    how it last was.

    `instead_of` is the version of it that was known before the cluster was asked: that one is
    older, whatever the numbers say. `asked_at` is when the cluster was asked for all there is, and
    showed it.
    """

    kind: Kind
    object: Object
    is_gone: bool = False
    replaced_version: str = ""
    requested_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """A job, pod or PodGroup. `workload` and `attempt` are those of its labels, and `owner` is the
    uid of what controls it.

    A PodGroup has no such labels: its `name` and `owner` are those of the job it is for. What is
    known to be gone from a listing only has no `data`.
    """

    kind: Kind
    uid: str
    name: str = ""
    namespace: str = ""
    version: str = ""
    is_gone: bool = False
    workload: uuid.UUID | None = None
    attempt: int = 0
    owner: str = ""
    data: Object = field(default_factory=dict)
    replaced_version: str = ""
    requested_at: datetime | None = None

    def supersedes(self, version: str) -> bool:
        """Whether it is newer than what is known of it, which has this version."""
        return is_newer(self.version, version) or (
            version != "" and version == self.replaced_version
        )


def parse_objects(observations: Iterable[Observation]) -> Iterator[ObservedObject]:
    """The jobs, pods and PodGroups that may be ours, of each object the newest state; what cannot
    be one is logged and left out.
    """
    newest: dict[tuple[str, str], ObservedObject] = {}
    for each in observations:
        if each.kind == "event":
            continue
        thing = _parse_object(each)
        if thing is None:
            log.info(
                "a %s that cannot be one of ours is left out: %r",
                each.kind,
                _describe_object(each.object),
            )
            continue
        key = (thing.kind, thing.uid)
        before = newest.pop(key, None)
        # What comes last stays last: the end of one job comes before the beginning of the next.
        newest[key] = thing if before is None else _choose_newer(before, thing)
    return iter(newest.values())


def is_newer(version: str, other: str) -> bool:
    """Whether a resource version is newer than another one; one that is no number is taken for
    newer than any.
    """
    new, old = parse_version(version), parse_version(other)
    return new is None or old is None or new > old


def parse_version(version: str) -> int | None:
    """Versions of one kind in one cluster compare as numbers."""
    return int(version) if version.isascii() and version.isdigit() and len(version) <= 20 else None


def version_of(obj: Object | None) -> str:
    return str(nested_dict(obj, "metadata").get("resourceVersion") or "")


def uid_of(obj: object) -> str:
    """The uid of whatever it is; "" where there is none that could be one."""
    uid = nested_dict(obj if isinstance(obj, dict) else {}, "metadata").get("uid")
    return clean_text(uid) if isinstance(uid, str) and len(uid) <= 64 else ""


def _choose_newer(before: ObservedObject, obj: ObservedObject) -> ObservedObject:
    if before.is_gone != obj.is_gone:
        return obj if obj.is_gone else before
    return obj if is_newer(obj.version, before.version) else before


def _parse_object(observation: Observation) -> ObservedObject | None:
    data = slim_object(observation.object)
    metadata = nested_dict(data, "metadata")
    labels = nested_dict(metadata, "labels")
    workload, attempt = (
        _parse_workload_id(labels.get(keys.WORKLOAD)),
        _parse_attempt(labels.get(keys.ATTEMPT)),
    )
    uid = uid_of(data)
    if not uid or (observation.kind != "podgroup" and (workload is None or not attempt)):
        return None
    if (
        observation.kind == "job"
        and "kind" not in data
        and not any(name.endswith("ReplicaSpecs") for name in data["spec"])
    ):
        # The items of a list of a built-in kind do not say what they are.
        data["kind"] = "Job"
    owner = clean_text(find_controller(data).get("uid"), 64)
    name = str(metadata.get("name") or "")
    if observation.kind == "podgroup":
        name, owner = parse_pod_group_name(name)
    return ObservedObject(
        kind=observation.kind,
        uid=uid,
        name=name,
        namespace=str(metadata.get("namespace") or ""),
        version=version_of(data),
        is_gone=observation.is_gone,
        workload=workload if observation.kind != "podgroup" else None,
        attempt=attempt,
        owner=owner,
        data=data,
        replaced_version=observation.replaced_version,
        requested_at=observation.requested_at,
    )


def parse_pod_group_name(name: str) -> tuple[str, str]:
    """The name and the uid of the job that a PodGroup is for: KAI calls it pg-NAME-UID. Empty for
    any other name.
    """
    return (
        (name[3:-37], name[-36:])
        if name.startswith("pg-") and _parse_workload_id(name[-36:])
        else ("", "")
    )


def _parse_workload_id(value: object) -> uuid.UUID | None:
    return _parse_uuid(value) if isinstance(value, str) and len(value) == 36 else None


@functools.lru_cache(512)
def _parse_uuid(text: str) -> uuid.UUID | None:
    """Pods of one workload come together."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def _parse_attempt(value: object) -> int:
    return (
        int(value)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 7
        else 0
    )


def _describe_object(obj: object) -> str:
    metadata = nested_dict(obj if isinstance(obj, dict) else {}, "metadata")
    return clean_text(f"{metadata.get('namespace')}/{metadata.get('name')}", 200)

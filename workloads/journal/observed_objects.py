"""Objects observed in a cluster, prepared before the transaction: slimmed, identified and
validated.
"""

import functools
import logging
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from clusters.job_kinds import JOBS
from console.texts import parse_number
from workloads.kube_objects import Object, clean_text, find_controller, nested_dict
from workloads.manifests import keys
from workloads.slimming import slim_object

log = logging.getLogger(__name__)

Kind = Literal["job", "pod", "podgroup", "event"]


@dataclass(frozen=True, slots=True)
class Observation:
    """One object as the cluster reported it; with `is_gone`, its last state before removal.

    `replaced_version` is the version that was known before the cluster was asked: it is older,
    whatever the numbers say. `requested_at` is when the complete listing that contains the object
    was requested.
    """

    kind: Kind
    object: Object
    is_gone: bool = False
    replaced_version: str = ""
    requested_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """A job, pod or PodGroup that may be ours.

    `workload` and `attempt` come from its labels; `owner` is the uid of its controller. A PodGroup
    has no such labels: its `name` and `owner` are those of its job. An object that is known to be
    gone only from a listing has no `data`.
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
        """Return whether this object is newer than the known version."""
        return is_newer(self.version, version) or (
            version != "" and version == self.replaced_version
        )


def parse_objects(observations: Iterable[Observation]) -> Iterator[ObservedObject]:
    """Return the newest state of each job, pod and PodGroup that may be ours.

    Objects that cannot be ours are logged and left out.
    """
    newest: dict[tuple[str, str], ObservedObject] = {}
    for observation in observations:
        if observation.kind == "event":
            continue
        obj = _parse_object(observation)
        if obj is None:
            log.info(
                "a %s that cannot be one of ours is left out: %r",
                observation.kind,
                _describe_object(observation.object),
            )
            continue
        key = (obj.kind, obj.uid)
        before = newest.pop(key, None)
        # Popped and added again to keep the order of arrival: the end of one job must be merged
        # before the beginning of the next.
        newest[key] = obj if before is None else _choose_newer(before, obj)
    return iter(newest.values())


def is_newer(version: str, other: str) -> bool:
    """Return whether a resource version is newer than another one.

    A version that is no number counts as newer than any other, and any other as newer than it.
    """
    new, old = parse_version(version), parse_version(other)
    return new is None or old is None or new > old


def parse_version(version: str) -> int | None:
    """Return a resource version as a number, None if it is none.

    Versions of one kind in one cluster compare as numbers.
    """
    return parse_number(version, 20)


def version_of(obj: Object | None) -> str:
    return str(nested_dict(obj, "metadata").get("resourceVersion") or "")


def uid_of(obj: object) -> str:
    """Return the uid of any object; "" if it has none that could be one."""
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
        parse_number(labels.get(keys.ATTEMPT), 6) or 0,
    )
    uid = uid_of(data)
    if not uid or (observation.kind != "podgroup" and (workload is None or not attempt)):
        return None
    if (
        observation.kind == "job"
        and "kind" not in data
        and not any(name.endswith("ReplicaSpecs") for name in data["spec"])
    ):
        # The API server leaves out `kind` in the items of a list of a built-in kind.
        data["kind"] = JOBS.kind
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
    """Return the name and the uid of the job that a PodGroup belongs to.

    KAI names PodGroups pg-NAME-UID. Both are "" for any other name.
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
    """Parse a UUID, cached because pods of one workload arrive together."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def _describe_object(obj: object) -> str:
    metadata = nested_dict(obj if isinstance(obj, dict) else {}, "metadata")
    return clean_text(f"{metadata.get('namespace')}/{metadata.get('name')}", 200)

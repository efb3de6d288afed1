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

from workloads.manifests import keys
from workloads.observed import Object, controller, part, plain
from workloads.slimming import slim

log = logging.getLogger(__name__)

Kind = Literal["job", "pod", "podgroup", "event"]


@dataclass(frozen=True, slots=True)
class Seen:
    """One object as the cluster told it; with `gone` it is not there any more, and the object is
    how it last was.

    `instead_of` is the version of it that was known before the cluster was asked: that one is
    older, whatever the numbers say. `asked_at` is when the cluster was asked for all there is, and
    showed it.
    """

    kind: Kind
    object: Object
    gone: bool = False
    instead_of: str = ""
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Thing:
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
    gone: bool = False
    workload: uuid.UUID | None = None
    attempt: int = 0
    owner: str = ""
    data: Object = field(default_factory=dict)
    instead_of: str = ""
    asked_at: datetime | None = None

    def is_news_to(self, version: str) -> bool:
        """Whether it is newer than what is known of it, which has this version."""
        return is_newer(self.version, version) or (version != "" and version == self.instead_of)


def things(seen: Iterable[Seen]) -> Iterator[Thing]:
    """The jobs, pods and PodGroups that may be ours, of each object the newest state; what cannot
    be one is logged and left out.
    """
    newest: dict[tuple[str, str], Thing] = {}
    for each in seen:
        if each.kind == "event":
            continue
        thing = _thing(each)
        if thing is None:
            log.info(
                "a %s that cannot be one of ours is left out: %r", each.kind, _who(each.object)
            )
            continue
        key = (thing.kind, thing.uid)
        before = newest.pop(key, None)
        # What comes last stays last: the end of one job comes before the beginning of the next.
        newest[key] = thing if before is None else _later(before, thing)
    return iter(newest.values())


def is_newer(version: str, than: str) -> bool:
    """Whether a resource version is newer than another one; one that is no number is taken for
    newer than any.
    """
    new, old = order(version), order(than)
    return new is None or old is None or new > old


def order(version: str) -> int | None:
    """Versions of one kind in one cluster compare as numbers."""
    return int(version) if version.isascii() and version.isdigit() and len(version) <= 20 else None


def version_of(obj: Object | None) -> str:
    return str(part(obj, "metadata").get("resourceVersion") or "")


def uid_of(obj: object) -> str:
    """The uid of whatever it is; "" where there is none that could be one."""
    uid = part(obj if isinstance(obj, dict) else {}, "metadata").get("uid")
    return plain(uid) if isinstance(uid, str) and len(uid) <= 64 else ""


def _later(before: Thing, thing: Thing) -> Thing:
    if before.gone != thing.gone:
        return thing if thing.gone else before
    return thing if is_newer(thing.version, before.version) else before


def _thing(seen: Seen) -> Thing | None:
    data = slim(seen.object)
    metadata = part(data, "metadata")
    labels = part(metadata, "labels")
    workload, attempt = _workload(labels.get(keys.WORKLOAD)), _attempt(labels.get(keys.ATTEMPT))
    uid = uid_of(data)
    if not uid or (seen.kind != "podgroup" and (workload is None or not attempt)):
        return None
    if (
        seen.kind == "job"
        and "kind" not in data
        and not any(name.endswith("ReplicaSpecs") for name in data["spec"])
    ):
        # The items of a list of a built-in kind do not say what they are.
        data["kind"] = "Job"
    owner = plain(controller(data).get("uid"), 64)
    name = str(metadata.get("name") or "")
    if seen.kind == "podgroup":
        name, owner = group_of(name)
    return Thing(
        kind=seen.kind,
        uid=uid,
        name=name,
        namespace=str(metadata.get("namespace") or ""),
        version=version_of(data),
        gone=seen.gone,
        workload=workload if seen.kind != "podgroup" else None,
        attempt=attempt,
        owner=owner,
        data=data,
        instead_of=seen.instead_of,
        asked_at=seen.asked_at,
    )


def group_of(name: str) -> tuple[str, str]:
    """The name and the uid of the job that a PodGroup is for: KAI calls it pg-NAME-UID. Empty for
    any other name.
    """
    return (
        (name[3:-37], name[-36:]) if name.startswith("pg-") and _workload(name[-36:]) else ("", "")
    )


def _workload(value: object) -> uuid.UUID | None:
    return _uuid(value) if isinstance(value, str) and len(value) == 36 else None


@functools.lru_cache(512)
def _uuid(text: str) -> uuid.UUID | None:
    """Pods of one workload come together."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def _attempt(value: object) -> int:
    return (
        int(value)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 7
        else 0
    )


def _who(obj: object) -> str:
    metadata = part(obj if isinstance(obj, dict) else {}, "metadata")
    return plain(f"{metadata.get('namespace')}/{metadata.get('name')}", 200)

"""Finds out whether the KAI scheduler itself is at work in a cluster that serves its kinds: CRDs
stay when it is removed, and pods that name it then wait for ever.

KAI with one replica holds no Lease, so what counts is what it does: its webhook adds variables to a
pod that asks for a part of a GPU, its grouper annotates pods that name it, it reports why they
wait, and it binds them.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import KubeError, Unauthorized, Unavailable
from clusters.kube.resources import PODS

SCHEDULER = "kai-scheduler"
OWN_PODS = "app in (kai-scheduler-default,scheduler)"
"""The pods of the scheduler: its default shard, and those of releases before shards."""
NAMESPACE_PART = "kai"
"""What the namespace of KAI has in its name; pods labelled `app=scheduler` are common."""
WEBHOOK_VARIABLES = frozenset({"GPU_PORTION", "RUNAI_NUM_OF_GPUS"})
GROUP_ANNOTATION = "pod-group-name"
NOTICE_TIME = timedelta(minutes=2)
"""How long a pod may wait before it proves something that nobody has noticed it."""
MAX_PODS = 50


class _Meta(msgspec.Struct):
    namespace: str = ""
    creationTimestamp: str = ""  # noqa: N815 - the API's spelling
    deletionTimestamp: str = ""  # noqa: N815 - the API's spelling
    annotations: dict[str, str] | None = None


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct):
    phase: str = ""
    conditions: list[_Condition] | None = None


class _Pod(msgspec.Struct):
    metadata: _Meta
    status: _Status = msgspec.field(default_factory=_Status)


_pod_decoder = msgspec.json.Decoder(_Pod)


def has_webhook_variables(pod: dict[str, Any]) -> bool:
    """Return whether KAI's webhook has added its variables to a pod."""
    spec = pod.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    return any(
        variable.get("name") in WEBHOOK_VARIABLES
        for container in containers or ()
        for variable in container.get("env") or ()
    )


def probe_scheduler(client: Client) -> bool | None:
    """Return whether KAI is at work by what its pods and those that name it show.

    None where pods may not be listed. It takes up to three requests. Raises Unavailable and
    Unauthorized.
    """
    try:
        own = _list_pods(client, labels=OWN_PODS)
        if any(_is_ready(each) and _is_in_kai_namespace(each) for each in own):
            return True
        waiting = _list_pods(client, fields=f"spec.schedulerName={SCHEDULER},spec.nodeName=")
        # Pods that KAI noticed or bound may be older than its removal: the youngest says most.
        decisive = [each for each in waiting if _is_noticed(each) or _has_waited(client, each)]
        if decisive:
            return _is_noticed(max(decisive, key=_rank_by_creation))
        bound = calls.list_page(
            client,
            PODS,
            fields=f"spec.schedulerName={SCHEDULER},spec.nodeName!=",
            limit=1,
            decoder=_pod_decoder,
        )
    except (Unavailable, Unauthorized):
        raise
    except KubeError:
        return None
    return bool(bound.items)


def _list_pods(client: Client, *, labels: str = "", fields: str = "") -> list[_Pod]:
    page = calls.list_page(
        client, PODS, labels=labels, fields=fields, limit=MAX_PODS, decoder=_pod_decoder
    )
    # A server need not keep to the limit.
    return page.items[:MAX_PODS]


def _is_ready(pod: _Pod) -> bool:
    """Return whether the pod runs and is ready: one that crashes again and again runs too."""
    return pod.status.phase == "Running" and any(
        each.type == "Ready" and each.status == "True" for each in pod.status.conditions or ()
    )


def _is_in_kai_namespace(pod: _Pod) -> bool:
    return NAMESPACE_PART in pod.metadata.namespace


def _is_noticed(pod: _Pod) -> bool:
    """Return whether KAI has grouped the pod or said why it waits."""
    conditions = pod.status.conditions or ()
    return GROUP_ANNOTATION in (pod.metadata.annotations or {}) or any(
        each.type == "PodScheduled" for each in conditions
    )


def _parse_creation(pod: _Pod) -> datetime | None:
    try:
        moment = parse_datetime(pod.metadata.creationTimestamp)
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None


def _rank_by_creation(pod: _Pod) -> tuple[datetime, bool]:
    """Return the sort key that puts the youngest pod last; of equal ones, one that is noticed."""
    return _parse_creation(pod) or datetime.min.replace(tzinfo=UTC), _is_noticed(pod)


def _has_waited(client: Client, pod: _Pod) -> bool:
    created_at = _parse_creation(pod)
    if created_at is None or pod.metadata.deletionTimestamp or pod.status.phase != "Pending":
        return False
    return timezone.now() + client.clock_skew.offset - created_at > NOTICE_TIME

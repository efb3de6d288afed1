"""Probes what a cluster can do: what it serves, whether it shares GPUs, and which classes and
runtimes it has.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from clusters.capabilities import UNKNOWN, Capabilities, TrainingRuntime
from clusters.findings import Findings, StorageClass
from clusters.job_kinds import JOB_KINDS, TRAINJOBS
from clusters.kube import calls, discovery, resources
from clusters.kube.client import Client
from clusters.kube.errors import KubeError, Rejected, Unauthorized, Unavailable, limit_text
from clusters.kube.resources import (
    CLUSTERTRAININGRUNTIMES,
    NAMESPACES,
    PODS,
    PRIORITYCLASSES,
    STORAGECLASSES,
    Resource,
)
from clusters.scheduler_probe import has_webhook_variables, probe_scheduler

T = TypeVar("T")

USED_RESOURCES = (
    *JOB_KINDS.values(),
    *(each for each in vars(resources).values() if isinstance(each, Resource)),
)
"""The kinds that Muster uses: of everything that a cluster serves only these are stored."""
MAX_ITEMS = 200
"""Classes and runtimes that are stored, and fields of a kind."""
MAX_NAME = 253
MAX_UID = 64

FRAMEWORK_LABEL = "trainer.kubeflow.org/framework"
DEFAULT_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class"

_DISTRIBUTIONS = (
    (re.compile(r"\+k3s"), "K3s"),
    (re.compile(r"\+rke2"), "RKE2"),
    (re.compile(r"-gke\."), "GKE"),
    (re.compile(r"-eks-"), "EKS"),
    (re.compile(r"-aliyun\."), "ACK"),
    (re.compile(r"\+k0s"), "k0s"),
    (re.compile(r"\+vmware"), "VMware"),
    (re.compile(r"localkube"), "localkube"),
)
"""How distributions mark their versions."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What a probe found."""

    capabilities: Capabilities
    findings: Findings


class _Meta(msgspec.Struct):
    name: str
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _NamedObject(msgspec.Struct):
    metadata: _Meta


class _StorageClass(msgspec.Struct):
    metadata: _Meta
    provisioner: str = ""


class _Runtime(msgspec.Struct):
    metadata: _Meta
    spec: dict[str, Any] = {}


_named_decoder = msgspec.json.Decoder(_NamedObject)
_storage_class_decoder = msgspec.json.Decoder(_StorageClass)
_runtime_decoder = msgspec.json.Decoder(_Runtime)


def probe_cluster(
    client: Client, namespaces: Iterable[str] = (), *, has_own_scheduler: bool = False
) -> ProbeResult:
    """Ask what the cluster can do and which one it is, in about a dozen requests.

    `namespaces` are those of our projects there, where a pod can be tried. `has_own_scheduler` says
    that KAI's part is played by the server itself. The findings name what the credentials may not
    ask. Raises Unavailable or Unauthorized for a cluster that does not
    answer.
    """
    unanswered: dict[str, str] = {}

    def ask(name: str, question: Callable[[], T], otherwise: T) -> T:
        try:
            return question()
        except (Unavailable, Unauthorized):
            raise
        except KubeError as error:
            unanswered[name] = error.message
            return otherwise

    uid = _fetch_uid(client)
    served: frozenset[str] | None = ask("served", lambda: _fetch_served(client), None)
    if served is None:
        # Who may not even ask what there is finds out when launching.
        return ProbeResult(UNKNOWN, Findings(unanswered=unanswered, uid=uid))
    classes: list[_NamedObject] = ask(
        "priority_classes", lambda: _fetch_items(client, PRIORITYCLASSES, _named_decoder), []
    )
    storage: list[_StorageClass] = ask(
        "storage_classes", lambda: _fetch_items(client, STORAGECLASSES, _storage_class_decoder), []
    )
    runtimes: list[_Runtime] = []
    fields: frozenset[str] = frozenset()
    if TRAINJOBS.key in served:
        runtimes = ask(
            "runtimes", lambda: _fetch_items(client, CLUSTERTRAININGRUNTIMES, _runtime_decoder), []
        )
        fields = ask(
            "trainjob_fields",
            lambda: discovery.fetch_spec_fields(client, TRAINJOBS, TRAINJOBS.kind),
            frozenset(),
        )
        fields = frozenset(name[:MAX_NAME] for name in sorted(fields)[:MAX_ITEMS])
    capabilities = Capabilities(
        served=served,
        priority_classes=frozenset(_get_name(each) for each in classes),
        runtimes=tuple(map(_build_runtime, runtimes)),
        trainjob_fields=fields,
    )
    sharing, scheduler = (
        _probe_kai(client, [*namespaces, "default"], has_own_scheduler, unanswered)
        if capabilities.has_kai
        else (False, False)
    )
    storage_classes = tuple(
        StorageClass(
            _get_name(each),
            limit_text(each.provisioner)[:MAX_NAME],
            (each.metadata.annotations or {}).get(DEFAULT_CLASS_ANNOTATION) == "true",
        )
        for each in storage
    )
    return ProbeResult(
        dataclasses.replace(capabilities, gpu_sharing=sharing, has_scheduler=scheduler),
        Findings(storage_classes, unanswered, uid),
    )


def has_own_scheduler(server_version: discovery.ServerVersion) -> bool:
    """Return whether the server schedules by itself, as KAI would: the embedded cluster does."""
    return "localkube" in server_version.version


def describe_platform(server_version: discovery.ServerVersion) -> str:
    """Return the distribution and platform of the server in words: "K3s, linux/arm64".

    The version says which distribution it is, where it does.
    """
    maker = next((name for mark, name in _DISTRIBUTIONS if mark.search(server_version.version)), "")
    return ", ".join(filter(None, (maker, server_version.platform)))


def _fetch_uid(client: Client) -> str:
    """Return the uid of the namespace kube-system, "" where it may not be read."""
    try:
        namespace = calls.get(client, NAMESPACES, "kube-system")
    except (Unavailable, Unauthorized):
        raise
    except KubeError:
        return ""
    metadata = namespace.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else ""
    return limit_text(uid)[:MAX_UID] if isinstance(uid, str) else ""


def _fetch_served(client: Client) -> frozenset[str]:
    used = {each.key for each in USED_RESOURCES}
    versions = {each.api_version for each in USED_RESOURCES}
    return frozenset(
        each.resource.key
        for each in discovery.fetch_served_kinds(client, versions)
        if each.resource.key in used
    )


def _fetch_items(client: Client, resource: Resource, decoder: "msgspec.json.Decoder[T]") -> list[T]:
    page = calls.list_page(client, resource, limit=MAX_ITEMS, decoder=decoder)
    # A server need not keep to the limit.
    return page.items[:MAX_ITEMS]


def _build_runtime(runtime: _Runtime) -> TrainingRuntime:
    """Return a runtime with the scheduler of the first pod template in it that names one."""
    labels = runtime.metadata.labels or {}
    scheduler = limit_text(next(_find_schedulers(runtime.spec), ""))[:MAX_NAME]
    return TrainingRuntime(
        _get_name(runtime), limit_text(labels.get(FRAMEWORK_LABEL, ""))[:MAX_NAME], scheduler
    )


def _get_name(obj: _NamedObject | _StorageClass | _Runtime) -> str:
    return limit_text(obj.metadata.name)[:MAX_NAME]


def _find_schedulers(value: Any, depth: int = 12) -> Iterator[str]:
    if isinstance(value, dict) and depth:
        named = value.get("schedulerName")
        if isinstance(named, str) and named:
            yield named
        for inner in value.values():
            yield from _find_schedulers(inner, depth - 1)
    elif isinstance(value, list) and depth:
        for inner in value:
            yield from _find_schedulers(inner, depth - 1)


def _probe_kai(
    client: Client, namespaces: list[str], is_built_in: bool, unanswered: dict[str, str]
) -> tuple[bool | None, bool | None]:
    """Return whether KAI shares devices, and whether it is at work; None where that cannot be found
    out.
    """
    sharing, has_answered = _probe_gpu_sharing(client, namespaces, unanswered)
    scheduler = True if is_built_in or has_answered else probe_scheduler(client)
    if sharing and not scheduler:
        # Without KAI nobody refuses such a pod, and nobody gives it a part of a device.
        unanswered["gpu_sharing"] = "a pod that asks for a part is accepted, but KAI was not seen"
        sharing = None
    return sharing, scheduler


def _probe_gpu_sharing(
    client: Client, namespaces: list[str], unanswered: dict[str, str]
) -> tuple[bool | None, bool]:
    """Return whether KAI shares devices, None where that cannot be found out; and whether its
    webhook answered.

    The webhook refuses a pod that asks for a part of a device while sharing is off. The pod is a
    dry run: nothing is created.
    """
    why = ""
    for namespace in namespaces:
        try:
            pod = calls.create(client, PODS, _build_probe_pod(), namespace=namespace, dry_run=True)
        except (Unavailable, Unauthorized):
            raise
        except Rejected as error:
            if "admission webhook" in error.message and "sharing" in error.message.lower():
                return False, True
            why = why or error.message
        except KubeError as error:
            # That namespace is not there (any more): another one may be.
            why = why or error.message
        else:
            return True, has_webhook_variables(pod)
    unanswered["gpu_sharing"] = why
    return None, False


def _build_probe_pod() -> dict[str, Any]:
    """Build a pod that asks for half a GPU.

    No policy of a namespace has a reason to refuse it.
    """
    secured = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    amounts = {"cpu": "1m", "memory": "8Mi"}
    container = {
        "name": "probe",
        "image": "none",
        "securityContext": secured,
        "resources": {"requests": amounts, "limits": amounts},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "muster-probe",
            "annotations": {"gpu-fraction": "0.5"},
            "labels": {"kai.scheduler/queue": "default-queue"},
        },
        "spec": {
            "schedulerName": "kai-scheduler",
            "restartPolicy": "Never",
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65534,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
        },
    }
